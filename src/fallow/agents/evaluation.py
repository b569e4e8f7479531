"""An evaluation that runs concurrently with training, one step per training step."""

import numpy as np

from fallow.agents.programs import Actions, Programs, Shards
from fallow.dynamics import Worlds
from fallow.dynamics.tasks import EPISODE_FRAMES


class Evaluation:
    """One episode of the policy's mode in every world, under dynamics that stay.

    Its worlds run on the host while the device learns, so it delays neither.

    Args:
        programs: those of the fleet.
        state: the learners to evaluate; nothing else may donate their buffers.
        worlds: (R, n_episodes) of them, at an episode's start, with stopped clocks.
        place: separates the random numbers of this evaluation from those of others.
    """

    def __init__(
        self, programs: Programs, state: Shards, worlds: Worlds, place: int
    ) -> None:
        self._programs, self._state, self._worlds = programs, state, worlds
        self._n_steps = EPISODE_FRAMES // worlds.action_repeat
        self._first = place * self._n_steps
        self._n_done = 0
        self._carry = programs.initial_carry(worlds.n_worlds)
        self._returns = np.zeros(worlds.observation.shape[:2])
        self._acted: Actions | None = None

    @property
    def is_done(self) -> bool:
        """Whether all episodes are over."""
        return self._n_done == self._n_steps

    def start(self) -> None:
        """Ask the device for the next actions; does not wait for them."""
        if self.is_done:
            return
        self._acted = self._programs.act(
            self._state,
            self._carry,
            self._worlds.observation,
            np.full(self._returns.shape, self._n_done == 0),
            self._first + self._n_done,
            explore=False,
        )
        self._carry = self._acted.carry

    def move(self) -> None:
        """Take the actions that were requested, if any."""
        if self._acted is None:
            return
        self._returns += self._worlds.step(self._acted.action).reward
        self._acted, self._n_done = None, self._n_done + 1
        if self.is_done:
            self._state, self._carry = [], []  # their memory is free

    def finish(self) -> np.ndarray:
        """(R, n_episodes) returns, after all remaining steps."""
        self.move()
        while not self.is_done:
            self.start()
            self.move()
        return self._returns
