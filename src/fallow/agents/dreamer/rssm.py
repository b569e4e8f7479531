"""The recurrent state-space model: a GRU, a prior and a posterior over the latent."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from fallow.agents.dreamer.layers import (
    NORM_EPSILON,
    Block,
    Linear,
    hidden_weight,
    product,
)
from fallow.agents.dreamer.ops import Logits, norm_gates, norm_silu, sample_latent
from fallow.agents.dreamer.posterior_scan import posterior_scan
from fallow.agents.dreamer.recurrence import Inputs, Recurrence, State
from fallow.agents.shared.layers import Norm


class Sequence(NamedTuple):
    """Observed sequences, time first."""

    embed: jax.Array  # (T, B, E)
    action: jax.Array  # (T, B, A), the one that led there
    is_first: jax.Array  # (T, B)
    uniform: jax.Array | None  # (T, B, C) noise of the samples; None takes modes


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

    @property
    def latent_shape(self) -> tuple[int, int]:
        """Categoricals and classes."""
        return self.n_categoricals, self.n_classes

    def expected(self, deter: jax.Array) -> Logits:
        """The prior: what is expected before looking."""
        p = product(self.prior(deter), self.prior_out.weight)
        return Logits(p, self.prior_out.bias, self.latent_shape)

    def start(self) -> State:
        """The learned state before anything happened, without leading axes."""
        deter = jnp.tanh(self.initial)
        return State(deter, sample_latent(self.expected(deter), None))

    def zero_state(self, n: int) -> State:
        """(n, …) all zeros, for rows that begin anew."""
        n_stoch = self.n_categoricals * self.n_classes
        stoch = jnp.zeros((n, n_stoch), self.gru_weight.dtype)
        return State(jnp.zeros((n, len(self.initial))), stoch)

    def imagine(
        self, state: State, action: jax.Array, uniform: jax.Array | None
    ) -> State:
        """One step without looking."""
        n_stoch = state.stoch.shape[-1]
        x = product(state.stoch, self.inward.weight[:n_stoch])
        x += product(action, self.inward.weight[n_stoch:])
        x = norm_silu(self.inward.norm, x)
        joined = jnp.concatenate([x, state.deter.astype(x.dtype)], -1)
        deter = norm_gates(self.gru_norm, product(joined, self.gru_weight), state.deter)
        return State(deter, sample_latent(self.expected(deter), uniform))

    def observe(
        self, state: State, sequence: Sequence, unroll: int = 1
    ) -> tuple[State, Logits]:
        """States and posterior (T, B, …) of observations, from `state` (B, …).

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
        states, p4 = posterior_scan(self.latent_shape, unroll, net, state, inputs)
        bias = jax.lax.stop_gradient(net.bias)  # `posterior_scan` gives its gradient
        return states, Logits(p4, bias, self.latent_shape)
