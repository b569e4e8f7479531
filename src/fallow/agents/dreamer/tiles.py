"""What the kernels have in common: where they run, and how rows are cut into tiles."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.experimental import pallas as pl

TILE = 2048
"""Numbers that a program holds at once; as many again for each array it reads."""
MAX_TILES = 16
"""Tiles that a program goes through where it sums over rows."""
MIN_PROGRAMS = 64
"""Programs for each branch, below which tiles are not put together."""
MIN_WIDTH = 16
N_WARPS = 4
"""Of 32 threads, for each program."""


def available() -> bool:
    """Whether there is a GPU that these kernels can be compiled for."""
    if os.environ.get("FALLOW_KERNELS") == "off" or jax.default_backend() != "gpu":
        return False
    try:
        _parameters()
    except ImportError:  # the way from Pallas to Triton is not in every jax
        return False
    return True


def fits(*widths: int) -> bool:
    """Whether rows of these widths can be handled: powers of two only."""
    return available() and all(w >= MIN_WIDTH and w & (w - 1) == 0 for w in widths)


def _parameters() -> Any:
    from jax.experimental.pallas import triton

    return triton.CompilerParams(num_warps=N_WARPS)


def call(
    kernel: Callable[..., None],
    n_programs: int,
    in_specs: Sequence[pl.BlockSpec],
    out_specs: Sequence[pl.BlockSpec],
    out_shape: Sequence[jax.ShapeDtypeStruct],
) -> Callable[..., list[jax.Array]]:
    """The kernel on a grid of programs; interpreted where there is no GPU."""
    on_gpu = jax.default_backend() == "gpu"
    return pl.pallas_call(
        kernel,
        grid=(n_programs,),
        in_specs=list(in_specs),
        out_specs=list(out_specs),
        out_shape=list(out_shape),
        interpret=not on_gpu,
        compiler_params=_parameters() if on_gpu else None,
    )


def rows_block(rows: int, width: int) -> pl.BlockSpec:
    """The i-th so many rows."""
    return pl.BlockSpec((rows, width), lambda i: (i, 0))


def whole_block(width: int) -> pl.BlockSpec:
    """A vector that every program reads."""
    return pl.BlockSpec((width,), lambda i: (0,))


def tile_rows(n: int, width: int) -> int:
    """Rows of a tile: a power of two that divides n and keeps within the tile."""
    return max(1, min(n & -n, TILE // width))


def tiles_together(n_tiles: int) -> int:
    """Tiles a program goes through: a power of two that divides their number."""
    wanted = min(MAX_TILES, max(1, n_tiles // MIN_PROGRAMS))
    return min(n_tiles & -n_tiles, 1 << (wanted.bit_length() - 1))
