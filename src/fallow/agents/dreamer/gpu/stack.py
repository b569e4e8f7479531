"""A kernel that stacks the arrays of all steps, copying whole rows."""

from typing import Any

import jax
from jax.experimental import pallas as pl

from fallow.agents.dreamer.gpu import launch

WIDTH = 1024
"""Numbers that are copied as a row, whatever the rows of the arrays are."""


def refusal(*parts: jax.Array) -> str | None:
    """Why the kernel is not used for these arrays; None if it is."""
    reason = launch.refusal("stack")
    alike = len({(part.shape, part.dtype) for part in parts}) == 1
    if reason is None and not (alike and parts[0].size % WIDTH == 0):
        reason = f"stack needs arrays that are alike, of a multiple of {WIDTH} numbers"
    return reason


@jax.custom_vjp
@jax.jit
def copied(*parts: jax.Array) -> jax.Array:
    """Arrays (rows, …), one a step, as one of (steps, rows, …)."""
    rows = [part.reshape(-1, WIDTH) for part in parts]
    n, n_steps = len(rows[0]), len(parts)
    tile = launch.tile_rows(n, WIDTH)
    n_tiles = n // tile

    def kernel(*refs: Any) -> None:
        *part_refs, out_ref = refs
        step = pl.program_id(0) // n_tiles
        for k, part_ref in enumerate(part_refs):

            @pl.when(step == k)
            def _(part_ref: Any = part_ref) -> None:
                out_ref[...] = part_ref[...]

    part_tile = pl.BlockSpec((tile, WIDTH), lambda i: (i % n_tiles, 0))
    given = launch.KernelArrays(rows, [part_tile] * n_steps)
    new = launch.rows_of(tile, launch.like((n_steps * n, WIDTH), parts[0].dtype))
    (out,) = launch.run(kernel, n_steps * n_tiles, given, new, width=WIDTH)
    return out.reshape(n_steps, *parts[0].shape)


copied.defvjp(lambda *parts: (copied(*parts), None), lambda _, d_out: tuple(d_out))
