"""The layers all networks are made of.

A weight matrix is (inputs, outputs). Matrix products run in the type of the weight
(see `shared.layers.computing_in`), all else in float32.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from fallow.agents.shared.layers import Norm
from fallow.agents.tdmpc.config import GROUP

NORM_EPSILON = 1e-5
WEIGHT_STD = 0.02
"""Standard deviation of new weights."""
DROPOUT = 0.01
"""Share of a value function's first hidden numbers left out while learning."""
_LARGE = 20.0
"""Beyond it, mish(x) is x in float32."""


def mish(x: jax.Array) -> jax.Array:
    """Of x: x tanh(ln(1 + e^x)), computed as x n / (n + 2) with n = e^x (e^x + 2)."""
    e = jnp.exp(jnp.minimum(x, _LARGE))
    n = e * (e + 2)
    return x * (n / (n + 2))


def simnorm(x: jax.Array) -> jax.Array:
    """A softmax inside consecutive groups of 8; (…, n) to (…, n)."""
    groups = x.reshape(*x.shape[:-1], -1, GROUP)
    return jax.nn.softmax(groups).reshape(x.shape)


def dropped(x: jax.Array, kept: jax.Array) -> jax.Array:
    """0 where a number is not kept, else larger by 1 / 0.99."""
    return jnp.where(kept, x / (1 - DROPOUT), 0)


class Linear(eqx.Module):
    """A product and a bias; the result is float32."""

    weight: jax.Array
    bias: jax.Array

    def __init__(
        self, key: jax.Array, n_in: int, n_out: int, std: float = WEIGHT_STD
    ) -> None:
        shape = (n_in, n_out)
        self.weight = std * jax.random.normal(key, shape) if std else jnp.zeros(shape)
        self.bias = jnp.zeros(n_out)

    def __call__(self, x: jax.Array, rounded: bool = False) -> jax.Array:
        """`rounded`: the product is kept in the type of the weight, to save bytes."""
        dtype = self.weight.dtype
        kept = dtype if rounded else jnp.float32
        product = jnp.matmul(x.astype(dtype), self.weight, preferred_element_type=kept)
        return product.astype(jnp.float32) + self.bias


class Block(eqx.Module):
    """A linear layer, dropout if `kept` is given, a norm, an activation."""

    linear: Linear
    norm: Norm
    activation: Callable[[jax.Array], jax.Array] = eqx.field(static=True)

    def __init__(
        self,
        key: jax.Array,
        n_in: int,
        n_out: int,
        activation: Callable[[jax.Array], jax.Array] = mish,
    ) -> None:
        self.linear, self.norm = Linear(key, n_in, n_out), Norm(n_out, NORM_EPSILON)
        self.activation = activation

    def __call__(self, x: jax.Array, kept: jax.Array | None = None) -> jax.Array:
        x = self.linear(x, rounded=True)
        if kept is not None:
            x = dropped(x, kept)
        return self.activation(self.norm(x))


class MLP(eqx.Module):
    """Blocks, then a linear layer: a latent's is followed by a norm and SimNorm."""

    blocks: tuple[Block, ...]
    out: Linear | Block

    def __init__(self, key: jax.Array, sizes: Sequence[int], out: Any) -> None:
        keys = jax.random.split(key, len(sizes) - 1)
        layers = zip(keys, sizes[:-1], sizes[1:], strict=True)
        *hidden, last = layers
        self.blocks = tuple(Block(*layer) for layer in hidden)
        self.out = out(*last)

    def __call__(self, x: jax.Array, kept: jax.Array | None = None) -> jax.Array:
        """`kept` is what dropout leaves of the first block, (…, width)."""
        for block in self.blocks:
            x, kept = block(x, kept), None
        return self.out(x)
