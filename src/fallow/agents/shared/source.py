"""Arrays of a PyTorch checkpoint by name, checked for their shapes.

Linear weights are (out, in) there and (in, out) here.
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fallow.agents.shared.layers import Norm
from fallow.core.errors import FallowError


class Source:
    """A mapping from names to arrays, read into our modules."""

    def __init__(self, weights: Mapping[str, Any]) -> None:
        self.weights = weights

    def shape(self, name: str) -> tuple[int, ...]:
        """Of an array; a name that is missing raises."""
        if name not in self.weights:
            raise FallowError(
                f"the weights have no '{name}'; give all names of a checkpoint of the "
                "reference, e.g. those of its state_dict"
            )
        return tuple(self.weights[name].shape)

    def array(self, name: str, shape: tuple[int, ...]) -> jax.Array:
        """In float32; one of another shape raises."""
        if self.shape(name) != shape:
            raise FallowError(
                f"'{name}' has shape {self.shape(name)} and the sizes ask for {shape}; "
                "give the config of the checkpoint"
            )
        return jnp.asarray(np.asarray(self.weights[name]), jnp.float32)

    def matrix(self, name: str, like: Any) -> jax.Array:
        """The weight of a linear layer, in the shape (…, in, out) of `like`."""
        *leading, n_in, n_out = like.shape
        weight = self.array(f"{name}.weight", (*leading, n_out, n_in))
        return jnp.swapaxes(weight, -1, -2)

    def linear(self, name: str, like: Any) -> Any:
        """A layer with weight and bias."""
        bias = self.array(f"{name}.bias", like.bias.shape)
        return with_fields(like, weight=self.matrix(name, like.weight), bias=bias)

    def norm(self, name: str, like: Norm) -> Norm:
        """A layer normalisation."""
        scale = self.array(f"{name}.weight", like.scale.shape)
        shift = self.array(f"{name}.bias", like.shift.shape)
        return with_fields(like, scale=scale, shift=shift)


def with_fields(module: Any, **fields: Any) -> Any:
    """The module with some of its fields set."""
    return eqx.tree_at(
        lambda m: [getattr(m, name) for name in fields],
        module,
        list(fields.values()),
        is_leaf=lambda x: x is None,
    )
