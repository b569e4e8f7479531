"""Rewards and values as logits over bins: their estimate, and their loss.

Both are the formulas of `Bins`. On a GPU each is one pass over the logits, forward and
back, over 256 bins: a 255th of a row more, and rows begin where memory is read well.
The last bin's bias is so low that nothing falls into it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from fallow.agents.dreamer import ops
from fallow.agents.dreamer.bins import BINS
from fallow.agents.dreamer.layers import MLP, product
from fallow.agents.shared.bins import symexp

N_PADDED = 256
FAR_BELOW = -1e9
"""Bias of a bin that is not one of them."""


class BinnedScalars(NamedTuple):
    """Logits as a product in its own type and a bias, not yet added."""

    product: jax.Array  # (…, K)
    bias: jax.Array  # (K,)

    @classmethod
    def of(cls, head: MLP, features: jax.Array) -> "BinnedScalars":
        """What a head makes of features (…, F)."""
        assert head.out is not None
        x, weight, bias = head.hidden(features), head.out.weight, head.out.bias
        if ops.fits("bins", N_PADDED):
            n_more = N_PADDED - BINS.n
            weight = jnp.pad(weight, ((0, 0), (0, n_more)))
            bias = jnp.pad(bias, (0, n_more), constant_values=FAR_BELOW)
        return cls(product(x, weight), bias)

    def estimate(self) -> jax.Array:
        """(…), as `Bins.estimate`."""
        if not self._is_padded:
            return BINS.estimate(self._logits())
        flat = self.product.reshape(-1, N_PADDED)
        mean = ops.kernels.fused.mean_bin(BINS.n // 2, flat, self.bias)
        return symexp(mean * BINS.width).reshape(self.product.shape[:-1])

    def cross_entropy(self, *targets: jax.Array) -> jax.Array:
        """The sum of `Bins.cross_entropy` with each of some targets (…)."""
        if not self._is_padded:
            logits = self._logits()
            return sum((BINS.cross_entropy(logits, x) for x in targets), jnp.zeros(()))
        places = jnp.stack([BINS.place(x).ravel() for x in targets], -1)
        flat = self.product.reshape(-1, N_PADDED)
        loss = ops.kernels.fused.two_hot_loss(flat, self.bias, places)
        return loss.reshape(self.product.shape[:-1])

    @property
    def _is_padded(self) -> bool:
        return len(self.bias) == N_PADDED

    def _logits(self) -> jax.Array:
        return self.product.astype(jnp.float32) + self.bias
