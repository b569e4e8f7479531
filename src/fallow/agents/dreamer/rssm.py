"""The recurrent state-space model: a GRU, a prior and a posterior over the latent."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from fallow.agents.dreamer import latent
from fallow.agents.dreamer.hoist import Products, scan
from fallow.agents.dreamer.layers import (
    Block,
    Linear,
    Norm,
    activate,
    hidden_weight,
    product,
)


class State(NamedTuple):
    """What the model knows at one step; leading axes are free."""

    deter: jax.Array  # (…, D) float32
    stoch: jax.Array  # (…, C K) one-hot, flat, in the type of the products

    @property
    def feature(self) -> jax.Array:
        """(…, C K + D) what every head sees."""
        return jnp.concatenate([self.stoch, self.deter.astype(self.stoch.dtype)], -1)


class Sequence(NamedTuple):
    """What is observed, time first."""

    embed: jax.Array  # (T, B, E)
    action: jax.Array  # (T, B, A), the one that led there
    is_first: jax.Array  # (T, B)
    uniform: jax.Array | None  # (T, B, C) noise of the draws; None takes modes


class RSSM(eqx.Module):
    """Networks of the latent dynamics.

    A step is x = Block[stoch, action]; deter = GRU(x, deter); the prior's logits come
    from deter, the posterior's from deter and the embedded observation.
    """

    initial: jax.Array  # (D,), learned; the first deter is its tanh
    inward: Block
    gru: jax.Array  # (H + D, 3 D)
    gru_norm: Norm
    prior: Block
    prior_out: Linear
    posterior: Block
    posterior_out: Linear
    n_categoricals: int = eqx.field(static=True)
    n_classes: int = eqx.field(static=True)

    def __init__(
        self,
        key: jax.Array,
        n_deter: int,
        n_hidden: int,
        latent_shape: tuple[int, int],
        n_embed: int,
        n_actuators: int,
    ) -> None:
        self.n_categoricals, self.n_classes = latent_shape
        n_stoch = self.n_categoricals * self.n_classes
        keys = jax.random.split(key, 6)
        self.initial = jnp.zeros(n_deter)
        self.inward = Block(keys[0], n_stoch + n_actuators, n_hidden)
        self.gru = hidden_weight(keys[1], n_hidden + n_deter, 3 * n_deter)
        self.gru_norm = Norm(3 * n_deter)
        self.prior = Block(keys[2], n_deter, n_hidden)
        self.prior_out = Linear(keys[3], n_hidden, n_stoch)
        self.posterior = Block(keys[4], n_deter + n_embed, n_hidden)
        self.posterior_out = Linear(keys[5], n_hidden, n_stoch)

    def split(self, logits: jax.Array) -> jax.Array:
        """(…, C K) as (…, C, K)."""
        shape = (*logits.shape[:-1], self.n_categoricals, self.n_classes)
        return logits.reshape(shape)

    def prior_logits(self, deter: jax.Array) -> jax.Array:
        """(…, C, K) what is expected before looking."""
        return self.split(self.prior_out(self.prior(deter)))

    def start(self) -> State:
        """The learned state before anything happened, without leading axes."""
        deter = jnp.tanh(self.initial)
        stoch = latent.mode(self.prior_logits(deter))
        return State(deter, stoch.reshape(-1).astype(self.gru.dtype))

    def nothing(self, n: int) -> State:
        """(n, …) a state that holds nothing, for rows that begin anew."""
        n_stoch = self.n_categoricals * self.n_classes
        return State(
            jnp.zeros((n, len(self.initial))), jnp.zeros((n, n_stoch), self.gru.dtype)
        )

    def imagine(
        self, state: State, action: jax.Array, uniform: jax.Array | None
    ) -> tuple[State, jax.Array]:
        """One step without looking; returns the state and the prior's logits."""
        action = action.astype(state.stoch.dtype)
        x = self.inward(jnp.concatenate([state.stoch, action], -1))
        joined = jnp.concatenate([x, state.deter.astype(x.dtype)], -1)
        deter = gated(self.gru_norm, product(joined, self.gru), state.deter)
        logits = self.prior_logits(deter)
        return State(deter, draw(logits, uniform, x.dtype)), logits

    def observe(
        self, state: State, sequence: Sequence, unroll: int = 1
    ) -> tuple[State, jax.Array]:
        """Follow observations from `state` (B, …); (T, B, …) states and logits.

        What does not depend on the recurrence is computed for all steps before it (the
        products with action and embedding) or after it (the prior).
        """
        n_stoch, n_deter = state.stoch.shape[-1], state.deter.shape[-1]
        weights = {
            "inward": self.inward.weight[:n_stoch],
            "gru": self.gru,
            "posterior": self.posterior.weight[:n_deter],
            "posterior_out": self.posterior_out.weight,
        }
        action = jnp.where(sequence.is_first[..., None], 0, sequence.action)
        xs = (
            product(action, self.inward.weight[n_stoch:]),
            product(sequence.embed, self.posterior.weight[n_deter:]),
            sequence.is_first,
            sequence.uniform,
        )
        small = _Small(
            self.inward.norm,
            self.gru_norm,
            self.posterior.norm,
            self.posterior_out.bias,
            self.start(),
        )
        step = partial(_observe_step, (self.n_categoricals, self.n_classes))
        _, (states, logits) = scan(step, unroll, weights, small, state, xs)
        return states, logits


def gated(norm: Norm, gates: jax.Array, deter: jax.Array) -> jax.Array:
    """From the joint product of input and deter (…, 3 D) to the next deter.

    The reset gate multiplies the candidate after the product and the norm, unlike in
    the usual GRU.
    """
    reset, candidate, update = jnp.split(norm(gates), 3, -1)
    candidate = jnp.tanh(jax.nn.sigmoid(reset) * candidate)
    update = jax.nn.sigmoid(update - 1)
    return update * candidate + (1 - update) * deter


def draw(logits: jax.Array, uniform: jax.Array | None, dtype: Any) -> jax.Array:
    """A flat one-hot latent: a draw, or the mode without noise."""
    one_hot = latent.mode(logits) if uniform is None else latent.sample(logits, uniform)
    return one_hot.reshape(*one_hot.shape[:-2], -1).astype(dtype)


class _Small(NamedTuple):
    """What a posterior step needs beside the four matrices."""

    inward: Norm
    gru: Norm
    posterior: Norm
    bias: jax.Array
    start: State


def _observe_step(
    latent_shape: tuple[int, int],
    products: Products,
    small: _Small,
    state: State,
    x: tuple[jax.Array, jax.Array, jax.Array, jax.Array | None],
) -> tuple[State, tuple[State, jax.Array]]:
    from_action, from_embed, is_first, uniform = x
    first = is_first[..., None]
    state = State(
        jnp.where(first, small.start.deter, state.deter),
        jnp.where(first, small.start.stoch, state.stoch),
    )
    x_in = activate(small.inward, products("inward", state.stoch) + from_action)
    joined = jnp.concatenate([x_in, state.deter.astype(x_in.dtype)], -1)
    deter = gated(small.gru, products("gru", joined), state.deter)
    hidden = products("posterior", deter) + from_embed
    out = products("posterior_out", activate(small.posterior, hidden))
    logits = (out.astype(jnp.float32) + small.bias).reshape(
        *out.shape[:-1], *latent_shape
    )
    state = State(deter, draw(logits, uniform, x_in.dtype))
    return state, (state, logits)
