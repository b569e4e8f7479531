"""Weights of the PyTorch reference, by its own names.

The reference is NM512's `dreamerv3-torch`; its linear weights are (out, in).
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from fallow.agents.dreamer import train
from fallow.agents.dreamer.config import Config
from fallow.agents.dreamer.layers import MLP, Block, Linear
from fallow.agents.dreamer.networks import Actor
from fallow.agents.dreamer.rssm import RSSM
from fallow.agents.dreamer.train import Learner
from fallow.agents.shared.source import Source, with_fields
from fallow.core.errors import FallowError

Names = Mapping[str, Any]


def from_reference(weights: Names, config: Config | None = None) -> Learner:
    """A learner with the reference's weights and a new optimiser state.

    Args:
        weights: every name of a checkpoint of the reference, with its array.
        config: the sizes; the paper's unless given.

    Raises:
        FallowError: a name is missing, or an array has another shape than the sizes
            ask for.
    """
    config = config or Config()
    source = _Source(weights)
    n_columns = source.shape("_wm.encoder._mlp.layers.Encoder_linear0.weight")[1]
    n_actuators = source.shape("_task_behavior.actor.mean_layer.weight")[0]
    empty = jax.eval_shape(
        lambda: train.init(config, jax.random.key(0), n_columns, n_actuators)
    )
    heads = "_wm.heads"
    model = empty.model
    model = eqx.tree_at(
        lambda m: (m.encoder, m.rssm, m.decoder, m.reward, m.continues),
        model,
        (
            source.mlp("_wm.encoder._mlp", "Encoder", model.encoder),
            source.rssm(model.rssm),
            source.mlp(f"{heads}.decoder._mlp", "Decoder", model.decoder),
            source.mlp(f"{heads}.reward", "Reward", model.reward),
            source.mlp(f"{heads}.cont", "Cont", model.continues),
        ),
    )
    behaviour = "_task_behavior"
    value = source.mlp(f"{behaviour}.value", "Value", empty.critic)
    slow = source.mlp(f"{behaviour}._slow_value", "Value", empty.critic)
    actor = source.actor(f"{behaviour}.actor", empty.actor)
    learner = train.learner(config, model, actor, value, slow)
    return learner._replace(return_range=source.array(f"{behaviour}.ema_vals", (2,)))


class _Source(Source):
    """Where the reference keeps each layer."""

    def block(self, linear: str, norm: str, like: Block) -> Block:
        return with_fields(
            like,
            weight=self.matrix(linear, like.weight),
            norm=self.norm(norm, like.norm),
        )

    def mlp(self, prefix: str, name: str, like: MLP) -> MLP:
        layers = f"{prefix}.layers.{name}"
        blocks = tuple(
            self.block(f"{layers}_linear{i}", f"{layers}_norm{i}", block)
            for i, block in enumerate(like.blocks)
        )
        out = like.out and self.outputs(f"{prefix}.mean_layer", like.out)
        return with_fields(like, blocks=blocks, out=out)

    def outputs(self, prefix: str, like: Linear) -> Linear:
        """One output layer, or the layers of several keys side by side."""
        names = [n[: -len(".bias")] for n in self.weights if n.startswith(prefix)]
        names = [n for n in names if f"{n}.bias" in self.weights]
        n_in, n_out = like.weight.shape
        parts = []
        for name in names:
            n = self.shape(f"{name}.bias")[0]
            parts.append(self.linear(name, _sized(like, n_in, n)))
        if sum(len(part.bias) for part in parts) != n_out:
            raise FallowError(
                f"the layers '{prefix}' have {sum(len(p.bias) for p in parts)} outputs "
                f"together and must have {n_out}"
            )
        return _joined(parts)

    def rssm(self, like: RSSM) -> RSSM:
        prefix = "_wm.dynamics"

        def block(name: str, shaped: Block) -> Block:
            return self.block(f"{prefix}.{name}.0", f"{prefix}.{name}.1", shaped)

        cell = f"{prefix}._cell.layers"
        return with_fields(
            like,
            initial=self.array(f"{prefix}.W", (1, *like.initial.shape))[0],
            inward=block("_img_in_layers", like.inward),
            gru_weight=self.matrix(f"{cell}.GRU_linear", like.gru_weight),
            gru_norm=self.norm(f"{cell}.GRU_norm", like.gru_norm),
            prior=block("_img_out_layers", like.prior),
            prior_out=self.linear(f"{prefix}._imgs_stat_layer", like.prior_out),
            posterior=block("_obs_out_layers", like.posterior),
            posterior_out=self.linear(f"{prefix}._obs_stat_layer", like.posterior_out),
        )

    def actor(self, prefix: str, like: Actor) -> Actor:
        n_in, n_out = like.out.weight.shape
        half = _sized(like.out, n_in, n_out // 2)
        layers = [self.linear(f"{prefix}.{n}_layer", half) for n in ("mean", "std")]
        return with_fields(
            like, trunk=self.mlp(prefix, "Actor", like.trunk), out=_joined(layers)
        )


def _sized(like: Linear, n_in: int, n_out: int) -> Linear:
    shapes = {"weight": (n_in, n_out), "bias": (n_out,)}
    return with_fields(
        like,
        **{k: jax.ShapeDtypeStruct(s, jnp.float32) for k, s in shapes.items()},
    )


def _joined(layers: list[Linear]) -> Linear:
    """Output layers side by side."""
    return jax.tree.map(lambda *parts: jnp.concatenate(parts, -1), *layers)
