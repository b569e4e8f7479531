"""The layers all networks are made of.

A weight matrix is (inputs, outputs). Matrix products run in the type of the weight
(see `shared.layers.computing_in`), norms and everything after a bias in float32.
"""

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from fallow.agents import compiling
from fallow.agents.dreamer.ops import norm_silu
from fallow.agents.shared.layers import Norm

NORM_EPSILON = 1e-3
TRUNCATION = 0.8796256610342398
"""Standard deviation of a unit normal cut at two of its own."""

PRODUCT = "product"


def saving_products(
    function: Callable[..., Any], prevent_cse: bool = True
) -> Callable[..., Any]:
    """Keep matrix products for the backward pass and compute all else from them again.

    Norms, activations and softmaxes are cheap to compute and dear to store on an
    accelerator. On a processor it is the other way round, and all is kept.
    """
    policy = jax.checkpoint_policies.save_only_these_names(PRODUCT)
    again = jax.checkpoint(function, policy=policy, prevent_cse=prevent_cse)

    @wraps(function)
    def run(*arguments: Any) -> Any:
        return (function if compiling.on_processor() else again)(*arguments)

    return run


def hidden_weight(key: jax.Array, n_in: int, n_out: int) -> jax.Array:
    """Truncated normal of standard deviation sqrt(2 / (n_in + n_out))."""
    std = math.sqrt(2 / (n_in + n_out)) / TRUNCATION
    return std * jax.random.truncated_normal(key, -2, 2, (n_in, n_out))


def output_weight(key: jax.Array, n_in: int, n_out: int, scale: float) -> jax.Array:
    """Uniform within sqrt(6 scale / (n_in + n_out)); scale 0 gives zeros."""
    bound = math.sqrt(6 * scale / (n_in + n_out))
    return jax.random.uniform(key, (n_in, n_out), minval=-bound, maxval=bound)


class Block(eqx.Module):
    """A product without bias, a norm, SiLU."""

    weight: jax.Array
    norm: Norm

    def __init__(self, key: jax.Array, n_in: int, n_out: int) -> None:
        self.weight = hidden_weight(key, n_in, n_out)
        self.norm = Norm(n_out, NORM_EPSILON)

    def __call__(self, x: jax.Array) -> jax.Array:
        return norm_silu(self.norm, product(x, self.weight))


class Linear(eqx.Module):
    """A product and a bias, as every output layer is; the result is float32."""

    weight: jax.Array
    bias: jax.Array

    def __init__(
        self, key: jax.Array, n_in: int, n_out: int, scale: float = 1.0
    ) -> None:
        self.weight = output_weight(key, n_in, n_out, scale)
        self.bias = jnp.zeros(n_out)

    def __call__(self, x: jax.Array) -> jax.Array:
        return product(x, self.weight).astype(jnp.float32) + self.bias


class MLP(eqx.Module):
    """Blocks of one width, and an output layer if it has outputs."""

    blocks: tuple[Block, ...]
    out: Linear | None

    def __init__(
        self, key: jax.Array, sizes: Sequence[int], n_out: int = 0, scale: float = 1.0
    ) -> None:
        keys = jax.random.split(key, len(sizes))
        pairs = zip(keys[1:], sizes[:-1], sizes[1:], strict=True)
        self.blocks = tuple(Block(k, a, b) for k, a, b in pairs)
        self.out = Linear(keys[0], sizes[-1], n_out, scale) if n_out else None

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.hidden(x)
        return x if self.out is None else self.out(x)

    def hidden(self, x: jax.Array) -> jax.Array:
        """The input of the output layer."""
        for block in self.blocks:
            x = block(x)
        return x


def product(x: jax.Array, weight: jax.Array) -> jax.Array:
    """(…, in) by (in, out), in the type of the weight."""
    return checkpoint_name(_product(x.astype(weight.dtype), weight), PRODUCT)


@jax.custom_vjp
def _product(x: jax.Array, weight: jax.Array) -> jax.Array:
    return x @ weight


def _product_back(
    saved: tuple[jax.Array, jax.Array], d_out: jax.Array
) -> tuple[jax.Array, jax.Array]:
    x, weight = saved
    return d_out @ weight.T, weight_gradient(x, d_out)


def weight_gradient(x: jax.Array, d_out: jax.Array) -> jax.Array:
    """(in, out) as the weight is stored; found automatically it is (out, in)."""
    return jnp.einsum("...i,...o->io", x, d_out)


_product.defvjp(lambda x, weight: (_product(x, weight), (x, weight)), _product_back)
