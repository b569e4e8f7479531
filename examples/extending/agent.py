"""An agent: it acts at random, and learns the mean reward of what is replayed.

An agent is pure functions of one branch. The fleet maps them over branches, steps the
worlds, stores and samples, evaluates and saves.
"""

from dataclasses import dataclass
from fractions import Fraction

import jax
import jax.numpy as jnp

from fallow.agents import AGENTS, AgentKind
from fallow.agents.base import Acted, TrainSchedule
from fallow.core.registry import Registry

State = dict[str, jax.Array]


@dataclass(frozen=True)
class Config:
    """Sizes of the agent."""

    batch: int = 4
    length: int = 8
    rate: float = 0.1
    """Of the running mean."""


PRESETS: Registry[Config] = Registry("preset")
PRESETS.add("tiny", Config())


@dataclass(frozen=True)
class Noise:
    """The agent of a preset on one body; see `fallow.agents.base.Agent`."""

    preset: str
    config: Config
    n_columns: int
    n_actuators: int
    name = "noise"

    @property
    def schedule(self) -> TrainSchedule:
        """One world, half an update a step after 20 random steps."""
        sizes = (self.config.batch, self.config.length)
        return TrainSchedule(1, *sizes, Fraction(1, 2), 20, pretrain_updates=1)

    def init(self, key: jax.Array) -> State:
        """An agent that has not learned yet."""
        return {"reward": jnp.zeros(())}

    def initial_carry(self, n_worlds: int) -> jax.Array:
        """Nothing is remembered from step to step."""
        return jnp.zeros((n_worlds, 0))

    def act(
        self,
        state: State,
        carry: jax.Array,
        observation: jax.Array,
        is_first: jax.Array,
        key: jax.Array,
        explore: bool,
    ) -> Acted:
        """Random actions (W, n_actuators); without `explore` their mean, 0."""
        mean = jnp.zeros((len(observation), self.n_actuators))
        std = jnp.full_like(mean, 0.5)
        noise = jnp.clip(std * jax.random.normal(key, mean.shape), -1, 1)
        return Acted(noise if explore else mean, mean, std, carry)

    def update(
        self, state: State, batch: dict[str, jax.Array], key: jax.Array
    ) -> tuple[State, dict[str, jax.Array]]:
        """One step of the running mean over sequences (batch, length)."""
        error = batch["reward"].mean() - state["reward"]
        reward = state["reward"] + self.config.rate * error
        return {"reward": reward}, {"loss": jnp.square(error)}

    def errors(self, state: State, batch: dict[str, jax.Array]) -> jax.Array:
        """(batch,) how badly each sequence is predicted."""
        return jnp.square(batch["reward"] - state["reward"]).mean(1)

    def update_flops(self) -> float:
        """For the estimate of `--dry-run`."""
        return float(self.config.batch * self.config.length)

    def working_bytes(self) -> int:
        """Device memory of an update, in addition to state and replay."""
        return 4 * self.config.batch * self.config.length


AGENTS.add("noise", AgentKind("random actions, a mean reward", PRESETS, Noise))
