"""The operations between matrix products: plain JAX, and the seam to the GPU kernels.

Everything else in this package is plain JAX and calls these. On a GPU, and for widths
that are powers of two, an operation is one kernel of `dreamer.gpu`; elsewhere it is the
few lines here, differentiated automatically. Without that folder only speed changes.
`*_back` are gradients for scans that are differentiated by hand.
"""

import os
import warnings
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from fallow.agents.dreamer import latent
from fallow.agents.shared.layers import Norm

kernels: Any
"""The package of GPU kernels; None if it was removed."""
try:
    from fallow.agents.dreamer import gpu as kernels
except ImportError:
    kernels = None

SLOWER = "up to 1.5 times slower on an H200 (benchmarks/fleet.md)"


def fits(kernel: str, *widths: int) -> bool:
    """Whether a kernel is used for rows of these widths; a GPU without says why."""
    if kernels is None:
        if jax.default_backend() == "gpu":
            _warn("fallow.agents.dreamer.gpu cannot be imported")
        return False
    if not kernels.launch.available():
        if jax.default_backend() == "gpu":
            off = os.environ.get("FALLOW_KERNELS") == "off"
            _warn("FALLOW_KERNELS=off" if off else "this jax has no Pallas for Triton")
        return False
    if kernels.launch.fits(kernel, *widths):
        return True
    off = kernel in kernels.launch.left_out()
    _warn(f"{kernel} is off" if off else "its sizes are not powers of two")
    return False


@cache
def _warn(reason: str) -> None:
    text = f"DreamerV3 runs without some of its GPU kernels, {SLOWER}: {reason}"
    warnings.warn(text, RuntimeWarning, stacklevel=2)


# ---------------------------------------------------------------- norm and SiLU


def norm_silu(norm: Norm, x: jax.Array) -> jax.Array:
    """What follows a block's product (…, W), in its type: silu(norm(x))."""
    if fits("norm_silu", x.shape[-1]):
        return kernels.fused.norm_silu(norm, x)
    return jax.nn.silu(norm(x)).astype(x.dtype)


def norm_silu_back(norm: Norm, x: jax.Array, d_y: jax.Array) -> tuple[Norm, jax.Array]:
    """Gradients of norm and x, from that of the result."""
    if fits("norm_silu", x.shape[-1]):
        return kernels.fused.norm_silu_back(norm, x, d_y)
    return jax.vjp(norm_silu, norm, x)[1](d_y)


# ---------------------------------------------------------------- norm and gates


def norm_gates(norm: Norm, x: jax.Array, deter: jax.Array) -> jax.Array:
    """From the joint product of input and deter (…, 3 D) to the next deter (…, D)."""
    if fits("norm_gates", deter.shape[-1]):
        return kernels.fused.norm_gates(norm, x, deter)
    return gates(norm(x), deter)


def gates(normed: jax.Array, deter: jax.Array) -> jax.Array:
    """The next deter (…, D) from what the norm gives, (…, 3 D).

    The reset gate multiplies the candidate after the product and the norm, unlike in
    the usual GRU.
    """
    reset, candidate, update = jnp.split(normed, 3, -1)
    candidate = jnp.tanh(jax.nn.sigmoid(reset) * candidate)
    update = jax.nn.sigmoid(update - 1)
    return update * candidate + (1 - update) * deter


def norm_gates_back(
    norm: Norm, x: jax.Array, deter: jax.Array, d_new: jax.Array
) -> tuple[Norm, jax.Array, jax.Array]:
    """Gradients of norm, x and deter, from that of the next deter."""
    if fits("norm_gates", deter.shape[-1]):
        return kernels.fused.norm_gates_back(norm, x, deter, d_new)
    return jax.vjp(norm_gates, norm, x, deter)[1](d_new)


# ---------------------------------------------------------------- the latent


class Logits(eqx.Module):
    """Logits of the latent as a product in its own type and a bias, not yet added."""

    product: jax.Array  # (…, C K)
    bias: jax.Array  # (C K,)
    shape: tuple[int, int] = eqx.field(static=True)

    def __call__(self) -> jax.Array:
        """(…, C, K) in float32."""
        logits = self.product.astype(jnp.float32) + self.bias
        return logits.reshape(*logits.shape[:-1], *self.shape)

    @property
    def fits(self) -> bool:
        """Whether a kernel can sample from them."""
        return fits("sample_latent", self.product.shape[-1], 16 * self.shape[1])


def sample_latent(logits: Logits, uniform: jax.Array | None) -> jax.Array:
    """A flat one-hot latent (…, C K): a sample by `uniform` (…, C), or the mode."""
    if uniform is not None and logits.fits:
        given = (logits.product, logits.bias, uniform)
        return kernels.fused.sample_latent(logits.shape[0], *given)
    values = logits()
    one_hot = latent.mode(values) if uniform is None else latent.sample(values, uniform)
    return one_hot.reshape(logits.product.shape).astype(logits.product.dtype)


def sample_latent_back(
    logits: Logits, uniform: jax.Array | None, d_sample: jax.Array
) -> jax.Array:
    """Gradient of the logits (…, C K): of probabilities; for a mode, of their logs."""
    if uniform is not None and logits.fits:
        given = (logits.product, logits.bias, d_sample)
        return kernels.fused.sample_latent_back(logits.shape[0], *given)
    pull = jax.vjp(lambda some: sample_latent(some, uniform), logits)[1]
    (d_logits,) = pull(d_sample)
    return d_logits.product


# ---------------------------------------------------------------- steps


def stack_steps(*parts: jax.Array) -> jax.Array:
    """Arrays (rows, …), one a step, as one of (steps, rows, …), as `jnp.stack`.

    A compiler's concatenation moves number by number, a fifth of what memory can do;
    on a GPU one kernel copies whole rows instead.
    """
    if kernels is not None and kernels.stack.fits(*parts):
        return kernels.stack.copied(*parts)
    # rows after rows: an axis of length one a compiler makes the slowest of all
    rows = [jnp.atleast_1d(part) for part in parts]
    return jnp.concatenate(rows).reshape(len(parts), *parts[0].shape)
