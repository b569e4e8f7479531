"""The interface of an agent: pure functions of one branch, which a fleet maps."""

from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import jax

State = Any
"""All that learning changes: a pytree of arrays."""
Carry = Any
"""State that an agent carries from step to step of its worlds: a pytree of arrays."""


class Acted(NamedTuple):
    """The next actions of an agent in W worlds."""

    action: jax.Array  # (W, n_actuators), in [-1, 1]
    mean: jax.Array  # (W, n_actuators), of the policy
    std: jax.Array  # (W, n_actuators)
    carry: Carry


class TrainSchedule(NamedTuple):
    """How much an agent acts and learns."""

    n_worlds: int
    batch: int
    length: int
    updates_per_step: Fraction
    """Updates for each step of all worlds."""
    prefill_steps: int
    """Steps of uniformly random actions before learning."""
    pretrain_updates: int
    """Updates when learning begins."""
    within_episodes: bool = False
    """Sequences never leave an episode, and only finished episodes are sampled."""

    def updates_due(self, n_steps: int) -> int:
        """Updates that must have been made after so many steps of all worlds."""
        acted = n_steps - self.prefill_steps
        if acted < 0:
            return 0
        return self.pretrain_updates + int(acted * self.updates_per_step)


class Agent(Protocol):
    """The agent of one branch, independent of other branches."""

    @property
    def name(self) -> str:
        """As in the registry."""

    @property
    def preset(self) -> str:
        """Name of its sizes."""

    @property
    def config(self) -> Any:
        """Its sizes, a dataclass."""

    @property
    def n_columns(self) -> int:
        """Numbers in an observation."""

    @property
    def n_actuators(self) -> int:
        """Numbers in an action."""

    @property
    def schedule(self) -> TrainSchedule:
        """How much it acts and learns."""

    def init(self, key: jax.Array) -> State:
        """An agent that has not learned yet."""

    def initial_carry(self, n_worlds: int) -> Carry:
        """The carry at the start of an episode in every world."""

    def act(
        self,
        state: State,
        carry: Carry,
        observation: jax.Array,
        is_first: jax.Array,
        key: jax.Array,
        explore: bool,
    ) -> Acted:
        """Actions at `observation` (W, n_columns); without `explore`, the mode."""

    def update(
        self, state: State, batch: dict[str, jax.Array], key: jax.Array
    ) -> tuple[State, dict[str, jax.Array]]:
        """Learn from sequences (batch, length, …); returns metrics."""

    def errors(self, state: State, batch: dict[str, jax.Array]) -> jax.Array:
        """(batch,) how badly the model predicts each sequence, 0 or more."""

    def update_flops(self) -> float:
        """Floating-point operations of an update's matrix products."""

    def working_bytes(self) -> int:
        """Device memory an update needs in addition to state and replay, estimated."""
