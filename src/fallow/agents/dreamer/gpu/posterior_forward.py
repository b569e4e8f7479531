"""The recurrence over a sequence on a GPU: four products and four kernels a step.

A compiler copies the inputs of each step out of the arrays of all steps and copies the
outputs back, which takes more kernels than the step itself. These kernels get the
index of the step and read and write those arrays in place. They also add, round and
reset rows, all between one product and the next. The plain scans are in
`posterior_scan`, and tests compare the two. The gradient is in `posterior_backward`.

    silu    p1, x, and deter beside it
    gates   p2, deter
    silu    p3, hidden
    sample  p4, stoch; the state that the next step begins with
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from fallow.agents.dreamer.gpu import kernel_math
from fallow.agents.dreamer.gpu.launch import (
    KernelArrays,
    like,
    rows_of,
    run,
    steps_of,
    tile_rows,
    whole_arrays,
    whole_row,
)
from fallow.agents.dreamer.recurrence import (
    Inputs,
    Products,
    Recurrence,
    Shape,
    State,
    begun,
)
from fallow.agents.shared.layers import Norm


def forward(
    shape: Shape, net: Recurrence, state: State, inputs: Inputs
) -> tuple[State, Products]:
    """As `posterior_scan._forward_scan`."""
    n_steps, n = inputs.is_first.shape
    kind, n_deter = net.w1.dtype, len(net.start.deter)
    begins = begins_of(inputs.is_first)

    def empty(*widths: int, dtype: Any = kind) -> jax.Array:
        return jnp.zeros((n_steps, n, *widths), dtype)

    def step(t: jax.Array, carry: Any) -> Any:
        prev, states, p = carry
        at = t.reshape(1)
        q1 = flat(prev.stoch) @ net.w1
        joined, p1 = _silu(at, net.norm1, q1, inputs.from_action, p.p1, prev.deter)
        half, deter, p2 = _gates(
            at, net, joined @ net.w2, prev.deter, states.deter, p.p2
        )
        q3 = half @ net.w3
        hidden, p3 = _silu(at, net.norm3, q3, inputs.from_embed, p.p3)
        q4 = (hidden @ net.w4).reshape(n, *shape)
        noise = (inputs.uniform, begins)
        prev_deter, prev_stoch, stoch, p4 = _sample(
            at, shape, net, q4, deter, noise, states.stoch, p.p4
        )
        states, p = State(deter, stoch), Products(p1, p2, p3, p4)
        return State(prev_deter, prev_stoch), states, p

    prev = begun(inputs.is_first[0], net.start, state)
    prev = prev._replace(stoch=prev.stoch.reshape(n, *shape))
    states = State(empty(n_deter, dtype=jnp.float32), empty(*shape))
    p1, p2, p3 = (empty(weight.shape[1]) for weight in (net.w1, net.w2, net.w3))
    p = Products(p1, p2, p3, empty(*shape))
    _, states, p = jax.lax.fori_loop(0, n_steps, step, (prev, states, p))
    states = states._replace(stoch=flat(states.stoch, 2))
    return states, p._replace(p4=flat(p.p4, 2))


def _silu(
    at: jax.Array, norm: Norm, q: jax.Array, added: Any, p: Any, *beside: jax.Array
) -> list[jax.Array]:
    """Norm and SiLU of a product, joined to its neighbour for the next; all of p."""
    n, width = q.shape

    def kernel(*refs: Any) -> None:
        at, q, added, *beside, scale, shift, out, p = refs
        t = at[0]
        total = (kernel_math.read(q) + kernel_math.read(added, t)).astype(p.dtype)
        p[t] = total
        total = total.astype(jnp.float32)
        normed = kernel_math.norm([total], scale, shift, norm.epsilon)
        end = 0
        for part in (kernel_math.silu(normed.parts[0]), *beside):
            begin, end = end, end + part.shape[-1]
            out[:, pl.ds(begin, end - begin)] = part[...].astype(out.dtype)

    rows = tile_rows(n, width)
    joined = (n, width + sum(part.shape[-1] for part in beside))
    return run(
        kernel,
        n // rows,
        whole_arrays(at)
        + rows_of(rows, q)
        + steps_of(rows, added)
        + rows_of(rows, *beside)
        + whole_norm(norm),
        rows_of(rows, like(joined, q.dtype)),
        steps_of(rows, p),
        width=width,
    )


def _gates(
    at: jax.Array, net: Recurrence, q: jax.Array, before: Any, deter: Any, p2: Any
) -> list[jax.Array]:
    """The next deter in the type of products; all deters; p2."""
    n, width = before.shape

    def kernel(*refs: Any) -> None:
        at, q, before, scale, shift, half, deter, p2 = refs
        t = at[0]
        parts = kernel_math.parts_of(q, 3, slice(None))
        kernel_math.write_parts(p2, parts, t, slice(None))
        normed = kernel_math.norm(parts, scale, shift, net.norm2.epsilon)
        new = kernel_math.gated(normed.parts, before[...])
        deter[t] = new
        half[...] = new.astype(half.dtype)

    rows = tile_rows(n, 4 * width)
    return run(
        kernel,
        n // rows,
        whole_arrays(at) + rows_of(rows, q, before) + whole_norm(net.norm2),
        rows_of(rows, like((n, width), q.dtype)),
        steps_of(rows, deter, p2),
        width=4 * width,
    )


def _sample(
    at: jax.Array, shape: Shape, net: Recurrence, q: jax.Array, deter: Any,
    noise: tuple[Any, Any], stoch: Any, p4: Any,
) -> list[jax.Array]:  # fmt: skip
    """The state before the next step; all stochs; p4."""
    n, n_deter = len(q), deter.shape[-1]
    bias, start = net.bias.reshape(shape), net.start.stoch.reshape(shape)

    def kernel(*refs: Any) -> None:
        at, q, deter, uniform, begins, bias, start_deter, start_stoch, *out = refs
        next_deter, next_stoch, stoch, p4 = out
        t = at[0]
        p4[t] = q[...]
        new = kernel_math.one_hot(kernel_math.read(q) + bias[...], uniform[t])
        new = new.astype(stoch.dtype)
        stoch[t] = new
        first = begins[t + 1] > 0
        next_stoch[...] = jnp.where(first[:, None, None], start_stoch[...], new)
        next_deter[...] = jnp.where(first[:, None], start_deter[...], deter[t])

    rows = tile_rows(n, max(len(net.bias), n_deter))
    return run(
        kernel,
        n // rows,
        whole_arrays(at)
        + rows_of(rows, q)
        + steps_of(rows, deter, *noise)
        + whole_row(bias, net.start.deter, start),
        rows_of(rows, like((n, n_deter), jnp.float32), like((n, *shape), q.dtype)),
        steps_of(rows, stoch, p4),
        width=max(len(net.bias), n_deter),
    )


def begins_of(is_first: jax.Array) -> jax.Array:
    """(T + 1, n) 1 where a row begins at a step; nothing begins after the last."""
    return jnp.pad(is_first.astype(jnp.float32), ((0, 1), (0, 0)))


def flat(x: jax.Array, leading: int = 1) -> jax.Array:
    """Categoricals and classes as one axis, after so many others."""
    return x.reshape(*x.shape[:leading], -1)


def whole_norm(norm: Norm) -> KernelArrays:
    """Scale and shift."""
    return whole_row(norm.scale, norm.shift)
