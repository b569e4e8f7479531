"""Model predictive path integral control: fit a normal to the best action sequences.

Written for any score of action sequences (H, N, A), with all noise given.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

TEMPERATURE = 0.5
"""Weights of elites are exp(0.5 (value - best value))."""
MIN_STD, MAX_STD = 0.05, 2.0

Score = Callable[[jax.Array, Any], jax.Array]
"""Values (N,) of action sequences (H, N, A), given the noise of one iteration."""


class PlanDistribution(NamedTuple):
    """Normals of H actions, and the elites they were fitted to, best first."""

    mean: jax.Array  # (H, A)
    std: jax.Array  # (H, A)
    elites: jax.Array  # (H, E, A)
    weights: jax.Array  # (E,), sum to 1


def start(previous: jax.Array, n_elites: int) -> PlanDistribution:
    """The plan of a step earlier (H, A) moved on by one, as wide as can be."""
    mean = jnp.concatenate([previous[1:], jnp.zeros_like(previous[:1])])
    elites = jnp.zeros((len(mean), n_elites, mean.shape[-1]))
    return PlanDistribution(
        mean, jnp.full_like(mean, MAX_STD), elites, jnp.zeros(n_elites)
    )


def candidates(
    fit: PlanDistribution, proposals: jax.Array, normal: jax.Array
) -> jax.Array:
    """Proposals (H, P, A), then clip(mean + std normal, -1, 1), (H, N - P, A)."""
    sampled = fit.mean[:, None] + fit.std[:, None] * normal
    return jnp.concatenate([proposals, jnp.clip(sampled, -1, 1)], 1)


def refit(actions: jax.Array, values: jax.Array, n_elites: int) -> PlanDistribution:
    """Weighted mean and standard deviation of the elites among (H, N, A)."""
    best, chosen = jax.lax.top_k(values, n_elites)
    weights = jnp.exp(TEMPERATURE * (best - best[0]))
    weights = weights / weights.sum()
    elites = actions[:, chosen]
    mean = (weights[:, None] * elites).sum(1)
    square = jnp.square(elites - mean[:, None])
    std = jnp.sqrt((weights[:, None] * square).sum(1))
    return PlanDistribution(mean, jnp.clip(std, MIN_STD, MAX_STD), elites, weights)


def search(
    score: Score,
    fit: PlanDistribution,
    proposals: jax.Array,
    normal: jax.Array,
    given: Any,
) -> PlanDistribution:
    """Refit once for each entry of `normal` (I, H, N - P, A) and of `given` (I, …)."""

    def iterate(
        fit: PlanDistribution, noise: tuple[jax.Array, Any]
    ) -> tuple[PlanDistribution, None]:
        actions = candidates(fit, proposals, noise[0])
        values = jnp.nan_to_num(score(actions, noise[1]))
        return refit(actions, values, len(fit.weights)), None

    return jax.lax.scan(iterate, fit, (normal, given))[0]


def chosen(fit: PlanDistribution, gumbel: jax.Array) -> jax.Array:
    """(A,) the first action of an elite sampled by weight; with zeros, of the best."""
    return fit.elites[0, jnp.argmax(jnp.log(fit.weights) + gumbel)]
