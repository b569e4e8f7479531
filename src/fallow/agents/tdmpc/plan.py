"""Planning through the learned model, in one world."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fallow.agents.tdmpc import mppi
from fallow.agents.tdmpc.bins import BINS
from fallow.agents.tdmpc.config import Config
from fallow.agents.tdmpc.losses import DISCOUNT
from fallow.agents.tdmpc.networks import Actor, Ensemble, WorldModel
from fallow.agents.tdmpc.train import pairs_of

MANY_ACTUATORS = 20
"""From so many on, a plan is refitted two times more."""


class PlanNoise(NamedTuple):
    """Random numbers of a plan; I iterations, N action sequences, P of them proposals.

    `pairs` is the same in all worlds of an agent, so that the two values of an
    iteration are products of many rows.
    """

    proposals: jax.Array  # (H, P, A), of the policy
    candidates: jax.Array  # (I, H, N - P, A)
    last: jax.Array  # (I, N, A), of the policy at the horizon
    pairs: jax.Array  # (I, 2), which values score the horizon
    elite: jax.Array  # (E,), of a Gumbel distribution
    action: jax.Array  # (A,), added to the action when exploring


WORLDS = PlanNoise(0, 0, 0, None, 0, 0)  # type: ignore[arg-type]
"""Which of a noise's leading axes are worlds."""


def n_iterations(config: Config, n_actuators: int) -> int:
    """How often a plan is refitted."""
    return config.n_iterations + 2 * (n_actuators >= MANY_ACTUATORS)


def sample_noise(
    config: Config, key: jax.Array, n_worlds: int, n_actuators: int
) -> PlanNoise:
    """Noise of W worlds: a leading axis of W, but for the pairs."""
    c, keys = config, jax.random.split(key, 3)
    iterations = n_iterations(config, n_actuators)
    shapes = (
        (c.horizon, c.n_proposals),
        (iterations, c.horizon, c.n_samples - c.n_proposals),
        (iterations, c.n_samples),
        (),
    )
    sizes = [math.prod(shape) for shape in shapes]
    normals = jax.random.normal(keys[0], (n_worlds, sum(sizes), n_actuators))
    parts = jnp.split(normals, np.cumsum(sizes[:-1]).tolist(), 1)
    proposals, candidates, last, action = (
        part.reshape(n_worlds, *shape, n_actuators)
        for part, shape in zip(parts, shapes, strict=True)
    )
    pairs = pairs_of(keys[1], iterations, c.n_values)
    gumbel = jax.random.gumbel(keys[2], (n_worlds, c.n_elites))
    return PlanNoise(proposals, candidates, last, pairs, gumbel, action)


def proposed(
    model: WorldModel, actor: Actor, latent: jax.Array, normal: jax.Array
) -> jax.Array:
    """(H, P, A) actions of the policy along its own paths from one latent (Z,)."""
    latents = jnp.broadcast_to(latent, (normal.shape[1], len(latent)))
    actions: list[jax.Array] = []
    for step, noise in enumerate(normal):
        if step:
            latents = model.next(latents, actions[-1])
        actions.append(actor(latents).sample(noise))
    return jnp.stack(actions)


def value(
    model: WorldModel,
    actor: Actor,
    pair: Ensemble,
    latent: jax.Array,
    actions: jax.Array,
    normal: jax.Array,
) -> jax.Array:
    """(N,) values of action sequences (H, N, A) from one latent (Z,).

    sum_t 0.99^t r(z_t, a_t) + 0.99^H mean_2 Q(z_H, a), a sampled by the policy.
    """
    latents = jnp.broadcast_to(latent, (actions.shape[1], len(latent)))
    total = jnp.zeros(actions.shape[1])
    for step, action in enumerate(actions):
        reward = BINS.estimate(model.reward_logits(latents, action))
        total += DISCOUNT**step * reward
        latents = model.next(latents, action)
    last = BINS.estimate(pair(latents, actor(latents).sample(normal))).mean(0)
    return total + DISCOUNT ** len(actions) * last


class Planned(NamedTuple):
    """The next action, and the plan that it is part of."""

    action: jax.Array  # (A,)
    mean: jax.Array  # (H, A)
    std: jax.Array  # (H, A)


def plan(
    model: WorldModel,
    actor: Actor,
    observation: jax.Array,
    previous: jax.Array,
    noise: PlanNoise,
    explore: bool,
) -> Planned:
    """The best actions from an observation (n_columns,) on, in one world.

    `previous` (H, A) is the plan of a step earlier; zeros when an episode begins. An
    elite is sampled in both cases; only `explore` adds noise, as wide as the plan.
    """
    latent = model.encoder(observation)
    proposals = proposed(model, actor, latent, noise.proposals)

    def score(actions: jax.Array, given: tuple[jax.Array, jax.Array]) -> jax.Array:
        normal, which = given
        pair = model.values.picked(which)
        return value(model, actor, pair, latent, actions, normal)

    fit = mppi.search(
        score,
        mppi.start(previous, noise.elite.shape[-1]),
        proposals,
        noise.candidates,
        (noise.last, noise.pairs),
    )
    action = mppi.chosen(fit, noise.elite)
    if explore:
        action = action + fit.std[0] * noise.action
    return Planned(jnp.clip(action, -1, 1), fit.mean, fit.std)
