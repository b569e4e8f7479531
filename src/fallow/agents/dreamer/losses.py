"""The losses of world model, actor and critic."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from fallow.agents import compiling
from fallow.agents.dreamer import latent
from fallow.agents.dreamer.deferred_grads import Given, Products, scan
from fallow.agents.dreamer.heads import BinnedScalars
from fallow.agents.dreamer.layers import MLP, saving_products
from fallow.agents.dreamer.networks import Actor, Policy, WorldModel
from fallow.agents.dreamer.ops import norm_silu, stack_steps
from fallow.agents.dreamer.recurrence import State
from fallow.agents.dreamer.rssm import RSSM, Sequence
from fallow.agents.shared.bins import symlog

DYNAMICS_SCALE, REPRESENTATION_SCALE = 0.5, 0.1
FREE_NATS = 1.0
"""A divergence below this is not pressed further."""
NEGLIGIBLE = 1e-8
"""Squared errors of the decoder below this count as zero."""
DISCOUNT = 0.997
LAMBDA = 0.95
ENTROPY_SCALE = 3e-4
QUANTILES = (0.05, 0.95)
NORMALISER_RATE = 0.01

Batch = dict[str, jax.Array]
"""observation, action, reward, is_first, time first: (T, B, …)."""
Metrics = dict[str, jax.Array]


class Errors(NamedTuple):
    """The parts of the world model's loss, each (T, B)."""

    decoder: jax.Array
    reward: jax.Array
    continues: jax.Array
    dynamics: jax.Array
    """KL(posterior || prior) that moves the prior."""
    representation: jax.Array
    """The same number; it moves the posterior."""

    def total(self) -> jax.Array:
        """Their sum, divergences balanced and above the free nats."""
        return (
            self.decoder
            + self.reward
            + self.continues
            + DYNAMICS_SCALE * jnp.maximum(self.dynamics, FREE_NATS)
            + REPRESENTATION_SCALE * jnp.maximum(self.representation, FREE_NATS)
        )


def model_errors(
    model: WorldModel, batch: Batch, uniform: jax.Array | None, unroll: int = 1
) -> tuple[Errors, State]:
    """Errors of the model along a batch, and the states (T, B, …)."""
    sequence = Sequence(
        saving_products(WorldModel.embed)(model, batch["observation"]),
        batch["action"],
        batch["is_first"],
        uniform,
    )
    begin = model.rssm.zero_state(batch["is_first"].shape[1])
    states, posterior = model.rssm.observe(begin, sequence, unroll)
    return _errors(model, batch, states, posterior()), states


@saving_products
def _errors(
    model: WorldModel, batch: Batch, states: State, posterior: jax.Array
) -> Errors:
    still = jax.lax.stop_gradient
    feature = states.feature
    prior = model.rssm.expected(states.deter)()
    squared = jnp.square(model.decoder(feature) - symlog(batch["observation"]))
    squared = jnp.where(squared < NEGLIGIBLE, 0, squared)
    return Errors(
        decoder=squared.sum(-1),
        reward=BinnedScalars.of(model.reward, feature).cross_entropy(batch["reward"]),
        # episodes end by the time limit only, so the target is always 1
        continues=jax.nn.softplus(-model.continues(feature)[..., 0]),
        dynamics=latent.divergence(still(posterior), prior),
        representation=latent.divergence(posterior, still(prior)),
    )


class Noise(NamedTuple):
    """Random numbers of imagination, for H - 1 steps from N starts."""

    uniform: jax.Array  # (H - 1, N, C)
    normal: jax.Array  # (H - 1, N, A)


def imagine(actor: Actor, model: WorldModel, start: State, noise: Noise) -> jax.Array:
    """(H, N, F) features along the actor's own path, the start first.

    The reference takes one more prior step, whose result is unused; it is left out.
    """
    blocks = actor.trunk.blocks
    weights = {str(layer): block.weight for layer, block in enumerate(blocks)}
    weights["out"] = actor.out.weight
    small = ([block.norm for block in blocks], actor.out.bias)
    given = Given(weights, small, model.rssm)
    # a loop copies into and out of the arrays of all steps: on an accelerator a third
    # of its kernels, and its steps are few
    unroll = 1 if compiling.on_processor() else len(noise.normal)
    _, features = scan(_imagine_step, unroll, given, start, noise)
    return stack_steps(start.feature, *features)


