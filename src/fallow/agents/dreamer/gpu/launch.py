"""What the kernels have in common: where they run, and how rows are cut into tiles."""

import os
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
from jax.experimental import pallas as pl

# Since 0.11 jax warns for each kernel that Pallas's Triton backend will be removed.
# Users can do nothing about it: pyproject.toml holds jax below 0.13, which has the
# backend, and without it plain JAX runs. To be removed when the kernels leave it.
DEPRECATED = "The Pallas Triton backend is deprecated and will be removed in"
warnings.filterwarnings("ignore", DEPRECATED, DeprecationWarning)

PER_WARP = 512
"""Numbers that a warp holds at once; as many again for each array it reads.

A row that one warp holds is summed without waiting for others.
"""
MAX_WARPS = 8
"""Of 32 threads, for each program."""
MAX_TILES = 64
"""Tiles that a program goes through where it sums over rows."""
MIN_PROGRAMS = 256
"""Programs for each branch, below which tiles are not put together."""
MIN_WIDTH = 16


def on_gpu() -> bool:
    """Whether kernels are compiled; elsewhere they are interpreted."""
    return jax.default_backend() == "gpu"


def left_out() -> list[str]:
    """Names of kernels that `FALLOW_KERNELS=off:norm_silu,bins` turns off one by one.

    They are norm_silu, norm_gates, sample_latent, bins, posterior and stack.
    """
    setting = os.environ.get("FALLOW_KERNELS", "")
    return setting.removeprefix("off:").split(",") if setting[:4] == "off:" else []


def triton() -> tuple[Any, Any]:
    """Pallas's `CompilerParams` and `elementwise_inline_asm` for Triton.

    They have these names in jax 0.10, 0.11 and 0.12.

    Raises:
        ImportError: this jax lacks one of them.
    """
    from jax.experimental.pallas.triton import CompilerParams, elementwise_inline_asm

    return CompilerParams, elementwise_inline_asm


def available() -> bool:
    """Whether there is a GPU that these kernels can be compiled for."""
    if os.environ.get("FALLOW_KERNELS") == "off" or not on_gpu():
        return False
    try:
        triton()
    except ImportError:
        return False
    return True


def refusal(kernel: str, *widths: int) -> str | None:
    """Why a kernel is not used for rows of these widths; None if it is."""
    if not available():
        if os.environ.get("FALLOW_KERNELS") == "off":
            return "FALLOW_KERNELS=off"
        missing = f"jax {jax.__version__} has no Pallas for Triton"
        return missing if on_gpu() else "there is no GPU"
    if kernel in left_out():
        return f"FALLOW_KERNELS=off:{kernel}"
    wrong = [w for w in widths if w < MIN_WIDTH or w & (w - 1)]
    if wrong:
        return f"{kernel} needs powers of two from {MIN_WIDTH}, not {wrong[0]}"
    return None


class KernelArrays(NamedTuple):
    """Arrays of a kernel, each with the part of it that one of its programs sees."""

    arrays: list[Any]
    blocks: list[pl.BlockSpec]

    def __add__(self, other: Any) -> "KernelArrays":
        return KernelArrays(self.arrays + other.arrays, self.blocks + other.blocks)


def whole_arrays(*arrays: jax.Array) -> KernelArrays:
    """Every program sees the whole arrays."""
    return _cut(arrays, lambda x: x.shape, lambda i, n: (0,) * n)


def whole_row(*arrays: jax.Array) -> KernelArrays:
    """Every program sees the whole array as one row."""
    return whole_arrays(*(array[None] for array in arrays))


def rows_of(rows: int, *arrays: Any) -> KernelArrays:
    """The i-th sees the i-th so many rows of (n, …)."""
    return _cut(
        arrays, lambda x: (rows, *x.shape[1:]), lambda i, n: (i, *(0,) * (n - 1))
    )


def steps_of(rows: int, *arrays: Any) -> KernelArrays:
    """The i-th sees the i-th so many rows at all steps of (T, n, …)."""
    return _cut(
        arrays,
        lambda x: (x.shape[0], rows, *x.shape[2:]),
        lambda i, n: (0, i, *(0,) * (n - 2)),
    )


def _cut(arrays: Sequence[Any], shape: Any, place: Any) -> KernelArrays:
    blocks = [pl.BlockSpec(shape(x), partial(place, n=len(x.shape))) for x in arrays]
    return KernelArrays(list(arrays), blocks)


like = jax.ShapeDtypeStruct
"""`like(shape, dtype)`, an array that is new."""
NOTHING = KernelArrays([], [])


def run(
    kernel: Callable[..., None],
    n_programs: int,
    given: KernelArrays,
    new: KernelArrays,
    written: KernelArrays = NOTHING,
    *,
    width: int,
) -> list[jax.Array]:
    """`kernel(*given, *new, *written)`: returns what is new and what it wrote into.

    What it writes into keeps its place in memory and what is not overwritten. It is
    compiled for a GPU, with as many warps as `width`, the numbers it holds of a row,
    asks for, and interpreted where there is none.
    """
    n_given, n_new, n_written = (len(refs.arrays) for refs in (given, new, written))

    def without_written(*refs: Any) -> None:  # what is written into is also given
        kernel(*refs[:n_given], *refs[n_given + n_written :])

    n_warps = min(MAX_WARPS, max(1, width // PER_WARP))
    options = triton()[0](num_warps=n_warps) if on_gpu() else None
    both, results = given + written, new + written
    return pl.pallas_call(
        without_written,
        grid=(n_programs,),
        in_specs=both.blocks,
        out_specs=results.blocks,
        out_shape=[like(x.shape, x.dtype) for x in results.arrays],
        input_output_aliases={n_given + k: n_new + k for k in range(n_written)},
        interpret=not on_gpu(),
        compiler_params=options,
    )(*both.arrays)


def tile_rows(n: int, width: int) -> int:
    """Rows of a tile: a power of two that divides n and that a warp can hold."""
    return max(1, min(n & -n, PER_WARP // width))


def tiles_together(n_tiles: int) -> int:
    """Tiles a program goes through: a power of two that divides their number."""
    wanted = min(MAX_TILES, max(1, n_tiles // MIN_PROGRAMS))
    return min(n_tiles & -n_tiles, 1 << (wanted.bit_length() - 1))
