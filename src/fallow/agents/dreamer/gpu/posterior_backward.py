"""The gradient of `posterior_forward`: four products and four kernels a step.

From the last step to the first:

    sample_back  d p4, through the sample
    silu_back    d p3, through hidden
    gates_back   d p2, and of the deter before
    join_back    d p1, and the rest of the deter before
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from fallow.agents.dreamer.gpu import kernel_math
from fallow.agents.dreamer.gpu.launch import (
    like,
    rows_of,
    run,
    steps_of,
    tile_rows,
    whole_arrays,
    whole_row,
)
from fallow.agents.dreamer.gpu.posterior_forward import begins_of, flat, whole_norm
from fallow.agents.dreamer.recurrence import Inputs, Recurrence, Shape, State, StepGrads
from fallow.agents.shared.layers import Norm


def backward(
    shape: Shape, net: Recurrence, inputs: Inputs, kept: Any, d_out: Any
) -> tuple[StepGrads, State, State]:
    """As `posterior_scan._backward_scan`."""
    n_steps, n = inputs.is_first.shape
    kind, n_deter = net.w1.dtype, len(net.start.deter)
    begins = begins_of(inputs.is_first)
    prev_deter, p = kept
    d_states, d_p4s = d_out
    p4, d_p4s, d_stochs = (
        x.reshape(n_steps, n, *shape) for x in (p.p4, d_p4s, d_states.stoch)
    )

    def step(i: jax.Array, carry: Any) -> Any:
        d_prev, d_start, grads = carry  # of the step after, not yet cut where it began
        at = i.reshape(1)  # counted from the last
        d_p4, d_start_stoch, all_p4 = _sample_back(
            at, shape, net, (p4, d_p4s, d_stochs), d_prev.stoch, begins,
            d_start.stoch, grads.p4,
        )  # fmt: skip
        d_hidden = flat(d_p4) @ net.w4.T
        d_p3, all_hidden = _silu_back(at, net.norm3, p.p3, d_hidden, grads.hidden)
        d_p2, d_before, d_start_deter, all_deter = _gates_back(
            at, net, (p.p2, prev_deter, d_states.deter), d_p3 @ net.w3.T,
            d_prev.deter, begins, d_start.deter, grads.deter,
        )  # fmt: skip
        d_joined = d_p2 @ net.w2.T
        d_p1, d_before, all_x = _join_back(at, net, p.p1, d_joined, d_before, grads.x)
        d_stoch = (d_p1 @ net.w1.T).reshape(n, *shape)
        grads = StepGrads(all_x, all_deter, all_hidden, all_p4)
        return State(d_before, d_stoch), State(d_start_deter, d_start_stoch), grads

    no_gradient = State(jnp.zeros((n, n_deter)), jnp.zeros((n, *shape), kind))
    sums = State(jnp.zeros((n, n_deter)), jnp.zeros((n, *shape)))
    grads = StepGrads(
        jnp.zeros_like(p.p1),
        jnp.zeros_like(prev_deter),
        jnp.zeros_like(p.p3),
        jnp.zeros_like(p4),
    )
    d_prev, d_start, grads = jax.lax.fori_loop(
        0, n_steps, step, (no_gradient, sums, grads)
    )
    first = inputs.is_first[0][:, None]
    d_prev, d_start = (
        state._replace(stoch=flat(state.stoch)) for state in (d_prev, d_start)
    )
    d_state = jax.tree.map(lambda d: jnp.where(first, 0, d), d_prev)
    d_start = jax.tree.map(
        lambda s, total, d: (total + jnp.where(first, d, 0)).sum(0).astype(s.dtype),
        net.start,
        d_start,
        d_prev,
    )
    return grads._replace(p4=flat(grads.p4, 2)), d_state, d_start


def _sample_back(
    at: jax.Array, shape: Shape, net: Recurrence, kept: Any, d_next: Any, begins: Any,
    d_start: Any, all_p4: Any,
) -> list[jax.Array]:  # fmt: skip
    """Gradient of p4; what rows that begin after this step add to the start's."""
    n, kind = len(d_next), d_next.dtype

    def kernel(*refs: Any) -> None:
        at, p4, d_p4s, d_stochs, begins, d_next, bias, d_p4, d_start, all_p4 = refs
        t = _step(at, all_p4)
        first = (begins[t + 1] > 0)[:, None, None]
        d_later = kernel_math.read(d_next)
        d_start[...] += jnp.where(first, d_later, 0.0)
        d_stoch = kernel_math.read(d_stochs, t) + jnp.where(first, 0.0, d_later)
        d_stoch = d_stoch.astype(kind).astype(jnp.float32)
        logits = kernel_math.read(p4, t) + bias[...]
        through = kernel_math.one_hot_back(logits, d_stoch).astype(kind)
        total = kernel_math.read(d_p4s, t) + through.astype(jnp.float32)
        d_p4[...] = total.astype(kind)
        all_p4[t] = total.astype(kind)

    rows = tile_rows(n, len(net.bias))
    return run(
        kernel,
        n // rows,
        whole_arrays(at)
        + steps_of(rows, *kept, begins)
        + rows_of(rows, d_next)
        + whole_row(net.bias.reshape(shape)),
        rows_of(rows, like((n, *shape), kind)),
        rows_of(rows, d_start) + steps_of(rows, all_p4),
        width=len(net.bias),
    )