def _imagine_step(
    products: Products, small: Any, rssm: RSSM, state: State, noise: Noise
) -> tuple[State, jax.Array]:
    norms, bias = small
    x = jax.lax.stop_gradient(state.feature)
    for layer, norm in enumerate(norms):
        x = norm_silu(norm, products(str(layer), x))
    policy = Policy.of(products("out", x).astype(jnp.float32) + bias)
    action = policy.sample(noise.normal)
    state = rssm.imagine(state, action, noise.uniform)
    return state, state.feature


def lambda_returns(
    reward: jax.Array, continues: jax.Array, value: jax.Array
) -> jax.Array:
    """R_t = r_{t+1} + c_{t+1} ((1 - lambda) v_{t+1} + lambda R_{t+1}), R_H = v_H.

    From (H, N) numbers at every state to (H - 1, N) returns.
    """
    bootstrap = reward[1:] + continues[1:] * (1 - LAMBDA) * value[1:]

    later, returns = value[-1], []
    for t in reversed(range(len(bootstrap))):
        later = bootstrap[t] + LAMBDA * continues[t + 1] * later
        returns.append(later)
    return jnp.stack(returns[::-1])


def normalized(
    return_range: jax.Array, returns: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Moving 5 % and 95 % quantiles of returns, and the scale they give, 1 or more."""
    now = jnp.quantile(jax.lax.stop_gradient(returns), jnp.array(QUANTILES))
    return_range = (1 - NORMALISER_RATE) * return_range + NORMALISER_RATE * now
    return return_range, jnp.maximum(1.0, return_range[1] - return_range[0])


class Imagined(NamedTuple):
    """Results of the actor's loss that the critic's loss and the metrics use."""

    features: jax.Array  # (H, N, F)
    returns: jax.Array  # (H - 1, N)
    weights: jax.Array  # (H - 1, N)
    return_range: jax.Array  # (2,)
    entropy: jax.Array


def actor_loss(
    actor: Actor,
    model: WorldModel,
    critic: MLP,
    return_range: jax.Array,
    start: State,
    noise: Noise,
) -> tuple[jax.Array, Imagined]:
    """- mean[w_t (R_t - v_t) / scale] - 3e-4 mean[H_t], through the dynamics.

    The value in the baseline and the features under the entropy are not held still.
    The reference's second, unused pass of the actor is left out.
    """
    features = imagine(actor, model, start, noise)
    reward = _estimate(model.reward, features)
    continues = _discount(model.continues, features)
    value = _estimate(critic, features)
    returns = lambda_returns(reward, continues, value)
    still = jax.lax.stop_gradient(continues[:-2])
    weights = jnp.concatenate([jnp.ones_like(value[:1]), jnp.cumprod(still, 0)])
    return_range, scale = normalized(return_range, returns)
    entropy = _entropy(actor, features)[:-1]  # a slice of all features costs more
    advantage = (returns - value[:-1]) / scale
    loss = -(weights * advantage).mean() - ENTROPY_SCALE * entropy.mean()
    return loss, Imagined(features, returns, weights, return_range, entropy.mean())


@saving_products
def _estimate(head: MLP, features: jax.Array) -> jax.Array:
    return BinnedScalars.of(head, features).estimate()


@saving_products
def _discount(head: MLP, features: jax.Array) -> jax.Array:
    return DISCOUNT * jax.nn.sigmoid(head(features)[..., 0])


@saving_products
def _entropy(actor: Actor, features: jax.Array) -> jax.Array:
    return actor(features).entropy()


@saving_products
def critic_loss(critic: MLP, slow: MLP, imagined: Imagined) -> jax.Array:
    """mean[w_t (CE(v, R_t) + CE(v, slow v))] on states held still."""
    # all H states, so that the forward pass is the one of the actor's loss
    slow_value = BinnedScalars.of(slow, imagined.features).estimate()
    returns = jnp.concatenate([imagined.returns, slow_value[-1:]])  # the last is unused
    values = BinnedScalars.of(critic, imagined.features)
    loss = values.cross_entropy(returns, slow_value)[:-1]
    return (imagined.weights * loss).mean()
