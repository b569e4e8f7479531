"""Optimiser steps as in the PyTorch references."""

from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

Network = TypeVar("Network", bound=eqx.Module)


def clipped(largest: float) -> optax.GradientTransformation:
    """Scale gradients by min(1, largest / (norm + 1e-6))."""

    def update(gradients: Any, state: Any, parameters: Any = None) -> tuple[Any, Any]:
        factor = jnp.minimum(1, largest / (optax.tree.norm(gradients) + 1e-6))
        return jax.tree.map(lambda g: g * factor, gradients), state

    return optax.GradientTransformation(lambda _: optax.EmptyState(), update)


def clipped_adam(
    rate: float, epsilon: float, largest: float
) -> optax.GradientTransformation:
    """Adam on clipped gradients."""
    return optax.chain(clipped(largest), optax.adam(rate, eps=epsilon))


def apply_gradients(
    optimizer: optax.GradientTransformation,
    network: Network,
    opt_state: Any,
    gradients: Network,
) -> tuple[Network, Any, jax.Array]:
    """One step of the optimiser, and the norm of the gradient."""
    updates, opt_state = optimizer.update(gradients, opt_state, network)
    norm = optax.tree.norm(gradients)
    return optax.apply_updates(network, updates), opt_state, norm
