"""The learners of a fleet: their state on the device, and the updates that are due.

A branch from which nothing can be sampled yet waits and makes its updates later.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from fallow.agents import clock
from fallow.agents.base import State, TrainSchedule
from fallow.agents.branch_state import BranchState, flattened
from fallow.agents.programs import Metrics, Programs, Shards, joined_metrics
from fallow.core.errors import RunError
from fallow.core.records import Branch
from fallow.replay.device_buffer import DeviceBuffer


class LearningError(RunError):
    """A loss or gradient of a branch is no longer a number."""


class Learners:
    """R learners that are updated together from one buffer.

    Args:
        programs: the compiled functions of the agent.
        buffer: what they learn from.
        schedule: how much they learn.
        branches: what they are called in errors.
        watch: where the time goes.
    """

    def __init__(
        self,
        programs: Programs,
        buffer: DeviceBuffer,
        schedule: TrainSchedule,
        branches: Sequence[Branch],
        watch: clock.Clock,
    ) -> None:
        self._programs, self._buffer, self._clock = programs, buffer, watch
        self._schedule, self._branches = schedule, branches
        self.state: Shards = programs.init()
        self.updates = np.zeros(len(branches), np.int64)
        """(R,) that each branch has made."""
        self._metrics: Shards = [{} for _ in self.state]
        self._has_metrics = np.zeros(len(branches), bool)
        """(R,) whether a branch has learned since this object was built."""

    @property
    def n_updates(self) -> int:
        """Updates made by the branch that has made most."""
        return int(self.updates.max())

    def catch_up(self, n_steps: int, most: int, patience_steps: int) -> None:
        """Make the updates due after `n_steps`, at most so many of a branch.

        A branch from which nothing can be sampled waits for `patience_steps`; after
        that it is an error. Its number of updates does not depend on other branches.
        """
        schedule = self._schedule
        owed = schedule.updates_due(n_steps) - self.updates
        ready = self._buffer.can_sample(schedule.length, schedule.within_episodes)
        patience = patience_steps * schedule.updates_per_step
        late = owed > float(schedule.pretrain_updates + patience)
        self.learn(np.where(ready | late, np.minimum(owed, most), 0))

    def learn(self, n_updates: int | np.ndarray) -> None:
        """Make updates of every branch, (R,) or as many of each; returns at once.

        The device works on.

        Raises:
            FallowError: nothing can be sampled from a branch.
        """
        schedule = self._schedule
        n_each = np.broadcast_to(n_updates, len(self._branches))
        for made in range(n_each.max()):
            active = n_each > made
            with self._clock.on(clock.SAMPLING):
                indices = self._buffer.sample(
                    1, schedule.batch, schedule.length, schedule.within_episodes, active
                )
            with self._clock.on(clock.LEARNING):
                self.state, self._metrics = self._programs.update(
                    self.state,
                    self._metrics,
                    self._buffer.groups,
                    indices,
                    self.updates,
                    active,
                )
            self.updates = self.updates + active
            self._has_metrics |= active

    def sweep(self) -> None:
        """Set the present model's error on every finished chunk."""
        for tickets, indices in self._buffer.sweep():
            errors = self._programs.errors(self.state, self._buffer.groups, indices)
            self._buffer.set_errors(tickets, errors)

    @property
    def metrics(self) -> Metrics:
        """Losses and the like of the last update, (R,) each; waits for it.

        NaN for a branch that has made none.
        """
        return joined_metrics(self._metrics)

    def check_finite(self, frame: int) -> None:
        """Raise if a loss or gradient of a branch is NaN or infinite.

        Raises:
            LearningError: it names the branch, its updates and the frame.
        """
        for name, values in self.metrics.items():
            good = np.isfinite(values) | ~self._has_metrics
            if not good.all():
                index = int(np.argmin(good))
                raise LearningError(
                    f"{name} of branch {index} ({self._branches[index]}) is "
                    f"{values[index]} after {self.updates[index]:,} updates, at "
                    f"frame {frame:,}"
                )

    # ---------------------------------------------------------------- state

    def state_dict(self, index: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays `state/…` of one learner, and its number of updates."""
        state = self._tree(index)
        return flattened("state", state), {"n_updates": int(self.updates[index])}

    def load_state_dict(self, saved: Sequence[BranchState]) -> None:
        """Continue each learner from a saved one."""
        like = self._tree(0)
        self.state = self._programs.sharded(
            [jax.tree.leaves(one.tree("state", like)) for one in saved]
        )
        self.updates = np.array([one.header["n_updates"] for one in saved], np.int64)

    def _tree(self, index: int) -> State:
        return self._programs.tree(self._programs.branch(self.state, index))
