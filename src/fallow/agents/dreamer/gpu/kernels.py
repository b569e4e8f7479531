"""The operations between matrix products, each as one pass over the rows, for a GPU.

A compiler makes two or three passes over a norm and the operations after it, and a
dozen small kernels for a sample and its gradient. With many rows the passes limit the
speed of an update, with few rows the number of kernels does. Here a kernel reads a
tile of rows once, computes everything in registers, and writes the results once. The
plain forms, used everywhere else, are in `ops` and `latent`; tests compare the two.

All arrays are (rows, width) of one branch; a map over branches becomes an axis of the
grid. Each kernel is one compiled function, so equal calls share a program.
FALLOW_KERNELS=off turns all of them off.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from fallow.agents.dreamer.gpu import kernel_math
from fallow.agents.dreamer.gpu.launch import (
    like,
    rows_of,
    run,
    tile_rows,
    tiles_together,
    whole_row,
)

# -------------------------------------------------------------------- norm and SiLU


@partial(jax.jit, static_argnames="epsilon")
def norm_silu(
    scale: jax.Array,
    shift: jax.Array,
    x: jax.Array,
    epsilon: float,
) -> jax.Array:
    """silu(norm(x)) of rows (n, W), in the type of x."""

    def kernel(x_ref: Any, scale_ref: Any, shift_ref: Any, y_ref: Any) -> None:
        normed = kernel_math.norm(
            [kernel_math.read(x_ref)], scale_ref, shift_ref, epsilon
        )
        y_ref[...] = kernel_math.silu(normed.parts[0]).astype(y_ref.dtype)

    n, width = x.shape
    rows = tile_rows(n, width)
    given = rows_of(rows, x) + whole_row(scale, shift)
    new = rows_of(rows, like(x.shape, x.dtype))
    return run(kernel, n // rows, given, new, width=width)[0]


@partial(jax.jit, static_argnames="epsilon")
def norm_silu_back(
    scale: jax.Array,
    shift: jax.Array,
    x: jax.Array,
    d_y: jax.Array,
    epsilon: float,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Gradients of scale, shift and x."""
    n, width = x.shape
    rows = tile_rows(n, width)
    n_tiles = tiles_together(n // rows)

    def kernel(
        x_ref: Any, d_y_ref: Any, scale_ref: Any, shift_ref: Any, d_x_ref: Any,
        sums_ref: Any,
    ) -> None:  # fmt: skip
        def tile(i: Any, sums: list[jax.Array]) -> list[jax.Array]:
            place = pl.ds(i * rows, rows)
            x = kernel_math.read(x_ref, place)
            normed = kernel_math.norm([x], scale_ref, shift_ref, epsilon)
            slope = kernel_math.silu_slope(normed.parts[0])
            d_normed = [kernel_math.read(d_y_ref, place) * slope]
            kernel_math.write_parts(d_x_ref, normed.back(d_normed), place)
            return _added(sums, normed.sums(d_normed))

        sums = jax.lax.fori_loop(0, n_tiles, tile, _zeros(1, width))
        _write_sums(sums_ref, sums)

    n_programs, together = n // (rows * n_tiles), rows * n_tiles
    sums = like((n_programs, 2 * width), jnp.float32)
    d_x, partial_sums = run(
        kernel,
        n_programs,
        rows_of(together, x, d_y) + whole_row(scale, shift),
        rows_of(together, like(x.shape, x.dtype)) + rows_of(1, sums),
        width=width,
    )
    d_scale, d_shift = jnp.split(partial_sums.sum(0), 2)
    return d_scale, d_shift, d_x


# -------------------------------------------------------------------- norm and gates


@partial(jax.jit, static_argnames="epsilon")
def norm_gates(
    scale: jax.Array,
    shift: jax.Array,
    x: jax.Array,
    deter: jax.Array,
    epsilon: float,
) -> jax.Array:
    """gates(norm(x), deter) of rows (n, 3 D) and (n, D)."""
    n, width = deter.shape

    def kernel(
        x_ref: Any, deter_ref: Any, scale_ref: Any, shift_ref: Any, new_ref: Any
    ) -> None:
        x = kernel_math.parts_of(x_ref, 3, slice(None))
        normed = kernel_math.norm(x, scale_ref, shift_ref, epsilon)
        new_ref[...] = kernel_math.gated(normed.parts, deter_ref[...])

    rows = tile_rows(n, 4 * width)
    given = rows_of(rows, x, deter) + whole_row(scale, shift)
    new = rows_of(rows, like(deter.shape, deter.dtype))
    return run(kernel, n // rows, given, new, width=4 * width)[0]


@partial(jax.jit, static_argnames="epsilon")
def norm_gates_back(
    scale: jax.Array,
    shift: jax.Array,
    x: jax.Array,
    deter: jax.Array,
    d_new: jax.Array,
    epsilon: float,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Gradients of scale, shift, x and deter."""
    n, width = deter.shape
    rows = tile_rows(n, 4 * width)
    n_tiles = tiles_together(n // rows)

    def kernel(
        x_ref: Any, deter_ref: Any, d_new_ref: Any, scale_ref: Any, shift_ref: Any,
        d_x_ref: Any, d_deter_ref: Any, sums_ref: Any,
    ) -> None:  # fmt: skip
        def tile(i: Any, sums: list[jax.Array]) -> list[jax.Array]:
            place = pl.ds(i * rows, rows)
            x = kernel_math.parts_of(x_ref, 3, place)
            normed = kernel_math.norm(x, scale_ref, shift_ref, epsilon)
            d_normed, d_deter = kernel_math.gated_back(
                normed.parts,
                kernel_math.read(deter_ref, place),
                kernel_math.read(d_new_ref, place),
            )
            d_deter_ref[place, :] = d_deter.astype(d_deter_ref.dtype)
            kernel_math.write_parts(d_x_ref, normed.back(d_normed), place)
            return _added(sums, normed.sums(d_normed))

        sums = jax.lax.fori_loop(0, n_tiles, tile, _zeros(3, width))
        _write_sums(sums_ref, sums)

    n_programs, together = n // (rows * n_tiles), rows * n_tiles
    sums = like((n_programs, 6 * width), jnp.float32)
    new = [like(array.shape, array.dtype) for array in (x, deter)]
    d_x, d_deter, partial_sums = run(
        kernel,
        n_programs,
        rows_of(together, x, deter, d_new) + whole_row(scale, shift),
        rows_of(together, *new) + rows_of(1, sums),
        width=4 * width,
    )
    d_scale, d_shift = jnp.split(partial_sums.sum(0), 2)
    return d_scale, d_shift, d_x, d_deter


# -------------------------------------------------------------------- samples


@jax.jit
def one_hot(
    product: jax.Array,
    bias: jax.Array,
    uniform: jax.Array,
) -> jax.Array:
    """One-hot samples (n, C K) of logits product + bias (n, C K) by uniform (n, C)."""
    n, n_categoricals = uniform.shape
    n_classes = product.shape[-1] // n_categoricals

    def kernel(product_ref: Any, uniform_ref: Any, bias_ref: Any, out_ref: Any) -> None:
        logits = kernel_math.read(product_ref) + bias_ref[...]
        out_ref[...] = kernel_math.one_hot(logits, uniform_ref[...]).astype(
            out_ref.dtype
        )

    shape = (n_categoricals, n_classes)
    rows = tile_rows(n, product.shape[-1])
    logits = product.reshape(n, *shape)
    given = rows_of(rows, logits, uniform) + whole_row(bias.reshape(shape))
    new = rows_of(rows, like(logits.shape, product.dtype))
    sample = run(kernel, n // rows, given, new, width=product.shape[-1])[0]
    return sample.reshape(product.shape)


@partial(jax.jit, static_argnames="n_categoricals")
def one_hot_back(
    product: jax.Array,
    bias: jax.Array,
    d_sample: jax.Array,
    n_categoricals: int,
) -> jax.Array:
    """Gradient of the logits (n, C K), straight through the probabilities."""
    n, width = product.shape
    shape = (n_categoricals, width // n_categoricals)

    def kernel(product_ref: Any, d_ref: Any, bias_ref: Any, out_ref: Any) -> None:
        logits = kernel_math.read(product_ref) + bias_ref[...]
        d_logits = kernel_math.one_hot_back(logits, kernel_math.read(d_ref))
        out_ref[...] = d_logits.astype(out_ref.dtype)

    rows = tile_rows(n, width)
    logits, d_sample = product.reshape(n, *shape), d_sample.reshape(n, *shape)
    given = rows_of(rows, logits, d_sample) + whole_row(bias.reshape(shape))
    new = rows_of(rows, like(logits.shape, product.dtype))
    d_logits = run(kernel, n // rows, given, new, width=width)[0]
    return d_logits.reshape(product.shape)


# -------------------------------------------------------------------- bins


@partial(jax.jit, static_argnames="middle")
def mean_bin(product: jax.Array, bias: jax.Array, middle: int) -> jax.Array:
    """(n,) means of bins under softmax(product + bias) (n, K), from the middle one."""

    def kernel(logits: jax.Array, mean_ref: Any) -> None:
        mean_ref[...] = kernel_math.mean_bin(kernel_math.softmax(logits), middle)

    return _on_logits(kernel, product, bias, [], like((len(product), 1), jnp.float32))[
        :, 0
    ]


@partial(jax.jit, static_argnames="middle")
def mean_bin_back(
    product: jax.Array, bias: jax.Array, d_mean: jax.Array, middle: int
) -> jax.Array:
    """Gradient of the logits."""

    def kernel(logits: jax.Array, d_mean_ref: Any, d_ref: Any) -> None:
        soft = kernel_math.softmax(logits)
        apart = kernel_math.bins(soft) - middle - kernel_math.mean_bin(soft, middle)
        d_ref[...] = (d_mean_ref[...] * soft * apart).astype(d_ref.dtype)

    given = [d_mean[:, None]]
    return _on_logits(kernel, product, bias, given, like(product.shape, product.dtype))


@jax.jit
def two_hot_loss(product: jax.Array, bias: jax.Array, places: jax.Array) -> jax.Array:
    """(n,) cross entropies of two-hot rows at places (n, m), summed over m."""
    n, n_targets = places.shape

    def kernel(logits: jax.Array, *refs: Any) -> None:
        *place_refs, loss_ref = refs
        aimed = kernel_math.two_hots([ref[...] for ref in place_refs], logits) * logits
        total = n_targets * kernel_math.log_sum_exp(logits)
        loss_ref[...] = total - aimed.sum(-1)[:, None]

    given = [places[:, k] for k in range(n_targets)]
    return _on_logits(kernel, product, bias, given, like((n, 1), jnp.float32))[:, 0]


@jax.jit
def two_hot_loss_back(
    product: jax.Array, bias: jax.Array, places: jax.Array, d_loss: jax.Array
) -> jax.Array:
    """Gradient of the logits."""
    n_targets = places.shape[1]

    def kernel(logits: jax.Array, d_loss_ref: Any, *refs: Any) -> None:
        *place_refs, d_ref = refs
        aimed = kernel_math.two_hots([ref[...] for ref in place_refs], logits)
        d_logits = n_targets * kernel_math.softmax(logits) - aimed
        d_ref[...] = (d_loss_ref[...] * d_logits).astype(d_ref.dtype)

    given = [d_loss[:, None], *(places[:, k] for k in range(n_targets))]
    return _on_logits(kernel, product, bias, given, like(product.shape, product.dtype))


def _on_logits(
    kernel: Any, product: jax.Array, bias: jax.Array, given: list[jax.Array], new: Any
) -> jax.Array:
    """`kernel(logits, *given, new)` on tiles of rows."""
    n, width = product.shape

    def read_logits(product_ref: Any, bias_ref: Any, *refs: Any) -> None:
        kernel(kernel_math.read(product_ref) + bias_ref[...], *refs)

    rows = tile_rows(n, width)
    arrays = rows_of(rows, product) + whole_row(bias) + rows_of(rows, *given)
    return run(read_logits, n // rows, arrays, rows_of(rows, new), width=width)[0]


# -------------------------------------------------------------------- sums over rows


def _zeros(n_parts: int, width: int) -> list[jax.Array]:
    """Of scale and shift, part by part."""
    return [jnp.zeros(width, jnp.float32)] * (2 * n_parts)


def _added(sums: list[jax.Array], terms: list[jax.Array]) -> list[jax.Array]:
    return [s + t for s, t in zip(sums, terms, strict=True)]


def _write_sums(ref: Any, sums: list[jax.Array]) -> None:
    """The gradients of scale and then of shift, as one row."""
    kernel_math.write_parts(ref, [part[None] for part in sums], slice(None))
