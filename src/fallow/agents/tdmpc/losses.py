"""The losses of model and policy, and the targets of values.

H transitions of B sequences lead over H + 1 latents; time comes first.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from fallow.agents.tdmpc.batches import Transitions
from fallow.agents.tdmpc.bins import BINS
from fallow.agents.tdmpc.networks import Actor, Ensemble, WorldModel

DISCOUNT = 0.99
"""A transition; the reference's (L / 5 - 1) / (L / 5) for episodes of L = 500."""
RHO = 0.5
"""Weight of a step over that of the step before."""
CONSISTENCY_SCALE, REWARD_SCALE, VALUE_SCALE = 20.0, 0.1, 0.1
ENTROPY_SCALE = 1e-4
QUANTILES = (0.05, 0.95)
SCALE_RATE = 0.01


class Aim(NamedTuple):
    """Targets of the model's predictions, without gradient."""

    latent: jax.Array  # (H, B, Z)
    value: jax.Array  # (H, B)


def aim(
    model: WorldModel,
    actor: Actor,
    pair: Ensemble,
    batch: Transitions,
    normal: jax.Array,
) -> Aim:
    """z'_t = enc(o_{t+1}) and r_t + 0.99 min_2 Q(z'_t, a'), a' sampled by the policy.

    `pair` are two target values; `normal` (H, B, A) is the policy's noise.
    """
    latent = model.encoder(batch.observation[1:])
    values = BINS.estimate(pair(latent, actor(latent).sample(normal)))
    value = batch.reward + DISCOUNT * values.min(0)
    return jax.lax.stop_gradient(Aim(latent, value))


class Errors(NamedTuple):
    """The parts of the model's loss at every transition."""

    consistency: jax.Array  # (H, B), mean square over the latent
    reward: jax.Array  # (H, B)
    value: jax.Array  # (Q, H, B)

    def means(self) -> "Errors":
        """Each part as one number, (1 / H) sum_t 0.5^t mean[…]; values' mean too."""
        return Errors(*(_over_time(part) for part in self))

    def total(self) -> jax.Array:
        """20 consistency + 0.1 reward + 0.1 value."""
        means = self.means()
        return (
            CONSISTENCY_SCALE * means.consistency
            + REWARD_SCALE * means.reward
            + VALUE_SCALE * means.value
        )


def model_errors(
    model: WorldModel, batch: Transitions, aimed: Aim, kept: jax.Array | None
) -> tuple[Errors, jax.Array]:
    """Roll the dynamics from the first observation; also the latents (H + 1, B, Z).

    z_0 = enc(o_0), z_{t+1} = dyn(z_t, a_t). Gradients run through all of it. `kept`
    (Q, H, B, width) is what dropout leaves of the values; None leaves all.
    """
    latent = model.encoder(batch.observation[0])
    latents = [latent]
    for action in batch.action:
        latent = model.next(latent, action)
        latents.append(latent)
    path = jnp.stack(latents)
    before, after = path[:-1], path[1:]
    rewards = model.reward_logits(before, batch.action)
    values = model.values(before, batch.action, kept)
    errors = Errors(
        consistency=jnp.square(after - aimed.latent).mean(-1),
        reward=BINS.cross_entropy(rewards, batch.reward),
        value=BINS.cross_entropy(values, aimed.value),
    )
    return errors, path


class PolicyTerms(NamedTuple):
    """Results of the policy's loss that the metrics use."""

    scale: jax.Array  # ()
    value: jax.Array  # (H + 1, B)
    entropy: jax.Array  # ()


def rescaled(scale: jax.Array, value: jax.Array) -> jax.Array:
    """0.99 scale + 0.01 max(1, p95 - p5) of values."""
    low, high = jnp.quantile(jax.lax.stop_gradient(value), jnp.array(QUANTILES))
    return (1 - SCALE_RATE) * scale + SCALE_RATE * jnp.maximum(1, high - low)


class Noise(NamedTuple):
    """Random numbers of the policy's loss."""

    normal: jax.Array  # (H + 1, B, A)
    kept: jax.Array | None  # (2, H + 1, B, width), by dropout; None: all


def actor_loss(
    actor: Actor, pair: Ensemble, scale: jax.Array, path: jax.Array, noise: Noise
) -> tuple[jax.Array, PolicyTerms]:
    """(1 / (H + 1)) sum_t 0.5^t mean[-(1e-4 entropy + Q / scale)].

    Q is the mean of two values; latents `path` (H + 1, B, Z) count as constants. The
    scale moves towards the spread of the first step's values before it is used.
    """
    policy = actor(path)
    action = policy.sample(noise.normal)
    value = BINS.estimate(pair(path, action, noise.kept)).mean(0)
    scale = rescaled(scale, value[0])
    gain = ENTROPY_SCALE * policy.scaled_entropy(noise.normal) + value / scale
    entropy = policy.entropy(noise.normal).mean()
    return _over_time(-gain), PolicyTerms(scale, value, entropy)


def _over_time(errors: jax.Array) -> jax.Array:
    """(1 / T) sum_t 0.5^t mean[errors] of (…, T, B)."""
    weights = RHO ** jnp.arange(errors.shape[-2])
    return (weights[:, None] * errors).mean()
