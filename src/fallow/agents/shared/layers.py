"""Parts of networks, and operations on any network."""

from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

Network = TypeVar("Network", bound=eqx.Module)


class Norm(eqx.Module):
    """Layer normalisation over the last axis, with learned scale and shift."""

    scale: jax.Array
    shift: jax.Array
    epsilon: float = eqx.field(static=True)

    def __init__(self, n: int, epsilon: float) -> None:
        self.scale, self.shift = jnp.ones(n), jnp.zeros(n)
        self.epsilon = epsilon

    def __call__(self, x: jax.Array) -> jax.Array:
        x = x.astype(jnp.float32)
        centred = x - x.mean(-1, keepdims=True)
        variance = jnp.square(centred).mean(-1, keepdims=True)
        whitened = centred * jax.lax.rsqrt(variance + self.epsilon)
        return whitened * self.scale + self.shift


def computing_in(network: Network, dtype: str) -> Network:
    """The network with its matrices, all named `…weight`, in `dtype`."""

    def cast(path: tuple[Any, ...], leaf: jax.Array) -> jax.Array:
        is_matrix = getattr(path[-1], "name", "").endswith("weight")
        return leaf.astype(dtype) if is_matrix else leaf

    return jax.tree_util.tree_map_with_path(cast, network)


def ema_update(rate: float, network: Network, slow: Network) -> Network:
    """A slow copy after a step towards its network: rate new + (1 - rate) slow."""
    return jax.tree.map(lambda new, old: rate * new + (1 - rate) * old, network, slow)
