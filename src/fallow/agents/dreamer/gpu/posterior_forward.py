"""The recurrence over a sequence on a GPU: four products and four kernels a step.

Left to a compiler, every step copies what a kernel reads out of the arrays of all
steps and copies what it leaves into others, which takes more kernels than the step
itself. Here a kernel gets the step and reads and writes those arrays in place; it
also adds, rounds and begins rows anew, all between one product and the next. The plain
scans that this replaces are in `follow`, and tests hold both together; the way back is
in `follow_back`.

    enter   p1, x, and deter beside it
    turn    p2, deter
    look    p3, hidden
    leave   p4, stoch; the state that the next step begins with
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from fallow.agents.dreamer.gpu import kernel_math, launch
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


def fits(shape: Shape, net: Recurrence, inputs: Inputs) -> bool:
    """Whether these kernels are used: on a GPU, where widths are powers of two."""
    widths = (net.w1.shape[1], len(net.start.deter), net.w3.shape[1], len(net.bias))
    return inputs.uniform is not None and launch.fits(
        "posterior", *widths, 16 * shape[1]
    )


def forward(
    shape: Shape, net: Recurrence, state: State, inputs: Inputs
) -> tuple[State, Products]:
    """As `follow._forward_scan`."""
    n_steps, n = inputs.is_first.shape
    kind, n_deter = net.w1.dtype, len(net.start.deter)
    begins = begins_of(inputs.is_first)

    def empty(*widths: int, dtype: Any = kind) -> jax.Array:
        return jnp.zeros((n_steps, n, *widths), dtype)

    def step(t: jax.Array, carry: Any) -> Any:
        prev, states, p = carry
        at = t.reshape(1)
        q1 = flat(prev.stoch) @ net.w1
        joined, p1 = _enter(at, net, q1, inputs.from_action, prev.deter, p.p1)
        half, deter, p2 = _turn(
            at, net, joined @ net.w2, prev.deter, states.deter, p.p2
        )
        hidden, p3 = _look(at, net, half @ net.w3, inputs.from_embed, p.p3)
        q4 = (hidden @ net.w4).reshape(n, *shape)
        noise = (inputs.uniform, begins)
        prev_deter, prev_stoch, stoch, p4 = _leave(
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


def _enter(
    at: jax.Array, net: Recurrence, q: jax.Array, added: Any, deter: Any, p1: Any
) -> list[jax.Array]:
    """[x, deter] for the next product, and p1."""
    n, width = q.shape
    n_deter = deter.shape[-1]

    def kernel(*refs: Any) -> None:
        at, q, added, deter, scale, shift, joined, p1 = refs
        x = _added_silu(at[0], q, added, p1, (scale, shift, net.norm1.epsilon))
        joined[:, pl.ds(0, width)] = x.astype(joined.dtype)
        joined[:, pl.ds(width, n_deter)] = deter[...].astype(joined.dtype)

    rows = tile_rows(n, width)
    return run(
        kernel,
        n // rows,
        whole_arrays(at)
        + rows_of(rows, q)
        + steps_of(rows, added)
        + rows_of(rows, deter)
        + whole_norm(net.norm1),
        rows_of(rows, like((n, width + n_deter), q.dtype)),
        steps_of(rows, p1),
        width=width,
    )


def _look(
    at: jax.Array, net: Recurrence, q: jax.Array, added: Any, p3: Any
) -> list[jax.Array]:
    """Hidden, and p3."""
    n, width = q.shape

    def kernel(*refs: Any) -> None:
        at, q, added, scale, shift, hidden, p3 = refs
        x = _added_silu(at[0], q, added, p3, (scale, shift, net.norm3.epsilon))
        hidden[...] = x.astype(hidden.dtype)

    rows = tile_rows(n, width)
    return run(
        kernel,
        n // rows,
        whole_arrays(at)
        + rows_of(rows, q)
        + steps_of(rows, added)
        + whole_norm(net.norm3),
        rows_of(rows, like((n, width), q.dtype)),
        steps_of(rows, p3),
        width=width,
    )


def _added_silu(t: Any, q: Any, added: Any, p: Any, norm: Any) -> jax.Array:
    """In a kernel: what follows a product and what was computed before it."""
    total = (kernel_math.read(q) + kernel_math.read(added, t)).astype(p.dtype)
    p[t] = total
    normed = kernel_math.norm([total.astype(jnp.float32)], *norm)
    return kernel_math.silu(normed.parts[0])


def _turn(
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


def _leave(
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
