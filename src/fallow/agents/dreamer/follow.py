"""The recurrence over a sequence of observations, with its gradient by hand.

Automatic differentiation of this scan works, but keeps a dozen arrays a step and sums
every parameter's gradient inside the loop, with few rows to work on. Here the way back
keeps the products only and gives out the gradients at the norms; what all parameters
get follows from those at once, for all steps together. A test holds it against
automatic differentiation.

With prev = the state before, or the learned start where a row begins:

    p1 = prev.stoch W1 + from_action     x      = silu(norm1(p1))
    p2 = [x, prev.deter] W2              deter  = gates(norm2(p2), prev.deter)
    p3 = deter W3 + from_embed           hidden = silu(norm3(p3))
    p4 = hidden W4 + b  (the logits)     stoch  = draw(p4)
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from fallow.agents.dreamer import latent
from fallow.agents.dreamer.layers import product
from fallow.agents.shared.layers import Norm


class State(NamedTuple):
    """What the model knows at one step; leading axes are free."""

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
    """What each step reads, time first: (T, B, …)."""

    from_action: jax.Array
    from_embed: jax.Array
    is_first: jax.Array
    uniform: jax.Array | None
    """Noise of the draws, (T, B, C); None takes modes."""


class Products(NamedTuple):
    """Kept for the way back; the fourth is the logits, which are given out anyway."""

    p1: jax.Array
    p2: jax.Array
    p3: jax.Array


class _Soft(NamedTuple):
    """Gradients at the norms of one step."""

    n1: jax.Array
    n2: jax.Array
    n3: jax.Array
    logits: jax.Array


def gates(normed: jax.Array, deter: jax.Array) -> jax.Array:
    """From the normed joint product of input and deter (…, 3 D) to the next deter.

    The reset gate multiplies the candidate after the product and the norm, unlike in
    the usual GRU.
    """
    reset, candidate, update = jnp.split(normed, 3, -1)
    candidate = jnp.tanh(jax.nn.sigmoid(reset) * candidate)
    update = jax.nn.sigmoid(update - 1)
    return update * candidate + (1 - update) * deter


def draw(logits: jax.Array, uniform: jax.Array | None, dtype: Any) -> jax.Array:
    """A flat one-hot latent of logits (…, C, K): a draw, or the mode without noise."""
    one_hot = latent.mode(logits) if uniform is None else latent.sample(logits, uniform)
    return one_hot.reshape(*one_hot.shape[:-2], -1).astype(dtype)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def follow(
    latent_shape: tuple[int, int],
    unroll: int,
    net: Recurrence,
    state: State,
    inputs: Inputs,
) -> tuple[State, jax.Array]:
    """States and logits (T, B, …) of a sequence that begins in `state` (B, …)."""
    states, logits, _ = _forward_scan(latent_shape, unroll, net, state, inputs)
    return states, logits


def _forward_scan(
    latent_shape: tuple[int, int],
    unroll: int,
    net: Recurrence,
    state: State,
    inputs: Inputs,
) -> tuple[State, jax.Array, Products]:
    def step(state: State, x: Inputs) -> tuple[State, Any]:
        prev = _begun(x.is_first, net.start, state)
        p1 = product(prev.stoch, net.w1) + x.from_action
        joined = _joined(_silu(net.norm1(p1), p1.dtype), prev.deter)
        p2 = product(joined, net.w2)
        deter = gates(net.norm2(p2), prev.deter)
        p3 = product(deter, net.w3) + x.from_embed
        p4 = product(_silu(net.norm3(p3), p3.dtype), net.w4)
        logits = (p4.astype(jnp.float32) + net.bias).reshape(len(deter), *latent_shape)
        state = State(deter, draw(logits, x.uniform, p1.dtype))
        return state, (state, logits, Products(p1, p2, p3))

    _, out = jax.lax.scan(step, state, inputs, unroll=unroll)
    return out


def _forward(
    latent_shape: tuple[int, int],
    unroll: int,
    net: Recurrence,
    state: State,
    inputs: Inputs,
) -> tuple[tuple[State, jax.Array], Any]:
    states, logits, products = _forward_scan(latent_shape, unroll, net, state, inputs)
    return (states, logits), (net, state, inputs, states, logits, products)


def _backward(
    latent_shape: tuple[int, int], unroll: int, saved: Any, d_out: Any
) -> tuple[Recurrence, State, Inputs]:
    net, state, inputs, states, logits, products = saved
    before = jax.tree.map(
        lambda first, x: jnp.concatenate([first[None], x[:-1]]), state, states
    )
    prev = _begun(inputs.is_first, net.start, before)
    soft, d_state, d_start = _backward_scan(
        unroll, net, inputs, (prev.deter, logits, products), d_out
    )
    d_norm1, d_p1 = _pull_norm(net.norm1, products.p1, soft.n1)
    d_norm2, d_p2 = _pull_norm(net.norm2, products.p2, soft.n2)
    d_norm3, d_p3 = _pull_norm(net.norm3, products.p3, soft.n3)
    x = _silu(net.norm1(products.p1), d_p1.dtype)
    hidden = _silu(net.norm3(products.p3), d_p1.dtype)
    d_net = Recurrence(
        _outer(prev.stoch, d_p1),
        _outer(_joined(x, prev.deter), d_p2),
        _outer(states.deter.astype(d_p1.dtype), d_p3),
        _outer(hidden, soft.logits.astype(d_p1.dtype)),
        d_norm1,
        d_norm2,
        d_norm3,
        soft.logits.sum((0, 1)),
        d_start,
    )
    d_inputs = inputs._replace(
        from_action=d_p1, from_embed=d_p3, is_first=None, uniform=None
    )
    return d_net, d_state, d_inputs


def _backward_scan(
    unroll: int, net: Recurrence, inputs: Inputs, kept: Any, d_out: Any
) -> tuple[_Soft, State, State]:
    """Gradients at the norms of every step, of the first state and of the start."""
    dtype = net.w1.dtype

    def step(carry: tuple[State, State], x: Any) -> tuple[Any, _Soft]:
        d_state, d_start = carry
        is_first, uniform, (prev_deter, logits, products), (d_states, d_logits) = x
        d_stoch = (d_states.stoch + d_state.stoch).astype(jnp.float32)
        d_logits += _pull_draw(logits, uniform, d_stoch)
        d_logits = d_logits.reshape(len(prev_deter), -1)
        d_hidden = d_logits.astype(dtype) @ net.w4.T
        d_n3, d_p3 = _pull_silu(net.norm3, products.p3, d_hidden)
        d_deter = d_states.deter + d_state.deter
        d_deter += (d_p3 @ net.w3.T).astype(jnp.float32)
        normed, pull_norm = jax.vjp(net.norm2, products.p2)
        d_n2, d_prev_deter = jax.vjp(gates, normed, prev_deter)[1](d_deter)
        d_joined = pull_norm(d_n2)[0] @ net.w2.T
        d_x, d_from_joined = jnp.split(d_joined, [products.p1.shape[-1]], -1)
        d_n1, d_p1 = _pull_silu(net.norm1, products.p1, d_x)
        d_prev = State(d_prev_deter + d_from_joined, d_p1 @ net.w1.T)
        first = is_first[:, None]
        d_state = jax.tree.map(lambda d: jnp.where(first, 0, d), d_prev)
        d_start = jax.tree.map(
            lambda s, d: s + jnp.where(first, d, 0).astype(jnp.float32), d_start, d_prev
        )
        return (d_state, d_start), _Soft(d_n1, d_n2, d_n3, d_logits)

    n = inputs.is_first.shape[1]
    zeros = jax.tree.map(lambda s: jnp.zeros((n, len(s)), s.dtype), net.start)
    sums = jax.tree.map(lambda s: jnp.zeros((n, len(s))), net.start)
    xs = (inputs.is_first, inputs.uniform, kept, d_out)
    (d_state, d_start), soft = jax.lax.scan(
        step, (zeros, sums), xs, reverse=True, unroll=unroll
    )
    d_start = jax.tree.map(lambda s, d: d.sum(0).astype(s.dtype), net.start, d_start)
    return soft, d_state, d_start


follow.defvjp(_forward, _backward)


def _begun(is_first: jax.Array, start: State, before: State) -> State:
    """The state before a step: the learned start where a row begins."""
    first = is_first[..., None]
    return jax.tree.map(lambda s, b: jnp.where(first, s, b), start, before)


def _joined(x: jax.Array, deter: jax.Array) -> jax.Array:
    return jnp.concatenate([x, deter.astype(x.dtype)], -1)


def _silu(normed: jax.Array, dtype: Any) -> jax.Array:
    return jax.nn.silu(normed).astype(dtype)


def _pull_silu(
    norm: Norm, p: jax.Array, d_out: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """From the gradient behind silu(norm(p)) to those at the norm and at p."""
    normed, pull_norm = jax.vjp(norm, p)
    (d_normed,) = jax.vjp(jax.nn.silu, normed)[1](d_out.astype(jnp.float32))
    return d_normed, pull_norm(d_normed)[0]


def _pull_norm(norm: Norm, p: jax.Array, d_normed: jax.Array) -> tuple[Norm, jax.Array]:
    """Gradients of the norm's parameters and of p, for all steps."""
    return jax.vjp(lambda norm, p: norm(p), norm, p)[1](d_normed)


def _pull_draw(
    logits: jax.Array, uniform: jax.Array | None, d_stoch: jax.Array
) -> jax.Array:
    """The straight-through gradient: of probabilities, or of their logs for a mode."""
    soft = latent.mixed if uniform is not None else latent.log_mixed
    (d_logits,) = jax.vjp(soft, logits)[1](d_stoch.reshape(logits.shape))
    return d_logits


def _outer(x: jax.Array, d_y: jax.Array) -> jax.Array:
    """A weight's gradient, over all steps and rows at once."""
    return jnp.einsum("tbi,tbo->io", x, d_y)