def _silu_back(
    at: jax.Array, norm: Norm, p: jax.Array, d_y: jax.Array, all_d_y: jax.Array
) -> list[jax.Array]:
    """Gradient of a product from that of what it turned into; all of the latter."""
    n, width = d_y.shape

    def kernel(*refs: Any) -> None:
        at, p, d_y, scale, shift, d_p, all_d_y = refs
        t = _step(at, all_d_y)
        d_p[...] = _through_silu(t, p, d_y[...], (scale, shift, norm.epsilon))
        all_d_y[t] = d_y[...]

    rows = tile_rows(n, width)
    return run(
        kernel,
        n // rows,
        whole_arrays(at) + steps_of(rows, p) + rows_of(rows, d_y) + whole_norm(norm),
        rows_of(rows, like((n, width), p.dtype)),
        steps_of(rows, all_d_y),
        width=width,
    )


def _through_silu(t: Any, p: Any, d_y: jax.Array, norm: Any) -> jax.Array:
    """In a kernel: the gradient of a product, in its type."""
    normed = kernel_math.norm([kernel_math.read(p, t)], *norm)
    slope = kernel_math.silu_slope(normed.parts[0])
    return normed.back([d_y.astype(jnp.float32) * slope])[0].astype(p.dtype)


def _gates_back(
    at: jax.Array, net: Recurrence, kept: Any, d_seen: jax.Array, d_next: Any,
    begins: Any, d_start: Any, all_deter: Any,
) -> list[jax.Array]:  # fmt: skip
    """Gradients of p2 and of the deter before; the start's; all of the deters."""
    n, width = d_next.shape
    kind = d_seen.dtype

    def kernel(*refs: Any) -> None:
        at, p2, before, d_deters, begins, d_seen, d_next, scale, shift, *out = refs
        d_p2, d_before, d_start, all_deter = out
        t = _step(at, all_deter)
        first = (begins[t + 1] > 0)[:, None]
        d_later = d_next[...]
        d_start[...] += jnp.where(first, d_later, 0.0)
        d_deter = (
            d_deters[t] + jnp.where(first, 0.0, d_later) + kernel_math.read(d_seen)
        )
        all_deter[t] = d_deter
        parts = kernel_math.parts_of(p2, 3, t, slice(None))
        normed = kernel_math.norm(parts, scale, shift, net.norm2.epsilon)
        d_parts, d_kept = kernel_math.gated_back(normed.parts, before[t], d_deter)
        kernel_math.write_parts(d_p2, normed.back(d_parts), slice(None))
        d_before[...] = d_kept

    rows = tile_rows(n, 4 * width)
    return run(
        kernel,
        n // rows,
        whole_arrays(at)
        + steps_of(rows, *kept, begins)
        + rows_of(rows, d_seen, d_next)
        + whole_norm(net.norm2),
        rows_of(rows, like((n, 3 * width), kind), like((n, width), jnp.float32)),
        rows_of(rows, d_start) + steps_of(rows, all_deter),
        width=4 * width,
    )


def _join_back(
    at: jax.Array, net: Recurrence, p1: Any, d_joined: Any, d_before: Any, all_x: Any
) -> list[jax.Array]:
    """Gradients of p1 and of the deter before, in whole; all of x's."""
    n, width = len(d_joined), p1.shape[-1]
    n_deter = d_before.shape[-1]

    def kernel(*refs: Any) -> None:
        at, p1, d_joined, d_kept, scale, shift, d_p1, d_before, all_x = refs
        t = _step(at, all_x)
        d_x = d_joined[:, pl.ds(0, width)]
        norm = (scale, shift, net.norm1.epsilon)
        d_p1[...] = _through_silu(t, p1, d_x, norm)
        all_x[t] = d_x
        d_turned = kernel_math.read(d_joined, slice(None), pl.ds(width, n_deter))
        d_before[...] = d_kept[...] + d_turned

    rows = tile_rows(n, width)
    return run(
        kernel,
        n // rows,
        whole_arrays(at)
        + steps_of(rows, p1)
        + rows_of(rows, d_joined, d_before)
        + whole_norm(net.norm1),
        rows_of(rows, like((n, width), p1.dtype), like((n, n_deter), jnp.float32)),
        steps_of(rows, all_x),
        width=width,
    )


def _step(at: Any, steps: Any) -> Any:
    """In a kernel: which step it is, of arrays of all steps."""
    return steps.shape[0] - 1 - at[0]
