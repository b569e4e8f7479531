"""The discrete latent: independent categoricals, mixed with a little uniform.

Logits are (…, C, K): C categoricals of K classes. Everything here (samples, divergence,
gradients) sees the mixed probabilities.
"""

import jax
import jax.numpy as jnp

UNIMIX = 0.01
"""Share of the uniform distribution in every categorical."""


def mixed(logits: jax.Array) -> jax.Array:
    """0.99 softmax + 0.01 / K."""
    n_classes = logits.shape[-1]
    return (1 - UNIMIX) * jax.nn.softmax(logits) + UNIMIX / n_classes


def log_mixed(logits: jax.Array) -> jax.Array:
    """The log of `mixed`."""
    return jnp.log(mixed(logits))


def sample(logits: jax.Array, uniform: jax.Array) -> jax.Array:
    """One-hot samples, by inversion of `uniform` (…, C); gradient of the probabilities.

    One uniform number a categorical, where the usual Gumbel sample takes K.
    """
    probabilities = mixed(logits)
    n_classes = logits.shape[-1]
    below = jnp.triu(jnp.ones((n_classes, n_classes)))  # sums of the first k + 1
    below = below.at[:, -1].set(2)  # so that rounding cannot pass the last class
    cumulative = jnp.matmul(
        jax.lax.stop_gradient(probabilities), below, precision="highest"
    )
    chosen = (uniform[..., None] >= cumulative).sum(-1)
    return _straight_through(chosen, probabilities)


def mode(logits: jax.Array) -> jax.Array:
    """One-hot of the likeliest class; gradient of the log-probabilities."""
    return _straight_through(logits.argmax(-1), log_mixed(logits))


def _straight_through(chosen: jax.Array, soft: jax.Array) -> jax.Array:
    one_hot = jax.nn.one_hot(chosen, soft.shape[-1], dtype=soft.dtype)
    return one_hot + (soft - jax.lax.stop_gradient(soft))


def divergence(logits: jax.Array, others: jax.Array) -> jax.Array:
    """KL(logits || others) summed over categoricals: (…,)."""
    p, q = mixed(logits), mixed(others)
    return (p * (jnp.log(p) - jnp.log(q))).sum((-2, -1))
