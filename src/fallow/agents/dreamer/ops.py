"""The operations between matrix products: plain JAX, and the seam to the GPU kernels.

Everything else in this package is plain JAX and calls these; nothing else calls a
kernel. On a GPU, and for widths that are powers of two, an operation is one kernel of
`dreamer.gpu`; elsewhere it is the few lines here, differentiated automatically. Without
that folder only speed changes. `*_back` are gradients for scans that are differentiated
by hand.
"""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from fallow.agents.dreamer import latent
from fallow.agents.dreamer.bins import BINS
from fallow.agents.dreamer.recurrence import (
    Inputs,
    Products,
    Recurrence,
    Shape,
    State,
    StepGrads,
)
from fallow.agents.shared.layers import Norm

kernels: Any
"""The package of GPU kernels; None if it cannot be imported."""
MISSING = ""
"""Why it cannot."""
try:
    from fallow.agents.dreamer import gpu as kernels
    from fallow.agents.dreamer.gpu import refusal  # an emptied folder has none
except ImportError as error:
    kernels, MISSING = None, f"its kernels cannot be imported ({error})"

SLOWER = "up to 1.6 times slower on an H200 (docs/speed.md)"
FEW = 1024
"""Numbers of an array; to copy fewer takes no time that matters."""


def fits(kernel: str, *given: Any) -> bool:
    """Whether a kernel is used for rows of given widths, `stack` for given arrays.

    On a GPU each reason why not is reported once.
    """
    reason = MISSING or refusal(kernel, *given)
    if reason and jax.default_backend() == "gpu":
        _warn(reason)
    return not reason


@cache
def _warn(reason: str) -> None:
    text = f"DreamerV3 runs without some of its GPU kernels, {SLOWER}: {reason}"
    warnings.warn(text, RuntimeWarning, stacklevel=2)


# ---------------------------------------------------------------- norm and SiLU


def norm_silu(norm: Norm, x: jax.Array) -> jax.Array:
    """silu(norm(x)) of a block's product (…, W), in its type."""
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


# ---------------------------------------------------------------- bins


def bins_layer(weight: jax.Array, bias: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Weight (F, K) and bias (K,) that give logits over bins, as their kernels ask."""
    return kernels.bins.padded(weight, bias) if fits("bins") else (weight, bias)


def bins_estimate(product: jax.Array, bias: jax.Array) -> jax.Array:
    """`Bins.estimate` of logits product + bias (…, K)."""
    if _is_padded(bias):
        return kernels.bins.estimate(product, bias)
    return BINS.estimate(product.astype(jnp.float32) + bias)


def bins_cross_entropy(
    product: jax.Array, bias: jax.Array, *targets: jax.Array
) -> jax.Array:
    """The sum of `Bins.cross_entropy` of the same logits with each of targets (…)."""
    if _is_padded(bias):
        return kernels.bins.cross_entropy(product, bias, *targets)
    logits = product.astype(jnp.float32) + bias
    return sum((BINS.cross_entropy(logits, x) for x in targets), jnp.zeros(()))


def _is_padded(bias: jax.Array) -> bool:
    """Whether `bins_layer` made it for the kernels."""
    return len(bias) != BINS.n


# ---------------------------------------------------------------- the posterior


def posterior_forward(
    scan: Callable[..., Any],
    shape: Shape,
    unroll: int,
    net: Recurrence,
    state: State,
    inputs: Inputs,
) -> tuple[State, Products]:
    """States and products of all steps: `scan`, or on a GPU four kernels a step."""
    if _posterior_fits(shape, net, inputs):
        return kernels.posterior_forward.forward(shape, net, state, inputs)
    return scan(shape, unroll, net, state, inputs)


def posterior_backward(
    scan: Callable[..., Any],
    shape: Shape,
    unroll: int,
    net: Recurrence,
    inputs: Inputs,
    kept: Any,
    d_out: Any,
) -> tuple[StepGrads, State, State]:
    """Its gradients, likewise."""
    if _posterior_fits(shape, net, inputs):
        return kernels.posterior_backward.backward(shape, net, inputs, kept, d_out)
    return scan(shape, unroll, net, inputs, kept, d_out)


def _posterior_fits(shape: Shape, net: Recurrence, inputs: Inputs) -> bool:
    """Whether the kernels run the recurrence; they sample, and take no modes."""
    widths = (net.w1.shape[1], len(net.start.deter), net.w3.shape[1], len(net.bias))
    return inputs.uniform is not None and fits("posterior", *widths, 16 * shape[1])


# ---------------------------------------------------------------- steps


def stack_steps(*parts: jax.Array) -> jax.Array:
    """Arrays (rows, …), one a step, as one of (steps, rows, …), as `jnp.stack`.

    A compiler's concatenation moves number by number, a fifth of what memory can do;
    on a GPU one kernel copies whole rows instead.
    """
    if parts[0].size >= FEW and fits("stack", *parts):
        return kernels.stack.copied(*parts)
    # rows after rows: an axis of length one a compiler makes the slowest of all
    rows = [jnp.atleast_1d(part) for part in parts]
    return jnp.concatenate(rows).reshape(len(parts), *parts[0].shape)
