"""Weights of the PyTorch reference, by its own names.

The reference is nicklashansen's `tdmpc2`; its linear weights are (out, in), those of
the values have a leading axis.
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax

from fallow.agents.shared.source import Source, with_fields
from fallow.agents.tdmpc import train
from fallow.agents.tdmpc.config import Config
from fallow.agents.tdmpc.layers import MLP, Block
from fallow.agents.tdmpc.train import Learner

Names = Mapping[str, Any]


def from_reference(weights: Names, config: Config | None = None) -> Learner:
    """A learner with the reference's weights and a new optimiser state.

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


class _Source(Source):
    """Where the reference keeps each layer."""

    def block(self, name: str, like: Block) -> Block:
        linear = self.linear(name, like.linear)
        norm = self.norm(f"{name}.ln", like.norm)
        return with_fields(like, linear=linear, norm=norm)

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
        return with_fields(like, blocks=blocks, out=out)
