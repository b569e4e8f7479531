"""Scalars as distributions over 101 bins, evenly spaced in symlog space."""

import jax
import jax.numpy as jnp

from fallow.agents.dreamer.twohot import symexp, symlog

N_BINS = 101
LIMIT = 10.0
"""The bins run from -10 to 10, in symlog units."""
_WIDTH = 2 * LIMIT / (N_BINS - 1)


def bins() -> jax.Array:
    """(101,) the bins' places."""
    return (jnp.arange(N_BINS) - N_BINS // 2) * _WIDTH


def two_hot(x: jax.Array) -> jax.Array:
    """Weights (…, 101) of the two bins beside symlog(x); beyond the ends, of the end.

    On even bins this is a hat: 1 less the distance in bins, and 0 further away. The
    reference gives the bin after the last one, which is the first, what is left over
    at the very top; that is nothing.
    """
    place = (jnp.clip(symlog(x), -LIMIT, LIMIT) + LIMIT) / _WIDTH
    return jax.nn.relu(1 - jnp.abs(place[..., None] - jnp.arange(N_BINS)))


def cross_entropy(logits: jax.Array, x: jax.Array) -> jax.Array:
    """- sum_k two_hot(x)_k log softmax(logits)_k."""
    aimed = (two_hot(x) * logits).sum(-1)
    return jax.nn.logsumexp(logits, -1) - aimed


def estimate(logits: jax.Array) -> jax.Array:
    """The point estimate symexp(sum_k p_k bin_k)."""
    return symexp((jax.nn.softmax(logits) * bins()).sum(-1))
