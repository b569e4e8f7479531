"""What kernels compute on a tile of rows that they hold, in float32.

A row of 3 D numbers comes in three parts, since a tile's width is a power of two.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from fallow.agents.dreamer.gpu import launch
from fallow.agents.dreamer.latent import UNIMIX

Parts = Sequence[jax.Array]
_LOG2_E = math.log2(math.e)


def read(ref: Any, *place: Any) -> jax.Array:
    """Read from memory: everything, or one place."""
    return ref[place or ...].astype(jnp.float32)


def parts_of(ref: Any, n: int, *place: Any) -> list[jax.Array]:
    """Rows in n parts; `place` is all but the last index."""
    width = ref.shape[-1] // n
    return [read(ref, *place, pl.ds(k * width, width)) for k in range(n)]


def write_parts(ref: Any, parts: Parts, *place: Any) -> None:
    """The inverse."""
    width = parts[0].shape[-1]
    for k, part in enumerate(parts):
        ref[(*place, pl.ds(k * width, width))] = part.astype(ref.dtype)


# ------------------------------------------------------------------------- norm


class Normed(NamedTuple):
    """Rows after a norm, and what its gradient needs."""

    parts: list[jax.Array]
    whitened: list[jax.Array]
    """Of mean 0 and variance 1."""
    inverse: jax.Array
    """(rows, 1), what made them so."""
    scales: list[jax.Array]

    def back(self, d_parts: Parts) -> list[jax.Array]:
        """Gradient of the rows from that of the parts."""
        d_white = [d * s for d, s in zip(d_parts, self.scales, strict=True)]
        pairs = list(zip(self.whitened, d_white, strict=True))
        mean, along = _mean(d_white), _mean([w * d for w, d in pairs])
        return [self.inverse * _fused(w, -along, d - mean) for w, d in pairs]

    def sums(self, d_parts: Parts) -> list[jax.Array]:
        """The rows' part of the gradients of scale and shift, part by part."""
        pairs = zip(d_parts, self.whitened, strict=True)
        return [(d * w).sum(0) for d, w in pairs] + [d.sum(0) for d in d_parts]


def norm(parts: Parts, scale_ref: Any, shift_ref: Any, epsilon: float) -> Normed:
    """Rows given in parts, each row to mean 0 and variance 1, then scale and shift."""
    mean = _mean(parts)
    centred = [part - mean for part in parts]
    inverse = jax.lax.rsqrt(_mean([part * part for part in centred]) + epsilon)
    whitened = [part * inverse for part in centred]
    n = len(parts)
    scales, shifts = (parts_of(ref, n, slice(None)) for ref in (scale_ref, shift_ref))
    rows = zip(whitened, scales, shifts, strict=True)
    return Normed([_fused(*row) for row in rows], whitened, inverse, scales)


def _mean(parts: Parts) -> jax.Array:
    """(rows, 1) over rows given in parts."""
    width = sum(part.shape[-1] for part in parts)
    total = parts[0].sum(-1)
    for part in parts[1:]:
        total += part.sum(-1)
    return total[:, None] * (1 / width)


# ------------------------------------------------------------------------- SiLU, gates


def silu(x: jax.Array) -> jax.Array:
    """Of x: x sigmoid(x)."""
    return x * _sigmoid(x)


def silu_slope(x: jax.Array) -> jax.Array:
    """Its derivative."""
    gate = _sigmoid(x)
    return _fused(x * gate, 1 - gate, gate)


def gated(normed: Parts, deter: jax.Array) -> jax.Array:
    """The next deter, as `ops.gates`."""
    reset, candidate, update = normed
    candidate = _tanh(_sigmoid(reset) * candidate)
    update = _sigmoid(update - 1)
    return update * candidate + (1 - update) * deter


def gated_back(
    normed: Parts, deter: jax.Array, d_new: jax.Array
) -> tuple[list[jax.Array], jax.Array]:
    """Gradients of the three parts and of the deter before."""
    reset, update = _sigmoid(normed[0]), _sigmoid(normed[2] - 1)
    candidate = _tanh(reset * normed[1])
    d_update = d_new * (candidate - deter)
    d_inner = d_new * update * (1 - candidate * candidate)
    d_normed = [
        d_inner * normed[1] * reset * (1 - reset),
        d_inner * reset,
        d_update * update * (1 - update),
    ]
    return d_normed, d_new * (1 - update)


