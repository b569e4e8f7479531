"""Estimates and losses of logits over bins, as functions with gradients.

Each is one pass over the logits, forward and backward. There are 256 bins, one more
than the agent has, so that rows are aligned in memory. The bias of the last bin is so
low that its probability is 0.
"""

from functools import partial

import jax
import jax.numpy as jnp

from fallow.agents.dreamer.bins import BINS
from fallow.agents.dreamer.gpu import kernels
from fallow.agents.shared.bins import symexp

N_PADDED = 256
FAR_BELOW = -1e9
"""Bias of a bin that is not one of them."""


def padded(weight: jax.Array, bias: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Weight (F, K) and bias (K,) of an output layer, with 256 bins."""
    n_more = N_PADDED - BINS.n
    weight = jnp.pad(weight, ((0, 0), (0, n_more)))
    return weight, jnp.pad(bias, (0, n_more), constant_values=FAR_BELOW)


def estimate(product: jax.Array, bias: jax.Array) -> jax.Array:
    """`Bins.estimate` of logits product + bias, (…, 256)."""
    mean = mean_bin(BINS.n // 2, product.reshape(-1, N_PADDED), bias)
    return symexp(mean * BINS.width).reshape(product.shape[:-1])


def cross_entropy(
    product: jax.Array, bias: jax.Array, *targets: jax.Array
) -> jax.Array:
    """The sum of `Bins.cross_entropy` of the same logits with each of targets (…)."""
    places = jnp.stack([BINS.place(x).ravel() for x in targets], -1)
    loss = two_hot_loss(product.reshape(-1, N_PADDED), bias, places)
    return loss.reshape(product.shape[:-1])


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def mean_bin(middle: int, product: jax.Array, bias: jax.Array) -> jax.Array:
    """(n,) mean of the bins' numbers, 0 at `middle`, under softmax(logits)."""
    return kernels.mean_bin(product, bias, middle)


def _mean_bin_back(
    middle: int, saved: tuple[jax.Array, jax.Array], d_mean: jax.Array
) -> tuple[jax.Array, jax.Array]:
    d_product = kernels.mean_bin_back(*saved, d_mean, middle)
    return d_product, d_product.astype(jnp.float32).sum(0)


mean_bin.defvjp(
    lambda middle, *given: (mean_bin(middle, *given), given), _mean_bin_back
)


@jax.custom_vjp
def two_hot_loss(product: jax.Array, bias: jax.Array, places: jax.Array) -> jax.Array:
    """(n,) from logits (n, K) and targets (n, m) in bins from the first one."""
    return kernels.two_hot_loss(product, bias, places)


def _two_hot_loss_back(
    saved: tuple[jax.Array, jax.Array, jax.Array], d_loss: jax.Array
) -> tuple[jax.Array, jax.Array, None]:
    d_product = kernels.two_hot_loss_back(*saved, d_loss)
    return d_product, d_product.astype(jnp.float32).sum(0), None


two_hot_loss.defvjp(lambda *given: (two_hot_loss(*given), given), _two_hot_loss_back)
