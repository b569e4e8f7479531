"""The kernels between matrix products, as functions with gradients.

Products stay in their own type; deterministic states and gradients of parameters are
float32.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from fallow.agents.dreamer.gpu import kernels
from fallow.agents.shared.layers import Norm

# ---------------------------------------------------------------- norm and SiLU


@jax.custom_vjp
def norm_silu(norm: Norm, x: jax.Array) -> jax.Array:
    """silu(norm(x)) of (…, W), in the type of x."""
    y = kernels.norm_silu(norm.scale, norm.shift, _flat(x), norm.epsilon)
    return y.reshape(x.shape)


def norm_silu_back(norm: Norm, x: jax.Array, d_y: jax.Array) -> tuple[Norm, jax.Array]:
    """Gradients of norm and x."""
    d_scale, d_shift, d_x = kernels.norm_silu_back(
        norm.scale, norm.shift, _flat(x), _flat(d_y), norm.epsilon
    )
    return _norm_like(norm, d_scale, d_shift), d_x.reshape(x.shape)


norm_silu.defvjp(
    lambda norm, x: (norm_silu(norm, x), (norm, x)),
    lambda saved, d_y: norm_silu_back(saved[0], saved[1], d_y),
)


# ---------------------------------------------------------------- norm and gates


@jax.custom_vjp
def norm_gates(norm: Norm, x: jax.Array, deter: jax.Array) -> jax.Array:
    """The next deter (…, D) from the joint product (…, 3 D)."""
    new = kernels.norm_gates(
        norm.scale, norm.shift, _flat(x), _flat(deter), norm.epsilon
    )
    return new.reshape(deter.shape)


def norm_gates_back(
    norm: Norm, x: jax.Array, deter: jax.Array, d_new: jax.Array
) -> tuple[Norm, jax.Array, jax.Array]:
    """Gradients of norm, x and deter."""
    d_scale, d_shift, d_x, d_deter = kernels.norm_gates_back(
        norm.scale, norm.shift, _flat(x), _flat(deter), _flat(d_new), norm.epsilon
    )
    d_norm = _norm_like(norm, d_scale, d_shift)
    return d_norm, d_x.reshape(x.shape), d_deter.reshape(deter.shape)


norm_gates.defvjp(
    lambda norm, x, deter: (norm_gates(norm, x, deter), (norm, x, deter)),
    lambda saved, d_new: norm_gates_back(saved[0], saved[1], saved[2], d_new),
)


# ---------------------------------------------------------------- the latent


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def sample_latent(
    n_categoricals: int, product: jax.Array, bias: jax.Array, uniform: jax.Array
) -> jax.Array:
    """One-hot samples (…, C K) of logits product + bias, by `uniform` (…, C)."""
    sample = kernels.one_hot(_flat(product), bias, _flat(uniform))
    return sample.reshape(product.shape)


def sample_latent_back(
    n_categoricals: int, product: jax.Array, bias: jax.Array, d_sample: jax.Array
) -> jax.Array:
    """Gradient of the product, (…, C K)."""
    d_product = kernels.one_hot_back(
        _flat(product), bias, _flat(d_sample), n_categoricals
    )
    return d_product.reshape(d_sample.shape)


def _sample_latent_back(n: int, saved: Any, d_sample: jax.Array) -> tuple[Any, ...]:
    product, bias = saved
    d_product = sample_latent_back(n, product, bias, d_sample)
    return d_product, _flat(d_product).astype(jnp.float32).sum(0), None


sample_latent.defvjp(
    lambda n, product, bias, uniform: (
        sample_latent(n, product, bias, uniform),
        (product, bias),
    ),
    _sample_latent_back,
)


def _flat(x: jax.Array) -> jax.Array:
    return x.reshape(-1, x.shape[-1])


def _norm_like(norm: Norm, scale: jax.Array, shift: jax.Array) -> Norm:
    return eqx.tree_at(lambda n: (n.scale, n.shift), norm, (scale, shift))
