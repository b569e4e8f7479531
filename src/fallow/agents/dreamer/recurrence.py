"""The parameters, inputs and outputs of the recurrence over observations."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from fallow.agents.shared.layers import Norm


class State(NamedTuple):
    """The latent state at one step; any leading axes."""

    deter: jax.Array  # (…, D) float32
    stoch: jax.Array  # (…, C K) one-hot, flat, in the type of the products

    @property
    def feature(self) -> jax.Array:
        """(…, C K + D) what every head sees."""
        return jnp.concatenate([self.stoch, self.deter.astype(self.stoch.dtype)], -1)


class Recurrence(NamedTuple):
    """All parameters of a posterior step."""

    w1: jax.Array
    w2: jax.Array
    w3: jax.Array
    w4: jax.Array
    norm1: Norm
    norm2: Norm
    norm3: Norm
    bias: jax.Array
    start: State


class Inputs(NamedTuple):
    """The inputs of each step, time first: (T, B, …)."""

    from_action: jax.Array
    from_embed: jax.Array
    is_first: jax.Array
    uniform: jax.Array | None
    """Noise of the samples, (T, B, C); None takes modes."""


class Products(NamedTuple):
    """Kept for the backward pass."""

    p1: jax.Array
    p2: jax.Array
    p3: jax.Array
    p4: jax.Array


class StepGrads(NamedTuple):
    """Gradients of a step's x, deter and hidden, and of its last product."""

    x: jax.Array
    deter: jax.Array
    hidden: jax.Array
    p4: jax.Array


Shape = tuple[int, int]
"""Of the latent: categoricals and classes."""


def begun(is_first: jax.Array, start: State, before: State) -> State:
    """The state before a step: the learned start where a row begins."""
    first = is_first[..., None]
    return jax.tree.map(lambda s, b: jnp.where(first, s, b), start, before)
