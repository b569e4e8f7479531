"""The five networks: encoder, dynamics, reward, values, policy."""

import math
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from fallow.agents.tdmpc.bins import BINS
from fallow.agents.tdmpc.config import Config
from fallow.agents.tdmpc.layers import MLP, Block, Linear, simnorm

MIN_LOG_STD, MAX_LOG_STD = -10.0, 2.0
"""Range of the logarithm of the policy's standard deviation."""
SQUASH_EPSILON = 1e-6

latent_layer = partial(Block, activation=simnorm)
scalar_layer = partial(Linear, std=0.0)
"""Last layer of reward and values; it begins at zero."""


class Ensemble(eqx.Module):
    """Q value functions of one shape, all weights with a leading axis of Q."""

    networks: MLP

    def __init__(self, key: jax.Array, n: int, sizes: list[int]) -> None:
        keys = jax.random.split(key, n)
        self.networks = jax.vmap(lambda k: MLP(k, sizes, scalar_layer))(keys)

    def __call__(
        self, latent: jax.Array, action: jax.Array, kept: jax.Array | None = None
    ) -> jax.Array:
        """Two-hot logits (Q, …, 101) at latents (…, Z).

        `kept` (Q, …, width) is what dropout leaves; None leaves all.
        """
        both = joined(latent, action)
        if kept is None:
            return jax.vmap(lambda network: network(both))(self.networks)
        return jax.vmap(lambda network, mask: network(both, mask))(self.networks, kept)

    def picked(self, which: jax.Array) -> "Ensemble":
        """Only those numbered `which`, so that no others are computed.

        Where there are no others nothing is copied; their order does not matter.
        """
        if len(self.networks.blocks[0].linear.bias) == len(which):
            return self
        return jax.tree.map(lambda leaf: leaf[which], self)


class WorldModel(eqx.Module):
    """The parameters of the model's loss: encoder, dynamics, reward and values."""

    encoder: MLP
    dynamics: MLP
    reward: MLP
    values: Ensemble

    def __init__(
        self, key: jax.Array, config: Config, n_columns: int, n_actuators: int
    ) -> None:
        keys = jax.random.split(key, 4)
        n, hidden = config.n_latent, [config.width] * 2
        inputs = n + n_actuators
        self.encoder = MLP(keys[0], [n_columns, config.encoder_width, n], latent_layer)
        self.dynamics = MLP(keys[1], [inputs, *hidden, n], latent_layer)
        scalar = [inputs, *hidden, BINS.n]
        self.reward = MLP(keys[2], scalar, scalar_layer)
        self.values = Ensemble(keys[3], config.n_values, scalar)

    def next(self, latent: jax.Array, action: jax.Array) -> jax.Array:
        """The latent (…, Z) after an action."""
        return self.dynamics(joined(latent, action))

    def reward_logits(self, latent: jax.Array, action: jax.Array) -> jax.Array:
        """Two-hot logits (…, 101) of the reward for an action."""
        return self.reward(joined(latent, action))


class Policy(NamedTuple):
    """A normal distribution for each actuator, squashed by tanh."""

    mean: jax.Array  # before tanh
    log_std: jax.Array

    @classmethod
    def of(cls, out: jax.Array) -> "Policy":
        """From a network's outputs, means and then raw spreads.

        log std = -10 + 6 (tanh(raw) + 1).
        """
        mean, raw = jnp.split(out, 2, -1)
        half = 0.5 * (MAX_LOG_STD - MIN_LOG_STD)
        return cls(mean, MIN_LOG_STD + half * (jnp.tanh(raw) + 1))

    def sample(self, normal: jax.Array) -> jax.Array:
        """tanh(mean + std normal)."""
        return jnp.tanh(self.mean + jnp.exp(self.log_std) * normal)

    def log_density(self, normal: jax.Array) -> jax.Array:
        """Of a sample before it is squashed, summed over actuators."""
        each = -0.5 * jnp.square(normal) - self.log_std - 0.5 * math.log(2 * math.pi)
        return each.sum(-1)

    def entropy(self, normal: jax.Array) -> jax.Array:
        """Minus the log-density of the squashed sample."""
        slope = 1 - jnp.square(self.sample(normal))
        squashed = jnp.log(jax.nn.relu(slope) + SQUASH_EPSILON).sum(-1)
        return squashed - self.log_density(normal)

    def scaled_entropy(self, normal: jax.Array) -> jax.Array:
        """Entropy in the policy's loss: minus A times the density before squashing.

        The reference divides the squashed density out again.
        """
        return -self.mean.shape[-1] * self.log_density(normal)


class Actor(eqx.Module):
    """From a latent to a policy."""

    network: MLP

    def __init__(self, key: jax.Array, config: Config, n_actuators: int) -> None:
        sizes = [config.n_latent, config.width, config.width, 2 * n_actuators]
        self.network = MLP(key, sizes, Linear)

    def __call__(self, latent: jax.Array) -> Policy:
        return Policy.of(self.network(latent))


def joined(latent: jax.Array, action: jax.Array) -> jax.Array:
    """(…, Z + A)."""
    return jnp.concatenate([latent, action], -1)
