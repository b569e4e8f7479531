"""The recurrent state-space model: a GRU, a prior and a posterior over the latent."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from fallow.agents.dreamer import latent
from fallow.agents.dreamer.follow import Inputs, Recurrence, State, draw, follow, gates
from fallow.agents.dreamer.layers import (
    NORM_EPSILON,
    Block,
    Linear,
    activate,
    hidden_weight,
    product,
)
from fallow.agents.shared.layers import Norm


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
    gru_weight: jax.Array  # (H + D, 3 D)
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
        self.gru_weight = hidden_weight(keys[1], n_hidden + n_deter, 3 * n_deter)
        self.gru_norm = Norm(3 * n_deter, NORM_EPSILON)
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
        return State(deter, stoch.reshape(-1).astype(self.gru_weight.dtype))

    def nothing(self, n: int) -> State:
        """(n, …) a state that holds nothing, for rows that begin anew."""
        n_stoch = self.n_categoricals * self.n_classes
        stoch = jnp.zeros((n, n_stoch), self.gru_weight.dtype)
        return State(jnp.zeros((n, len(self.initial))), stoch)

    def imagine(
        self, state: State, action: jax.Array, uniform: jax.Array | None
    ) -> tuple[State, jax.Array]:
        """One step without looking; returns the state and the prior's logits."""
        n_stoch = state.stoch.shape[-1]
        x = product(state.stoch, self.inward.weight[:n_stoch])
        x += product(action, self.inward.weight[n_stoch:])
        x = activate(self.inward.norm, x)
        joined = jnp.concatenate([x, state.deter.astype(x.dtype)], -1)
        deter = gates(self.gru_norm(product(joined, self.gru_weight)), state.deter)
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
        net = Recurrence(
            w1=self.inward.weight[:n_stoch],
            w2=self.gru_weight,
            w3=self.posterior.weight[:n_deter],
            w4=self.posterior_out.weight,
            norm1=self.inward.norm,
            norm2=self.gru_norm,
            norm3=self.posterior.norm,
            bias=self.posterior_out.bias,
            start=self.start(),
        )
        action = jnp.where(sequence.is_first[..., None], 0, sequence.action)
        inputs = Inputs(
            product(action, self.inward.weight[n_stoch:]),
            product(sequence.embed, self.posterior.weight[n_deter:]),
            sequence.is_first,
            sequence.uniform,
        )
        shape = (self.n_categoricals, self.n_classes)
        return follow(shape, unroll, net, state, inputs)
