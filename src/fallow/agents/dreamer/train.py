"""One update, as pure functions of one branch's state."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from fallow.agents.dreamer import losses
from fallow.agents.dreamer.config import Config
from fallow.agents.dreamer.layers import MLP
from fallow.agents.dreamer.losses import Batch, Metrics
from fallow.agents.dreamer.networks import Actor, WorldModel, critic
from fallow.agents.dreamer.recurrence import State as Latent
from fallow.agents.shared.layers import computing_in, ema_update
from fallow.agents.shared.optimizer import apply_gradients, clipped_adam

MODEL_CLIP, BEHAVIOUR_CLIP = 1000.0, 100.0
"""Largest norm of a gradient."""
MODEL_EPSILON, BEHAVIOUR_EPSILON = 1e-8, 1e-5
SLOW_RATE = 0.02
"""How much of the critic goes into the slow one at each update."""


class Learner(NamedTuple):
    """The learned state of one branch."""

    model: WorldModel
    actor: Actor
    critic: MLP
    slow_critic: MLP
    model_opt_state: Any
    actor_opt_state: Any
    critic_opt_state: Any
    return_range: jax.Array  # (2,), of the return normaliser


class Optimizers(NamedTuple):
    """Clipped Adam, one for each network."""

    model: optax.GradientTransformation
    actor: optax.GradientTransformation
    critic: optax.GradientTransformation

    @classmethod
    def of(cls, config: Config) -> "Optimizers":
        """With the rates of a config."""
        behaviour = (BEHAVIOUR_EPSILON, BEHAVIOUR_CLIP)
        return cls(
            clipped_adam(config.model_rate, MODEL_EPSILON, MODEL_CLIP),
            clipped_adam(config.actor_rate, *behaviour),
            clipped_adam(config.critic_rate, *behaviour),
        )


def learner(
    config: Config, model: WorldModel, actor: Actor, value: MLP, slow: MLP
) -> Learner:
    """A learner that has not learned yet, around given networks."""
    optimizers = Optimizers.of(config)
    return Learner(
        model,
        actor,
        value,
        slow,
        optimizers.model.init(model),
        optimizers.actor.init(actor),
        optimizers.critic.init(value),
        jnp.zeros(2),
    )


def init(config: Config, key: jax.Array, n_columns: int, n_actuators: int) -> Learner:
    """New networks; the slow critic begins as the critic."""
    keys = jax.random.split(key, 3)
    model = WorldModel(keys[0], config, n_columns, n_actuators)
    value = critic(keys[1], config)
    return learner(config, model, Actor(keys[2], config, n_actuators), value, value)


def update(
    config: Config, state: Learner, batch: Batch, key: jax.Array
) -> tuple[Learner, Metrics]:
    """Model, slow critic, imagination, actor, critic, in that order.

    Imagination starts from the states that the model saw before its step and runs on
    the model after it.
    """
    keys = jax.random.split(key, 4)
    batch = {name: jnp.swapaxes(values, 0, 1) for name, values in batch.items()}
    state, starts, metrics = _update_model(config, state, batch, keys[0])
    noise = losses.Noise(
        jax.random.uniform(
            keys[1], (config.horizon - 1, config.n_starts, config.n_categoricals)
        ),
        jax.random.normal(
            keys[2],
            (config.horizon - 1, config.n_starts, batch["action"].shape[-1]),
        ),
    )
    starts = _chosen(config, starts, keys[3])
    state, behaviour = _update_behaviour(config, state, starts, noise)
    return state, metrics | behaviour


def _update_model(
    config: Config, state: Learner, batch: Batch, key: jax.Array
) -> tuple[Learner, Latent, Metrics]:
    length, n = batch["is_first"].shape
    uniform = jax.random.uniform(key, (length, n, config.n_categoricals))

    def loss(model: WorldModel) -> tuple[jax.Array, Any]:
        model = computing_in(model, config.compute)
        errors, states = losses.model_errors(model, batch, uniform, config.unroll)
        return errors.total().mean(), (errors, states)

    gradients, (errors, states) = jax.grad(loss, has_aux=True)(state.model)
    model, opt_state, norm = apply_gradients(
        Optimizers.of(config).model, state.model, state.model_opt_state, gradients
    )
    metrics = {f"model/{k}": v.mean() for k, v in errors._asdict().items()}
    metrics["model/gradient"] = norm
    return state._replace(model=model, model_opt_state=opt_state), states, metrics


def _chosen(config: Config, states: Latent, key: jax.Array) -> Latent:
    """`n_starts` of the states (T, B, …), evenly spread from a random one on."""
    n = config.batch * config.length
    flat = jax.tree.map(lambda x: x.reshape(n, x.shape[-1]), states)
    if config.n_starts == n:
        return flat
    stride = n // config.n_starts
    rows = jnp.arange(config.n_starts) * stride + jax.random.randint(key, (), 0, stride)
    return jax.tree.map(lambda x: x[rows], flat)


def _update_behaviour(
    config: Config, state: Learner, starts: Latent, noise: losses.Noise
) -> tuple[Learner, Metrics]:
    slow = ema_update(SLOW_RATE, state.critic, state.slow_critic)
    model = computing_in(state.model, config.compute)
    value = computing_in(state.critic, config.compute)
    slow_value = computing_in(slow, config.compute)

    def actor_loss(actor: Actor) -> tuple[jax.Array, losses.Imagined]:
        actor = computing_in(actor, config.compute)
        return losses.actor_loss(actor, model, value, state.return_range, starts, noise)

    def critic_loss(network: MLP) -> jax.Array:
        network = computing_in(network, config.compute)
        return losses.critic_loss(network, slow_value, imagined)

    grad: Callable[..., Any] = jax.value_and_grad(actor_loss, has_aux=True)
    (actor_value, imagined), actor_gradients = grad(state.actor)
    imagined = jax.lax.stop_gradient(imagined)
    critic_value, critic_gradients = jax.value_and_grad(critic_loss)(state.critic)
    optimizers = Optimizers.of(config)
    actor, actor_opt_state, actor_norm = apply_gradients(
        optimizers.actor, state.actor, state.actor_opt_state, actor_gradients
    )
    new_critic, critic_opt_state, critic_norm = apply_gradients(
        optimizers.critic, state.critic, state.critic_opt_state, critic_gradients
    )
    metrics = {
        "actor/loss": actor_value,
        "actor/entropy": imagined.entropy,
        "actor/gradient": actor_norm,
        "critic/loss": critic_value,
        "critic/gradient": critic_norm,
        "imagined/return": imagined.returns.mean(),
        "imagined/scale": jnp.maximum(
            1, imagined.return_range[1] - imagined.return_range[0]
        ),
    }
    state = state._replace(
        actor=actor,
        actor_opt_state=actor_opt_state,
        critic=new_critic,
        critic_opt_state=critic_opt_state,
        slow_critic=slow,
        return_range=imagined.return_range,
    )
    return state, metrics
