"""What stands between matrix products, each as one pass over the rows, for a GPU.

A compiler makes two or three passes of a norm and what follows it, and a dozen small
kernels of a draw and its gradient; for many rows the passes are what an update waits
for, for few rows the number of kernels is. Here a tile of rows is read once, all is
computed in registers, and what is needed afterwards is written once. The plain forms,
used everywhere else, are in `steps` and `latent`; tests hold both together.

All arrays are (rows, width) of one branch; a map over branches becomes an axis of the
grid. Set FALLOW_KERNELS=off to do without them.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from fallow.agents.dreamer.latent import UNIMIX
from fallow.agents.dreamer.tiles import (
    call,
    rows_block,
    tile_rows,
    tiles_together,
    whole_block,
)

# -------------------------------------------------------------------- norm and SiLU


def norm_silu(
    scale: jax.Array,
    shift: jax.Array,
    x: jax.Array,
    epsilon: float,
) -> jax.Array:
    """silu(norm(x)) of rows (n, W), in the type of x."""

    def kernel(x_ref: Any, scale_ref: Any, shift_ref: Any, y_ref: Any) -> None:
        whitened, _ = _whitened([_read(x_ref)], epsilon)
        normed = whitened[0] * scale_ref[...][None] + shift_ref[...][None]
        y_ref[...] = (normed * _sigmoid(normed)).astype(y_ref.dtype)

    n, width = x.shape
    rows = tile_rows(n, width)
    return call(
        kernel,
        n // rows,
        [rows_block(rows, width), whole_block(width), whole_block(width)],
        [rows_block(rows, width)],
        [jax.ShapeDtypeStruct(x.shape, x.dtype)],
    )(x, scale, shift)[0]


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
        x_ref: Any, d_y_ref: Any, scale_ref: Any, shift_ref: Any, *out_refs: Any
    ) -> None:
        d_x_ref, d_scale_ref, d_shift_ref = out_refs
        scale, shift = scale_ref[...][None], shift_ref[...][None]

        def tile(i: Any, sums: tuple[jax.Array, jax.Array]) -> Any:
            place = pl.ds(i * rows, rows)
            (whitened,), inverse = _whitened([_read(x_ref, place)], epsilon)
            normed = whitened * scale + shift
            d_normed = _read(d_y_ref, place) * _silu_slope(normed)
            (d_x,) = _norm_back([whitened], [d_normed * scale], inverse)
            d_x_ref[place, :] = d_x.astype(d_x_ref.dtype)
            return sums[0] + (d_normed * whitened).sum(0), sums[1] + d_normed.sum(0)

        zeros = jnp.zeros(width, jnp.float32)
        d_scale, d_shift = jax.lax.fori_loop(0, n_tiles, tile, (zeros, zeros))
        d_scale_ref[...] = d_scale[None]
        d_shift_ref[...] = d_shift[None]

    n_programs = n // (rows * n_tiles)
    wide, sums = rows_block(rows * n_tiles, width), rows_block(1, width)
    partial_sums = jax.ShapeDtypeStruct((n_programs, width), jnp.float32)
    d_x, d_scale, d_shift = call(
        kernel,
        n_programs,
        [wide, wide, whole_block(width), whole_block(width)],
        [wide, sums, sums],
        [jax.ShapeDtypeStruct(x.shape, x.dtype), partial_sums, partial_sums],
    )(x, d_y, scale, shift)
    return d_scale.sum(0), d_shift.sum(0), d_x


# -------------------------------------------------------------------- norm and gates


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
        whitened, _ = _whitened(_thirds(x_ref, width), epsilon)
        reset, candidate, update = _normed(whitened, scale_ref, shift_ref, width)
        candidate = _tanh(_sigmoid(reset) * candidate)
        update = _sigmoid(update - 1)
        new_ref[...] = update * candidate + (1 - update) * deter_ref[...]

    rows = tile_rows(n, 4 * width)
    return call(
        kernel,
        n // rows,
        [
            rows_block(rows, 3 * width),
            rows_block(rows, width),
            whole_block(3 * width),
            whole_block(3 * width),
        ],
        [rows_block(rows, width)],
        [jax.ShapeDtypeStruct(deter.shape, deter.dtype)],
    )(x, deter, scale, shift)[0]


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
        *out_refs: Any,
    ) -> None:  # fmt: skip
        d_x_ref, d_deter_ref, d_scale_ref, d_shift_ref = out_refs

        def tile(i: Any, sums: Any) -> Any:
            place = pl.ds(i * rows, rows)
            whitened, inverse = _whitened(_thirds(x_ref, width, place), epsilon)
            normed = _normed(whitened, scale_ref, shift_ref, width)
            d_new = _read(d_new_ref, place)
            reset, update = _sigmoid(normed[0]), _sigmoid(normed[2] - 1)
            candidate = _tanh(reset * normed[1])
            d_update = d_new * (candidate - _read(deter_ref, place))
            d_inner = d_new * update * (1 - candidate * candidate)
            d_normed = [
                d_inner * normed[1] * reset * (1 - reset),
                d_inner * reset,
                d_update * update * (1 - update),
            ]
            d_deter_ref[place, :] = (d_new * (1 - update)).astype(d_deter_ref.dtype)
            scales = _vectors(scale_ref, width)
            d_whitened = [d * s for d, s in zip(d_normed, scales, strict=True)]
            d_x = _norm_back(whitened, d_whitened, inverse)
            for k, own in enumerate(d_x):
                d_x_ref[place, pl.ds(k * width, width)] = own.astype(d_x_ref.dtype)
            terms = [(d * w).sum(0) for d, w in zip(d_normed, whitened, strict=True)]
            terms += [d.sum(0) for d in d_normed]
            return [s + t for s, t in zip(sums, terms, strict=True)]

        zeros = [jnp.zeros(width, jnp.float32)] * 6
        sums = jax.lax.fori_loop(0, n_tiles, tile, zeros)
        for k in range(3):
            place = pl.ds(k * width, width)
            d_scale_ref[:, place] = sums[k][None]
            d_shift_ref[:, place] = sums[3 + k][None]

    n_programs = n // (rows * n_tiles)
    wide, narrow = (rows_block(rows * n_tiles, w) for w in (3 * width, width))
    partial_sums = jax.ShapeDtypeStruct((n_programs, 3 * width), jnp.float32)
    d_x, d_deter, d_scale, d_shift = call(
        kernel,
        n_programs,
        [wide, narrow, narrow, whole_block(3 * width), whole_block(3 * width)],
        [wide, narrow, rows_block(1, 3 * width), rows_block(1, 3 * width)],
        [
            jax.ShapeDtypeStruct(x.shape, x.dtype),
            jax.ShapeDtypeStruct(deter.shape, deter.dtype),
            partial_sums,
            partial_sums,
        ],
    )(x, deter, d_new, scale, shift)
    return d_scale.sum(0), d_shift.sum(0), d_x, d_deter


# -------------------------------------------------------------------- draws


def draw(
    product: jax.Array,
    bias: jax.Array,
    uniform: jax.Array,
) -> jax.Array:
    """One-hot draws (n, C K) from logits product + bias (n, C K) by uniform (n, C)."""
    n, n_categoricals = uniform.shape
    n_classes = product.shape[-1] // n_categoricals

    def kernel(product_ref: Any, bias_ref: Any, uniform_ref: Any, out_ref: Any) -> None:
        mixed = _mixed(_read(product_ref) + bias_ref[...][None])
        cumulative = jnp.cumsum(mixed, -1)
        classes = jax.lax.broadcasted_iota(jnp.int32, mixed.shape, 2)
        passed = (uniform_ref[...][..., None] >= cumulative) & (classes < n_classes - 1)
        chosen = passed.astype(jnp.int32).sum(-1)[..., None]
        out_ref[...] = (classes == chosen).astype(out_ref.dtype)

    shape = (n_categoricals, n_classes)
    rows = tile_rows(n, product.shape[-1])
    logits = pl.BlockSpec((rows, *shape), lambda i: (i, 0, 0))
    drawn = call(
        kernel,
        n // rows,
        [
            logits,
            pl.BlockSpec(shape, lambda i: (0, 0)),
            rows_block(rows, n_categoricals),
        ],
        [logits],
        [jax.ShapeDtypeStruct((n, *shape), product.dtype)],
    )(product.reshape(n, *shape), bias.reshape(shape), uniform)[0]
    return drawn.reshape(product.shape)


def draw_back(
    product: jax.Array,
    bias: jax.Array,
    d_drawn: jax.Array,
    n_categoricals: int,
) -> jax.Array:
    """Gradient of the logits (n, C K), straight through the probabilities."""
    n, width = product.shape
    shape = (n_categoricals, width // n_categoricals)

    def kernel(product_ref: Any, bias_ref: Any, d_ref: Any, out_ref: Any) -> None:
        soft = _softmax(_read(product_ref) + bias_ref[...][None])
        d_soft = (1 - UNIMIX) * _read(d_ref)
        mean = (soft * d_soft).sum(-1)[..., None]
        out_ref[...] = (soft * (d_soft - mean)).astype(out_ref.dtype)

    rows = tile_rows(n, width)
    logits = pl.BlockSpec((rows, *shape), lambda i: (i, 0, 0))
    d_logits = call(
        kernel,
        n // rows,
        [logits, pl.BlockSpec(shape, lambda i: (0, 0)), logits],
        [logits],
        [jax.ShapeDtypeStruct((n, *shape), product.dtype)],
    )(product.reshape(n, *shape), bias.reshape(shape), d_drawn.reshape(n, *shape))[0]
    return d_logits.reshape(product.shape)


# -------------------------------------------------------------------- in a kernel


def _read(ref: Any, place: Any = slice(None)) -> jax.Array:
    return ref[place].astype(jnp.float32)


def _thirds(ref: Any, width: int, place: Any = slice(None)) -> list[jax.Array]:
    return [ref[place, pl.ds(k * width, width)].astype(jnp.float32) for k in range(3)]


def _vectors(ref: Any, width: int) -> list[jax.Array]:
    return [ref[pl.ds(k * width, width)][None] for k in range(3)]


def _normed(
    whitened: Sequence[jax.Array], scale_ref: Any, shift_ref: Any, width: int
) -> list[jax.Array]:
    scales, shifts = _vectors(scale_ref, width), _vectors(shift_ref, width)
    return [w * s + b for w, s, b in zip(whitened, scales, shifts, strict=True)]


def _whitened(
    parts: Sequence[jax.Array], epsilon: float
) -> tuple[list[jax.Array], jax.Array]:
    """Rows given in parts, with mean 0 and variance 1; and what divided them."""
    mean = _mean(parts)
    centred = [part - mean for part in parts]
    inverse = jax.lax.rsqrt(_mean([part * part for part in centred]) + epsilon)
    return [part * inverse for part in centred], inverse


def _norm_back(
    whitened: Sequence[jax.Array], d_whitened: Sequence[jax.Array], inverse: jax.Array
) -> list[jax.Array]:
    pairs = list(zip(whitened, d_whitened, strict=True))
    mean, along = _mean(d_whitened), _mean([w * d for w, d in pairs])
    return [inverse * (d - mean - w * along) for w, d in pairs]


def _mean(parts: Sequence[jax.Array]) -> jax.Array:
    """(rows, 1) over rows given in parts."""
    width = sum(part.shape[-1] for part in parts)
    total = parts[0].sum(-1)
    for part in parts[1:]:
        total += part.sum(-1)
    return total[:, None] * (1 / width)


def _softmax(logits: jax.Array) -> jax.Array:
    powers = jnp.exp(logits - logits.max(-1)[..., None])
    return powers / powers.sum(-1)[..., None]


def _mixed(logits: jax.Array) -> jax.Array:
    return (1 - UNIMIX) * _softmax(logits) + UNIMIX / logits.shape[-1]


def _sigmoid(x: jax.Array) -> jax.Array:
    return 1 / (1 + jnp.exp(-x))


def _tanh(x: jax.Array) -> jax.Array:
    return 2 * _sigmoid(2 * x) - 1


def _silu_slope(x: jax.Array) -> jax.Array:
    gate = _sigmoid(x)
    return gate * (1 + x * (1 - gate))
