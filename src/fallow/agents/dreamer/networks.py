"""The three networks: world model, actor, critic."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from fallow.agents.dreamer.bins import BINS
from fallow.agents.dreamer.config import Config
from fallow.agents.dreamer.layers import MLP, Linear
from fallow.agents.dreamer.rssm import RSSM
from fallow.agents.shared.bins import symlog

MIN_STD, MAX_STD = 0.1, 1.0
"""Range of the policy's standard deviation."""


class WorldModel(eqx.Module):
    """Encoder, latent dynamics, and heads for observation, reward, continuation."""

    encoder: MLP
    rssm: RSSM
    decoder: MLP
    reward: MLP
    continues: MLP
    """Logit of the episode continuing."""

    def __init__(
        self, key: jax.Array, config: Config, n_columns: int, n_actuators: int
    ) -> None:
        keys = jax.random.split(key, 5)
        coder = [config.coder_width] * config.coder_layers
        self.encoder = MLP(keys[0], [n_columns, *coder])
        self.rssm = RSSM(
            keys[1],
            config.n_deter,
            config.n_hidden,
            (config.n_categoricals, config.n_classes),
            config.coder_width,
            n_actuators,
        )
        self.decoder = MLP(keys[2], [config.n_feature, *coder], n_columns)
        head = _head_sizes(config)
        self.reward = MLP(keys[3], head, BINS.n, scale=0)
        self.continues = MLP(keys[4], head, 1)

    def embed(self, observation: jax.Array) -> jax.Array:
        """(…, n_columns) to (…, E)."""
        return self.encoder(symlog(observation))


class Policy(NamedTuple):
    """A normal distribution for each actuator, not yet clipped to [-1, 1]."""

    mean: jax.Array
    std: jax.Array

    @classmethod
    def of(cls, out: jax.Array) -> "Policy":
        """From the outputs of an actor, means and then spreads."""
        mean, spread = jnp.split(out, 2, -1)
        std = (MAX_STD - MIN_STD) * jax.nn.sigmoid(spread + 2) + MIN_STD
        return cls(jnp.tanh(mean), std)

    def sample(self, normal: jax.Array) -> jax.Array:
        """A sample, scaled back into [-1, 1] where it is outside.

        The scale counts as a constant, so an action at the limit still has a gradient.
        """
        action = self.mean + self.std * normal
        limit = jnp.maximum(jnp.abs(jax.lax.stop_gradient(action)), 1)
        return action / limit

    def entropy(self) -> jax.Array:
        """Of the unclipped normals, summed over actuators."""
        each = 0.5 * jnp.log(2 * jnp.pi * jnp.e) + jnp.log(self.std)
        return each.sum(-1)


class Actor(eqx.Module):
    """From a feature to a policy."""

    trunk: MLP
    out: Linear
    """Means, then spreads, of all actuators."""

    def __init__(self, key: jax.Array, config: Config, n_actuators: int) -> None:
        trunk_key, mean_key, std_key = jax.random.split(key, 3)
        self.trunk = MLP(trunk_key, _head_sizes(config))
        # initialised as two layers, used as one
        mean, std = (
            Linear(k, config.head_width, n_actuators) for k in (mean_key, std_key)
        )
        self.out = jax.tree.map(lambda *two: jnp.concatenate(two, -1), mean, std)

    def __call__(self, feature: jax.Array) -> Policy:
        return Policy.of(self.out(self.trunk(feature)))


def critic(key: jax.Array, config: Config) -> MLP:
    """From a feature to two-hot logits of its value."""
    return MLP(key, _head_sizes(config), BINS.n, scale=0)


def _head_sizes(config: Config) -> list[int]:
    return [config.n_feature, *[config.head_width] * config.head_layers]
