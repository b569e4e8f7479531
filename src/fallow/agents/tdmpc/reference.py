"""Weights of the PyTorch reference, by its own names.

The reference is nicklashansen's `tdmpc2`; its linear weights are (out, in), those of
the values have a leading axis.
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fallow.agents.tdmpc import train
from fallow.agents.tdmpc.config import Config
from fallow.agents.tdmpc.layers import MLP, Block, Linear
from fallow.agents.tdmpc.train import Learner
from fallow.errors import FallowError

Names = Mapping[str, Any]


def from_reference(weights: Names, config: Config | None = None) -> Learner:
    """A learner with the reference's weights, and moments of an optimiser at rest.

    Args:
        weights: the names of a checkpoint of the reference, with their arrays; others
            than those of the networks are ignored.
        config: the sizes; the paper's unless given.

    Raises:
        FallowError: a name is missing, or an array has another shape than the sizes
            ask for.
    """
    config = config or Config()
    source = _Source(weights)
    n_columns = source.shape("_encoder.state.0.weight")[1]
    n_actuators = source.shape("_pi.2.bias")[0] // 2
    empty = jax.eval_shape(
        lambda: train.init(config, jax.random.key(0), n_columns, n_actuators)
    )
    model = eqx.tree_at(
        lambda m: (m.encoder, m.dynamics, m.reward, m.values.networks),
        empty.model,
        (
            source.mlp("_encoder.state", empty.model.encoder),
            source.mlp("_dynamics", empty.model.dynamics),
            source.mlp("_reward", empty.model.reward),
            source.mlp("_Qs.params", empty.model.values.networks),
        ),
    )
    actor = source.mlp("_pi", empty.actor.network)
    targets = source.mlp("_target_Qs_params", empty.targets.networks)
    return train.learner(
        config,
        model,
        eqx.tree_at(lambda a: a.network, empty.actor, actor),
        eqx.tree_at(lambda e: e.networks, empty.targets, targets),
    )


class _Source:
    """The mapping, read into our modules; every array is checked for its shape."""

    def __init__(self, weights: Names) -> None:
        self._weights = weights

    def shape(self, name: str) -> tuple[int, ...]:
        if name not in self._weights:
            raise FallowError(
                f"the weights have no '{name}'; give all names of a checkpoint of the "
                "reference, e.g. those of its model's state_dict"
            )
        return tuple(self._weights[name].shape)

    def array(self, name: str, shape: tuple[int, ...]) -> jax.Array:
        if self.shape(name) != shape:
            raise FallowError(
                f"'{name}' has shape {self.shape(name)} and the sizes ask for {shape}; "
                "give the config of the checkpoint"
            )
        return jnp.asarray(np.asarray(self._weights[name]), jnp.float32)

    def linear(self, name: str, like: Linear) -> Linear:
        *leading, n_in, n_out = like.weight.shape
        weight = self.array(f"{name}.weight", (*leading, n_out, n_in))
        bias = self.array(f"{name}.bias", like.bias.shape)
        return eqx.tree_at(
            lambda x: (x.weight, x.bias), like, (jnp.swapaxes(weight, -1, -2), bias)
        )

    def block(self, name: str, like: Block) -> Block:
        scale = self.array(f"{name}.ln.weight", like.norm.scale.shape)
        shift = self.array(f"{name}.ln.bias", like.norm.shift.shape)
        return eqx.tree_at(
            lambda x: (x.linear, x.norm.scale, x.norm.shift),
            like,
            (self.linear(name, like.linear), scale, shift),
        )

    def mlp(self, name: str, like: MLP) -> MLP:
        blocks = tuple(
            self.block(f"{name}.{layer}", block)
            for layer, block in enumerate(like.blocks)
        )
        last = f"{name}.{len(blocks)}"
        out = (
            self.block(last, like.out)
            if isinstance(like.out, Block)
            else self.linear(last, like.out)
        )
        return eqx.tree_at(lambda x: (x.blocks, x.out), like, (blocks, out))
