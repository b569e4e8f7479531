"""Arrays of all steps out of arrays of one step each.

A compiler's concatenation moves number by number, a fifth of what memory can do; on a
GPU one kernel copies whole rows instead.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from fallow.agents.dreamer import tiles

WIDTH = 1024
"""Numbers that are copied as a row, whatever the arrays' own rows are."""


def stacked(*parts: jax.Array) -> jax.Array:
    """Arrays (rows, …), one a step, as one of (steps, rows, …), as `jnp.stack`."""
    return _copied(*parts) if fits(*parts) else _put_after(*parts)


def fits(*parts: jax.Array) -> bool:
    """Whether the kernel is used: on a GPU, for arrays that are alike and large."""
    alike = len({(part.shape, part.dtype) for part in parts}) == 1
    return alike and parts[0].size % WIDTH == 0 and tiles.fits(WIDTH)


def _put_after(*parts: jax.Array) -> jax.Array:
    """Rows after rows: an axis of length one a compiler makes the slowest of all."""
    rows = [jnp.atleast_1d(part) for part in parts]
    return jnp.concatenate(rows).reshape(len(parts), *parts[0].shape)


@jax.custom_vjp
@jax.jit
def _copied(*parts: jax.Array) -> jax.Array:
    rows = [part.reshape(-1, WIDTH) for part in parts]
    n, n_steps = len(rows[0]), len(parts)
    tile = tiles.tile_rows(n, WIDTH)
    n_tiles = n // tile

    def kernel(*refs: Any) -> None:
        *part_refs, out_ref = refs
        step = pl.program_id(0) // n_tiles
        for k, own in enumerate(part_refs):

            @pl.when(step == k)
            def _(own: Any = own) -> None:
                out_ref[...] = own[...]

    own_tile = pl.BlockSpec((tile, WIDTH), lambda i: (i % n_tiles, 0))
    given = tiles.Arrays(rows, [own_tile] * n_steps)
    new = tiles.rows_of(tile, tiles.like((n_steps * n, WIDTH), parts[0].dtype))
    (out,) = tiles.run(kernel, n_steps * n_tiles, given, new, width=WIDTH)
    return out.reshape(n_steps, *parts[0].shape)


_copied.defvjp(lambda *parts: (_copied(*parts), None), lambda _, d_out: tuple(d_out))
