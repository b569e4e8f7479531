"""Scalars as distributions over bins that are evenly spaced in symlog space."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp


def symlog(x: jax.Array) -> jax.Array:
    """sign(x) ln(1 + |x|)."""
    return jnp.sign(x) * jnp.log1p(jnp.abs(x))


def symexp(x: jax.Array) -> jax.Array:
    """The inverse of `symlog`."""
    return jnp.sign(x) * jnp.expm1(jnp.abs(x))


@dataclass(frozen=True)
class Bins:
    """`n` bins, an odd number, from -limit to limit in symlog units."""

    n: int
    limit: float

    @property
    def width(self) -> float:
        """From a bin to the next, in symlog units."""
        return 2 * self.limit / (self.n - 1)

    def places(self) -> jax.Array:
        """(n,) in symlog units."""
        return (jnp.arange(self.n) - self.n // 2) * self.width

    def place(self, x: jax.Array) -> jax.Array:
        """Of symlog(x), in bins from the first; beyond the ends it is the end's."""
        clipped = jnp.clip(symlog(x), -self.limit, self.limit)
        return (clipped + self.limit) / self.width

    def two_hot(self, x: jax.Array) -> jax.Array:
        """Weights (…, n) of the two bins beside symlog(x); beyond the ends, of the end.

        On even bins this is a hat: 1 less the distance in bins, and 0 further away.
        TD-MPC2's reference gives what is left over at the very top to the bin after the
        last one, which is the first; that is nothing.
        """
        apart = jnp.abs(self.place(x)[..., None] - jnp.arange(self.n))
        return jax.nn.relu(1 - apart)

    def cross_entropy(self, logits: jax.Array, x: jax.Array) -> jax.Array:
        """- sum_k two_hot(x)_k log softmax(logits)_k."""
        aimed = (self.two_hot(x) * logits).sum(-1)
        return jax.nn.logsumexp(logits, -1) - aimed

    def estimate(self, logits: jax.Array) -> jax.Array:
        """The point estimate symexp(sum_k p_k place_k)."""
        return symexp((jax.nn.softmax(logits) * self.places()).sum(-1))
