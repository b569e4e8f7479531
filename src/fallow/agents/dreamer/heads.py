"""Rewards and values as logits over bins: their estimate, and their loss."""

from typing import NamedTuple

import jax

from fallow.agents.dreamer import ops
from fallow.agents.dreamer.layers import MLP, product


class BinnedScalars(NamedTuple):
    """Logits as a product in its own type and a bias, not yet added."""

    product: jax.Array  # (…, K)
    bias: jax.Array  # (K,)

    @classmethod
    def of(cls, head: MLP, features: jax.Array) -> "BinnedScalars":
        """Outputs of a head at features (…, F)."""
        assert head.out is not None
        x = head.hidden(features)
        weight, bias = ops.bins_layer(head.out.weight, head.out.bias)
        return cls(product(x, weight), bias)

    def estimate(self) -> jax.Array:
        """(…), as `Bins.estimate`."""
        return ops.bins_estimate(self.product, self.bias)

    def cross_entropy(self, *targets: jax.Array) -> jax.Array:
        """The sum of `Bins.cross_entropy` with each of some targets (…)."""
        return ops.bins_cross_entropy(self.product, self.bias, *targets)