def _sigmoid(x: jax.Array) -> jax.Array:
    return _inverse(1 + _exp2(-_LOG2_E * x))


def _tanh(x: jax.Array) -> jax.Array:
    return 2 * _sigmoid(2 * x) - 1


def _exp(x: jax.Array) -> jax.Array:
    return _exp2(_LOG2_E * x)


# ------------------------------------------------------------------------- instructions


def _exp2(x: jax.Array) -> jax.Array:
    return _instruction("ex2.approx.ftz.f32", jnp.exp2, x)


def _inverse(x: jax.Array) -> jax.Array:
    return _instruction("rcp.approx.ftz.f32", lambda number: 1 / number, x)


def _fused(x: jax.Array, y: jax.Array, z: jax.Array) -> jax.Array:
    """X y + z, rounded once."""
    return _instruction("fma.rn.ftz.f32", lambda a, b, c: a * b + c, x, y, z)


def _instruction(
    name: str, plain: Callable[..., jax.Array], *numbers: jax.Array
) -> jax.Array:
    """One instruction of a GPU for each number, where a compiler takes several.

    It takes what is too small to be written in full as 0, and is off by 3e-7 at most.
    """
    if not launch.on_gpu():
        return plain(*numbers)
    _, inline_asm = launch.triton()
    shape = jnp.broadcast_shapes(*(number.shape for number in numbers))
    places = ", ".join(f"${k}" for k in range(len(numbers) + 1))
    (found,) = inline_asm(
        f"{name} {places};",
        args=[jnp.broadcast_to(number, shape) for number in numbers],
        constraints=",".join(["=f", *["f"] * len(numbers)]),
        pack=1,
        result_shape_dtypes=[jax.ShapeDtypeStruct(shape, jnp.float32)],
    )
    return found


# ------------------------------------------------------------------------- samples


def one_hot(logits: jax.Array, uniform: jax.Array) -> jax.Array:
    """One-hot (rows, C, K), as `latent.sample`; True where a class is sampled."""
    n_classes = logits.shape[-1]
    mixed = (1 - UNIMIX) * softmax(logits) + UNIMIX / n_classes
    cumulative = jnp.cumsum(mixed, -1)
    classes = jax.lax.broadcasted_iota(jnp.int32, mixed.shape, 2)
    passed = (uniform[..., None] >= cumulative) & (classes < n_classes - 1)
    return classes == passed.astype(jnp.int32).sum(-1)[..., None]


def one_hot_back(logits: jax.Array, d_sample: jax.Array) -> jax.Array:
    """Gradient of the logits, straight through the probabilities."""
    soft = softmax(logits)
    d_soft = (1 - UNIMIX) * d_sample
    return soft * (d_soft - (soft * d_soft).sum(-1)[..., None])


def softmax(logits: jax.Array) -> jax.Array:
    """Over the last axis."""
    powers = _exp(logits - logits.max(-1)[..., None])
    return powers * _inverse(powers.sum(-1))[..., None]


# ------------------------------------------------------------------------- bins


def log_sum_exp(logits: jax.Array) -> jax.Array:
    """(rows, 1) over the last axis."""
    top = logits.max(-1)[:, None]
    return jnp.log(_exp(logits - top).sum(-1)[:, None]) + top


def bins(like: jax.Array) -> jax.Array:
    """The number of each bin of (rows, K), in float32."""
    return jax.lax.broadcasted_iota(jnp.int32, like.shape, 1).astype(jnp.float32)


def mean_bin(soft: jax.Array, middle: int) -> jax.Array:
    """(rows, 1) mean of the bins' numbers, counted from the middle."""
    return (soft * (bins(soft) - middle)).sum(-1)[:, None]


def two_hots(places: Sequence[jax.Array], like: jax.Array) -> jax.Array:
    """Two-hot rows of all places (rows,), added; as `Bins.two_hot`."""
    apart = [jnp.abs(place[:, None] - bins(like)) for place in places]
    hats = [jnp.maximum(1 - distance, 0) for distance in apart]
    return sum(hats[1:], hats[0])
