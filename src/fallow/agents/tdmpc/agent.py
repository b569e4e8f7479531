"""TD-MPC2 as an `Agent`."""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp

from fallow.agents.base import Acted, TrainSchedule
from fallow.agents.shared.layers import computing_in
from fallow.agents.tdmpc import cost, losses, plan, train
from fallow.agents.tdmpc.batches import transitions
from fallow.agents.tdmpc.bins import BINS
from fallow.agents.tdmpc.config import Config
from fallow.agents.tdmpc.train import Learner

N_WORLDS = 1


@dataclass(frozen=True)
class TdMpc:
    """TD-MPC2 with the sizes of a config, on one body.

    Its carry is the mean (W, H, A) of each world's last plan.
    """

    preset: str
    config: Config
    n_columns: int
    n_actuators: int
    name = "tdmpc"

    @property
    def schedule(self) -> TrainSchedule:
        """How much it acts and learns: an update a transition."""
        config = self.config
        return TrainSchedule(
            N_WORLDS,
            config.batch,
            config.horizon + 1,
            Fraction(1),
            config.prefill_transitions,
            config.pretrain_updates,
            within_episodes=True,
        )

    def init(self, key: jax.Array) -> Learner:
        """An agent that has not learned yet."""
        return train.init(self.config, key, self.n_columns, self.n_actuators)

    def initial_carry(self, n_worlds: int) -> jax.Array:
        """The carry at the start of an episode in every world: plans of no action."""
        return jnp.zeros((n_worlds, self.config.horizon, self.n_actuators))

    def act(
        self,
        state: Learner,
        carry: jax.Array,
        observation: jax.Array,
        is_first: jax.Array,
        key: jax.Array,
        explore: bool,
    ) -> Acted:
        """Actions at `observation` (W, n_columns).

        Without `explore` no noise is added; the elite is sampled in both cases, as in
        the reference. Mean and standard deviation are those of the plan's first step.
        """
        model = computing_in(state.model, self.config.compute)
        actor = computing_in(state.actor, self.config.compute)
        previous = jnp.where(is_first[:, None, None], 0, carry)
        noise = plan.sample_noise(self.config, key, len(observation), self.n_actuators)
        planned = jax.vmap(
            partial(plan.plan, model, actor, explore=explore),
            in_axes=(0, 0, plan.WORLDS),
        )(observation, previous, noise)
        return Acted(
            planned.action, planned.mean[:, 0], planned.std[:, 0], planned.mean
        )

    def update(
        self, state: Learner, batch: dict[str, jax.Array], key: jax.Array
    ) -> tuple[Learner, train.Metrics]:
        """One update of model, policy and target values."""
        return train.update(self.config, state, transitions(batch), key)

    def errors(self, state: Learner, batch: dict[str, jax.Array]) -> jax.Array:
        """(batch,) mean error of a step's latent and reward over each sequence.

        Sequences may be of any length and go over seams, which do not count. Nothing
        is sampled, so repeated calls agree.
        """
        model = computing_in(state.model, self.config.compute)
        steps = transitions(batch)
        latent = model.encoder(steps.observation)
        after = model.next(latent[:-1], steps.action)
        consistency = jnp.square(after - latent[1:]).mean(-1)
        logits = model.reward_logits(latent[:-1], steps.action)
        reward = jax.nn.relu(BINS.cross_entropy(logits, steps.reward))
        error = losses.CONSISTENCY_SCALE * consistency + losses.REWARD_SCALE * reward
        n_real = jnp.maximum(steps.is_real.sum(0), 1)
        return jnp.where(steps.is_real, error, 0).sum(0) / n_real

    def update_flops(self) -> float:
        """Floating-point operations of an update's matrix products."""
        return cost.update_flops(self.config, self.n_columns, self.n_actuators)

    def working_bytes(self) -> int:
        """Device memory an update needs in addition to state and replay, estimated."""
        return cost.working_bytes(self.config, self.n_actuators)
