"""DreamerV3 as an `Agent`."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from fallow.agents.base import Acted, TrainSchedule
from fallow.agents.dreamer import cost, losses, train
from fallow.agents.dreamer.config import Config
from fallow.agents.dreamer.recurrence import State as Latent
from fallow.agents.dreamer.rssm import Sequence
from fallow.agents.dreamer.train import Learner
from fallow.agents.shared.layers import computing_in


class Memory(NamedTuple):
    """The latent state of W worlds and the action taken in it."""

    latent: Latent
    action: jax.Array  # (W, n_actuators)


@dataclass(frozen=True)
class Dreamer:
    """DreamerV3 with the sizes of a config, on one body."""

    preset: str
    config: Config
    n_columns: int
    n_actuators: int
    name = "dreamer"

    @property
    def schedule(self) -> TrainSchedule:
        """How much it acts and learns."""
        config = self.config
        return TrainSchedule(
            config.n_worlds,
            config.batch,
            config.length,
            config.updates_per_step,
            config.prefill_steps,
            config.pretrain_updates,
        )

    def init(self, key: jax.Array) -> Learner:
        """An agent that has not learned yet."""
        return train.init(self.config, key, self.n_columns, self.n_actuators)

    def initial_carry(self, n_worlds: int) -> Memory:
        """The carry at the start of an episode in every world."""
        config = self.config
        latent = Latent(
            jnp.zeros((n_worlds, config.n_deter)),
            jnp.zeros((n_worlds, config.n_stoch), config.compute),
        )
        return Memory(latent, jnp.zeros((n_worlds, self.n_actuators)))

    def act(
        self,
        state: Learner,
        carry: Memory,
        observation: jax.Array,
        is_first: jax.Array,
        key: jax.Array,
        explore: bool,
    ) -> Acted:
        """Actions at `observation` (W, n_columns); without `explore`, the mode.

        The latent is sampled in both cases, as in the reference.
        """
        latent_key, action_key = jax.random.split(key)
        model = computing_in(state.model, self.config.compute)
        actor = computing_in(state.actor, self.config.compute)
        n_worlds = len(observation)
        uniform = jax.random.uniform(
            latent_key, (1, n_worlds, self.config.n_categoricals)
        )
        sequence = Sequence(
            model.embed(observation)[None], carry.action[None], is_first[None], uniform
        )
        states, _ = model.rssm.observe(carry.latent, sequence)
        latent = jax.tree.map(lambda x: x[0], states)
        policy = actor(latent.feature)
        normal = jax.random.normal(action_key, policy.mean.shape)
        action = policy.sample(normal) if explore else policy.mean
        return Acted(action, policy.mean, policy.std, Memory(latent, action))

    def update(
        self, state: Learner, batch: losses.Batch, key: jax.Array
    ) -> tuple[Learner, losses.Metrics]:
        """One update of world model, actor and critic."""
        return train.update(self.config, state, batch, key)

    def errors(self, state: Learner, batch: losses.Batch) -> jax.Array:
        """(batch,) mean error of decoder, reward and prior over each sequence.

        Latents are modes, so repeated calls agree.
        """
        model = computing_in(state.model, self.config.compute)
        batch = {name: jnp.swapaxes(values, 0, 1) for name, values in batch.items()}
        errors, _ = losses.model_errors(model, batch, None)
        return (errors.decoder + errors.reward + errors.dynamics).mean(0)

    def update_flops(self) -> float:
        """Floating-point operations of an update's matrix products."""
        return cost.update_flops(self.config, self.n_columns, self.n_actuators)

    def working_bytes(self) -> int:
        """Device memory an update needs in addition to state and replay, estimated."""
        return cost.working_bytes(self.config)
