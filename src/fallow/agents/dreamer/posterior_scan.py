"""The recurrence over a sequence of observations, with its gradient by hand.

Automatic differentiation of this scan works, but keeps a dozen arrays a step and sums
every parameter's gradient inside the loop, with few rows each time. Here the backward
pass keeps the products only and returns the gradients of the norms' outputs; the
gradients of all parameters are computed from those for all steps together. A test
compares it with automatic differentiation.

With prev = the state before, or the learned start where a row begins:

    p1 = prev.stoch W1 + from_action     x      = silu(norm1(p1))
    p2 = [x, prev.deter] W2              deter  = gates(norm2(p2), prev.deter)
    p3 = deter W3 + from_embed           hidden = silu(norm3(p3))
    p4 = hidden W4                       stoch  = sample(p4 + bias)
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from fallow.agents.dreamer.layers import product, weight_gradient
from fallow.agents.dreamer.ops import (
    Logits,
    norm_gates,
    norm_gates_back,
    norm_silu,
    norm_silu_back,
    posterior_backward,
    posterior_forward,
    sample_latent,
    sample_latent_back,
)
from fallow.agents.dreamer.recurrence import (
    Inputs,
    Products,
    Recurrence,
    Shape,
    State,
    StepGrads,
    begun,
)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def posterior_scan(
    shape: Shape, unroll: int, net: Recurrence, state: State, inputs: Inputs
) -> tuple[State, jax.Array]:
    """States and p4 (T, B, …) of a sequence that begins in `state` (B, …).

    The bias gets its whole gradient here, so that whoever adds it to p4 must hold it
    still.
    """
    (states, p4), _ = _forward(shape, unroll, net, state, inputs)
    return states, p4


def _forward_scan(
    shape: Shape, unroll: int, net: Recurrence, state: State, inputs: Inputs
) -> tuple[State, Products]:
    def step(state: State, at_step: Inputs) -> tuple[State, Any]:
        prev = begun(at_step.is_first, net.start, state)
        p1 = product(prev.stoch, net.w1) + at_step.from_action
        p2 = product(_joined(norm_silu(net.norm1, p1), prev.deter), net.w2)
        deter = norm_gates(net.norm2, p2, prev.deter)
        p3 = product(deter, net.w3) + at_step.from_embed
        p4 = product(norm_silu(net.norm3, p3), net.w4)
        state = State(
            deter, sample_latent(Logits(p4, net.bias, shape), at_step.uniform)
        )
        return state, (state, Products(p1, p2, p3, p4))

    _, out = jax.lax.scan(step, state, inputs, unroll=unroll)
    return out


def _forward(
    shape: Shape, unroll: int, net: Recurrence, state: State, inputs: Inputs
) -> tuple[tuple[State, jax.Array], Any]:
    states, products = posterior_forward(
        _forward_scan, shape, unroll, net, state, inputs
    )
    return (states, products.p4), (net, state, inputs, states, products)


def _backward(
    shape: Shape, unroll: int, saved: Any, d_out: tuple[State, jax.Array]
) -> tuple[Recurrence, State, Inputs]:
    net, state, inputs, states, products = saved
    before = jax.tree.map(
        lambda first, x: jnp.concatenate([first[None], x[:-1]]), state, states
    )
    prev = begun(inputs.is_first, net.start, before)
    kept = (prev.deter, products)
    grads, d_state, d_start = posterior_backward(
        _backward_scan, shape, unroll, net, inputs, kept, d_out
    )
    d_norm1, d_p1 = norm_silu_back(net.norm1, products.p1, grads.x)
    d_norm2, d_p2, _ = norm_gates_back(net.norm2, products.p2, prev.deter, grads.deter)
    d_norm3, d_p3 = norm_silu_back(net.norm3, products.p3, grads.hidden)
    x, hidden = norm_silu(net.norm1, products.p1), norm_silu(net.norm3, products.p3)
    d_net = Recurrence(
        weight_gradient(prev.stoch, d_p1),
        weight_gradient(_joined(x, prev.deter), d_p2),
        weight_gradient(states.deter.astype(d_p1.dtype), d_p3),
        weight_gradient(hidden, grads.p4),
        d_norm1,
        d_norm2,
        d_norm3,
        grads.p4.astype(jnp.float32).sum((0, 1)),
        d_start,
    )
    d_inputs = inputs._replace(
        from_action=d_p1, from_embed=d_p3, is_first=None, uniform=None
    )
    return d_net, d_state, d_inputs


def _backward_scan(
    shape: Shape, unroll: int, net: Recurrence, inputs: Inputs, kept: Any, d_out: Any
) -> tuple[StepGrads, State, State]:
    """Gradients of every step, of the first state and of the start."""

    def step(carry: tuple[State, State], at_step: Any) -> tuple[Any, StepGrads]:
        d_state, d_start = carry
        is_first, uniform, (prev_deter, p), (d_states, d_p4) = at_step
        logits = Logits(p.p4, net.bias, shape)
        d_p4 += sample_latent_back(logits, uniform, d_states.stoch + d_state.stoch)
        d_hidden = d_p4 @ net.w4.T
        _, d_p3 = norm_silu_back(net.norm3, p.p3, d_hidden)
        d_deter = d_states.deter + d_state.deter
        d_deter += (d_p3 @ net.w3.T).astype(jnp.float32)
        _, d_p2, d_prev_deter = norm_gates_back(net.norm2, p.p2, prev_deter, d_deter)
        d_joined = d_p2 @ net.w2.T
        d_x, d_from_joined = jnp.split(d_joined, [p.p1.shape[-1]], -1)
        _, d_p1 = norm_silu_back(net.norm1, p.p1, d_x)
        d_prev = State(d_prev_deter + d_from_joined, d_p1 @ net.w1.T)
        first = is_first[:, None]
        d_state = jax.tree.map(lambda d: jnp.where(first, 0, d), d_prev)
        d_start = jax.tree.map(
            lambda s, d: s + jnp.where(first, d, 0).astype(jnp.float32), d_start, d_prev
        )
        return (d_state, d_start), StepGrads(d_x, d_deter, d_hidden, d_p4)

    n = inputs.is_first.shape[1]
    zeros = jax.tree.map(lambda s: jnp.zeros((n, len(s)), s.dtype), net.start)
    sums = jax.tree.map(lambda s: jnp.zeros((n, len(s))), net.start)
    xs = (inputs.is_first, inputs.uniform, kept, d_out)
    (d_state, d_start), grads = jax.lax.scan(
        step, (zeros, sums), xs, reverse=True, unroll=unroll
    )
    d_start = jax.tree.map(lambda s, d: d.sum(0).astype(s.dtype), net.start, d_start)
    return grads, d_state, d_start


posterior_scan.defvjp(_forward, _backward)


def _joined(x: jax.Array, deter: jax.Array) -> jax.Array:
    return jnp.concatenate([x, deter.astype(x.dtype)], -1)
