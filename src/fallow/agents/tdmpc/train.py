"""One update, as pure functions of one branch's state."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from fallow.agents.shared.layers import computing_in, ema_update
from fallow.agents.shared.optimizer import apply_gradients, clipped_adam
from fallow.agents.tdmpc import losses
from fallow.agents.tdmpc.batches import Transitions
from fallow.agents.tdmpc.config import Config
from fallow.agents.tdmpc.layers import DROPOUT
from fallow.agents.tdmpc.networks import Actor, Ensemble, WorldModel

CLIP = 20.0
"""Largest norm of a gradient."""
MODEL_EPSILON, ACTOR_EPSILON = 1e-8, 1e-5
ENCODER_RATE = 0.3
"""Learning rate of the encoder over that of the other networks."""
TARGET_RATE = 0.01
"""How much of the values goes into their targets at each update."""

Metrics = dict[str, jax.Array]


class Learner(NamedTuple):
    """The learned state of one branch."""

    model: WorldModel
    actor: Actor
    targets: Ensemble
    model_opt_state: Any
    actor_opt_state: Any
    scale: jax.Array  # (), of the values in the policy's loss


def model_optimizer(config: Config) -> optax.GradientTransformation:
    """Adam for encoder, dynamics, reward and values; the encoder is slower."""

    def slower(
        updates: WorldModel, state: Any, _: Any = None
    ) -> tuple[WorldModel, Any]:
        encoder = jax.tree.map(lambda u: ENCODER_RATE * u, updates.encoder)
        return eqx.tree_at(lambda model: model.encoder, updates, encoder), state

    return optax.chain(
        clipped_adam(config.rate, MODEL_EPSILON, CLIP),
        optax.GradientTransformation(lambda _: optax.EmptyState(), slower),
    )


def actor_optimizer(config: Config) -> optax.GradientTransformation:
    """Adam for the policy."""
    return clipped_adam(config.rate, ACTOR_EPSILON, CLIP)


def learner(
    config: Config, model: WorldModel, actor: Actor, targets: Ensemble
) -> Learner:
    """A learner that has not learned yet, around given networks."""
    return Learner(
        model,
        actor,
        targets,
        model_optimizer(config).init(model),
        actor_optimizer(config).init(actor),
        jnp.ones(()),
    )


def init(config: Config, key: jax.Array, n_columns: int, n_actuators: int) -> Learner:
    """New networks; the targets begin as the values."""
    model_key, actor_key = jax.random.split(key)
    model = WorldModel(model_key, config, n_columns, n_actuators)
    actor = Actor(actor_key, config, n_actuators)
    return learner(config, model, actor, model.values)


class UpdateNoise(NamedTuple):
    """All random numbers of one update; H transitions of B sequences, Q values."""

    pairs: jax.Array  # (2, 2), the values of the target and those that score the policy
    aiming: jax.Array  # (H, B, A), noise of the policy
    acting: jax.Array  # (H + 1, B, A)
    kept: jax.Array  # (Q, H, B, width), by dropout
    scoring: jax.Array  # (2, H + 1, B, width), by dropout


def pairs_of(key: jax.Array, n_pairs: int, n: int) -> jax.Array:
    """(n_pairs, 2) pairs of different numbers below n, all equally likely."""
    which = jax.random.uniform(key, (n_pairs,), maxval=n * (n - 1)).astype(jnp.int32)
    first, ahead = jnp.divmod(which, n - 1)
    return jnp.stack([first, (first + 1 + ahead) % n], -1)


def sample_noise(config: Config, key: jax.Array, n_actuators: int) -> UpdateNoise:
    """One call for each kind, then split: this compiles much faster than many calls."""
    c, keys = config, jax.random.split(key, 3)
    steps, rows = 2 * c.horizon + 1, c.batch * c.width
    normal = jax.random.normal(keys[1], (steps, c.batch, n_actuators))
    n_kept, n_scoring = c.n_values * c.horizon, 2 * (c.horizon + 1)
    kept = jax.random.bernoulli(keys[2], 1 - DROPOUT, (n_kept + n_scoring, rows))
    return UpdateNoise(
        pairs_of(keys[0], 2, c.n_values),
        normal[: c.horizon],
        normal[c.horizon :],
        kept[:n_kept].reshape(c.n_values, c.horizon, c.batch, c.width),
        kept[n_kept:].reshape(2, c.horizon + 1, c.batch, c.width),
    )


def update(
    config: Config, state: Learner, batch: Transitions, key: jax.Array
) -> tuple[Learner, Metrics]:
    """Targets, model, policy, target values, in that order.

    The policy learns on the latents that the model saw before its step, scored by the
    values after it.
    """
    noise = sample_noise(config, key, batch.action.shape[-1])
    state, path, metrics = _update_model(config, state, batch, noise)
    state, more = _update_actor(config, state, path, noise)
    targets = ema_update(TARGET_RATE, state.model.values, state.targets)
    return state._replace(targets=targets), metrics | more


def _update_model(
    config: Config, state: Learner, batch: Transitions, noise: UpdateNoise
) -> tuple[Learner, jax.Array, Metrics]:
    pair = state.targets.picked(noise.pairs[0])
    aimed = losses.aim(
        computing_in(state.model, config.compute),
        computing_in(state.actor, config.compute),
        computing_in(pair, config.compute),
        batch,
        noise.aiming,
    )

    def loss(model: WorldModel) -> tuple[jax.Array, Any]:
        model = computing_in(model, config.compute)
        errors, path = losses.model_errors(model, batch, aimed, noise.kept)
        return errors.total(), (errors.means(), path)

    gradients, (means, path) = jax.grad(loss, has_aux=True)(state.model)
    model, opt_state, norm = apply_gradients(
        model_optimizer(config), state.model, state.model_opt_state, gradients
    )
    metrics = {f"model/{name}": value for name, value in means._asdict().items()}
    metrics |= {"model/gradient": norm, "model/target": aimed.value.mean()}
    return state._replace(model=model, model_opt_state=opt_state), path, metrics


def _update_actor(
    config: Config, state: Learner, path: jax.Array, noise: UpdateNoise
) -> tuple[Learner, Metrics]:
    pair = computing_in(state.model.values.picked(noise.pairs[1]), config.compute)
    actor_noise = losses.Noise(noise.acting, noise.scoring)

    def loss(actor: Actor) -> tuple[jax.Array, losses.PolicyTerms]:
        actor = computing_in(actor, config.compute)
        return losses.actor_loss(actor, pair, state.scale, path, actor_noise)

    grad: Callable[..., Any] = jax.value_and_grad(loss, has_aux=True)
    (value, evaluation), gradients = grad(state.actor)
    actor, opt_state, norm = apply_gradients(
        actor_optimizer(config), state.actor, state.actor_opt_state, gradients
    )
    metrics = {
        "actor/loss": value,
        "actor/entropy": evaluation.entropy,
        "actor/value": evaluation.value.mean(),
        "actor/scale": evaluation.scale,
        "actor/gradient": norm,
    }
    state = state._replace(
        actor=actor, actor_opt_state=opt_state, scale=evaluation.scale
    )
    return state, metrics
