"""Rewards and values as logits over bins: their estimate, and their loss.

On a GPU each is one pass over the logits, forward and back (see `kernels`), over 256
bins: a 255th of a row more, and rows begin where memory is read well. The last bin's
bias is so low that nothing falls into it. Elsewhere both are the formulas of `Bins`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from fallow.agents.dreamer import kernels, tiles
from fallow.agents.dreamer.layers import MLP, product
from fallow.agents.dreamer.twohot import BINS
from fallow.agents.shared.twohot import symexp

N_PADDED = 256
FAR_BELOW = -1e9
"""Bias of a bin that is not one of them."""


class Scalars(NamedTuple):
    """Logits as a product in its own type and a bias, not yet added."""

    product: jax.Array  # (…, K)
    bias: jax.Array  # (K,)

    @classmethod
    def of(cls, head: MLP, features: jax.Array) -> "Scalars":
        """What a head makes of features (…, F)."""
        assert head.out is not None
        x, weight, bias = head.hidden(features), head.out.weight, head.out.bias
        if tiles.fits(N_PADDED):
            n_more = N_PADDED - BINS.n
            weight = jnp.pad(weight, ((0, 0), (0, n_more)))
            bias = jnp.pad(bias, (0, n_more), constant_values=FAR_BELOW)
        return cls(product(x, weight), bias)

    def estimate(self) -> jax.Array:
        """(…), as `Bins.estimate`."""
        if not self._is_padded:
            return BINS.estimate(self._logits())
        flat = self.product.reshape(-1, N_PADDED)
        return symexp(_mean_bin(flat, self.bias) * BINS.width).reshape(
            self.product.shape[:-1]
        )

    def cross_entropy(self, *targets: jax.Array) -> jax.Array:
        """The sum of `Bins.cross_entropy` with each of some targets (…)."""
        if not self._is_padded:
            logits = self._logits()
            return sum((BINS.cross_entropy(logits, x) for x in targets), jnp.zeros(()))
        places = jnp.stack([BINS.place(x).ravel() for x in targets], -1)
        flat = self.product.reshape(-1, N_PADDED)
        return _cross_entropy(flat, self.bias, places).reshape(self.product.shape[:-1])

    @property
    def _is_padded(self) -> bool:
        return len(self.bias) == N_PADDED

    def _logits(self) -> jax.Array:
        return self.product.astype(jnp.float32) + self.bias


@jax.custom_vjp
def _mean_bin(product: jax.Array, bias: jax.Array) -> jax.Array:
    """(n,) mean of the bins' numbers, 0 in the middle, under softmax(logits)."""
    return kernels.mean_bin(product, bias, BINS.n // 2)


def _mean_bin_back(
    saved: tuple[jax.Array, jax.Array], d_mean: jax.Array
) -> tuple[jax.Array, jax.Array]:
    d_product = kernels.mean_bin_back(*saved, d_mean, BINS.n // 2)
    return d_product, d_product.astype(jnp.float32).sum(0)


_mean_bin.defvjp(lambda *given: (_mean_bin(*given), given), _mean_bin_back)


@jax.custom_vjp
def _cross_entropy(product: jax.Array, bias: jax.Array, places: jax.Array) -> jax.Array:
    """(n,) from logits (n, K) and targets (n, m) in bins from the first one."""
    return kernels.two_hot_loss(product, bias, places)


def _cross_entropy_back(
    saved: tuple[jax.Array, jax.Array, jax.Array], d_loss: jax.Array
) -> tuple[jax.Array, jax.Array, None]:
    d_product = kernels.two_hot_loss_back(*saved, d_loss)
    return d_product, d_product.astype(jnp.float32).sum(0), None


_cross_entropy.defvjp(
    lambda *given: (_cross_entropy(*given), given), _cross_entropy_back
)
