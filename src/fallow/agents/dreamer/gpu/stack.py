"""A kernel that puts the arrays of all steps one after the other, rows at a time."""

from typing import Any

import jax
from jax.experimental import pallas as pl

from fallow.agents.dreamer.gpu import launch

WIDTH = 1024
"""Numbers that are copied as a row, whatever the arrays' own rows are."""


def fits(*parts: jax.Array) -> bool:
    """Whether the kernel is used: on a GPU, for arrays that are alike and large."""
    alike = len({(part.shape, part.dtype) for part in parts}) == 1
    return alike and parts[0].size % WIDTH == 0 and launch.fits("stack", WIDTH)


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

    own_tile = pl.BlockSpec((tile, WIDTH), lambda i: (i % n_tiles, 0))
    given = launch.KernelArrays(rows, [own_tile] * n_steps)
    new = launch.rows_of(tile, launch.like((n_steps * n, WIDTH), parts[0].dtype))
    (out,) = launch.run(kernel, n_steps * n_tiles, given, new, width=WIDTH)
    return out.reshape(n_steps, *parts[0].shape)


copied.defvjp(lambda *parts: (copied(*parts), None), lambda _, d_out: tuple(d_out))
