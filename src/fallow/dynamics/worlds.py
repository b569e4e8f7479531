"""Parallel worlds of many agents, each agent with its own condition and clock.

The worlds of one agent share its condition and its clock; every world has its own
seed. Results do not depend on the number of threads or on which worlds share a batch.
"""

import os
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from fallow.core import options
from fallow.core.errors import FallowError
from fallow.core.records import NO_REGIME
from fallow.dynamics import arguments, random_states, simulator
from fallow.dynamics.conditions import Condition
from fallow.dynamics.frames import player, plays_at_once
from fallow.dynamics.shifts import Fields, write
from fallow.dynamics.simulator import STAGE_NONE, STAGE_VELOCITY
from fallow.dynamics.step import PhysicsError, Step
from fallow.dynamics.tasks import ACTION_REPEAT, EPISODE_FRAMES, TASKS, Task

ENDLESS = -(2**62)
"""Frames elapsed in an episode that never reaches the time limit."""


class Worlds:
    """Worlds of one task: W of each of A agents, all at the same step.

    Args:
        task: a task or its name.
        conditions: one for all agents, or one for each.
        seeds: (A, W) seed of every world's episode starts; an int is one world.
        schedule_seeds: (A,) seeds of drifting conditions; each agent's first world's
            seed unless given.
        action_repeat: frames for which one action is held.
        frames_per_step: by how much a step advances an agent's clock; the frames of
            all its worlds unless given. 0 stops the clock, and so holds the dynamics
            where `set_clock` put them: this is how evaluation runs.
        episode_frames: frames of an agent's clock from one reset of its worlds to the
            next, at which drifts sample a level; by `frames_per_step` unless given.
        n_threads: 0 uses every core.

    Raises:
        FallowError: an unknown name, a condition that the body cannot have, or numbers
            that do not fit each other.
    """

    def __init__(
        self,
        task: str | Task,
        conditions: str | Condition | Sequence[str | Condition] = "none",
        seeds: Any = 0,
        schedule_seeds: Sequence[int] | None = None,
        action_repeat: int = ACTION_REPEAT,
        frames_per_step: int | None = None,
        episode_frames: int | None = None,
        n_threads: int = 0,
    ) -> None:
        self._arguments = {k: v for k, v in locals().items() if k != "self"}
        mujoco = simulator.load()
        self.task = task if isinstance(task, Task) else TASKS[task]
        seeds = arguments.checked_seeds(seeds)
        self.n_agents, self.n_worlds = seeds.shape
        self.action_repeat = arguments.checked_repeat(action_repeat)
        if frames_per_step is None:
            frames_per_step = self.n_worlds * action_repeat
        options.check_int("worlds", "frames_per_step", frames_per_step, at_least=0)
        options.check_int("worlds", "n_threads", n_threads, at_least=0)
        self.frames_per_step = frames_per_step
        if episode_frames is None:
            episode_frames = frames_per_step * EPISODE_FRAMES // action_repeat
        self.episode_frames = episode_frames or EPISODE_FRAMES
        self.model = simulator.compile_body(self.task.body)
        self.conditions = arguments.one_each(conditions, self.n_agents)
        if schedule_seeds is None:
            schedule_seeds = seeds[:, 0]
        self.schedule_seeds = arguments.seed_each(schedule_seeds, self.n_agents)
        self._courses = [
            condition.on(self.model, seed, self.episode_frames)
            for condition, seed in zip(
                self.conditions, self.schedule_seeds, strict=True
            )
        ]
        self._batch = mujoco.batch.Batch(
            self.model,
            seeds.size,
            min(n_threads or os.cpu_count() or 1, seeds.size),
            persistent=not plays_at_once(self.task),
        )
        self._view = SimpleNamespace(
            **{name: self._batch.bind(name) for name in self.task.body.fields}
        )
        self._play = player(self._batch, self.task, self._view, self.action_repeat)
        self._fields = _expand(self._batch, [c.fields(0) for c in self._courses])
        self._scratch = (self._batch.get_model(0), mujoco.MjData(self.model))
        self._random = [np.random.RandomState(seed) for seed in seeds.flat]
        self._elapsed_frames = np.zeros(seeds.shape, np.int64)
        self._clock_frames = np.zeros(self.n_agents, np.int64)
        self._segment_ends = np.full(self.n_agents, -np.inf)
        self._regime = np.full(self.n_agents, NO_REGIME, np.int16)
        self._observation = np.zeros((*seeds.shape, len(self.task.body.columns)))
        self._start_state = np.zeros((*seeds.shape, self._batch.nstate))
        self._apply_dynamics()
        self.reset()

    def __getstate__(self) -> dict[str, Any]:
        """Arguments and `save`; the simulator itself cannot be copied."""
        return {"arguments": self._arguments, "saved": self.save()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["arguments"])  # type: ignore[misc]
        self.restore(state["saved"])

    @property
    def n_actuators(self) -> int:
        """Numbers in one action, each in [-1, 1]."""
        return self.model.nu

    @property
    def control_step_s(self) -> float:
        """Seconds of simulated time in one transition."""
        frame_s = self.model.opt.timestep * self.task.body.n_substeps
        return float(frame_s * self.action_repeat)

    @property
    def observation(self) -> np.ndarray:
        """(A, W, n_columns) what the agents see now: after an episode, the next one."""
        return self._observation.copy()

    @property
    def clock_frames(self) -> np.ndarray:
        """(A,) frames of each agent, summed over its worlds."""
        return self._clock_frames.copy()

    @property
    def start_state(self) -> np.ndarray:
        """(A, W, n) the simulator's state at the start of each running episode."""
        return self._start_state.copy()

    @property
    def regime(self) -> np.ndarray:
        """(A,) the regime now in force; `NO_REGIME` where the condition has none."""
        return self._regime.copy()

    def truth(self, agent: int = 0) -> dict[str, int | float]:
        """What evaluations may read and agents may not.

        Args:
            agent: from 0.

        Returns:
            `regime`, the one now in force, and `level` where the condition drifts.
        """
        course = self._courses[self._row(agent, 0) // self.n_worlds]
        return course.truth(course.schedule.segment(int(self._clock_frames[agent])))

    def step(self, actions: np.ndarray) -> Step:
        """Hold an action in every world for one transition.

        When an episode ends, the next one starts, and `observation` is its first.

        Args:
            actions: (A, W, n_actuators), each number in [-1, 1].

        Returns:
            Observations, rewards and which episodes ended; frame and regime before.

        Raises:
            FallowError: actions of another shape, or NaN; no world changes.
            PhysicsError: a simulation diverged; all worlds are as they were before.
        """
        shape = (self.n_agents, self.n_worlds, self.n_actuators)
        commanded = arguments.checked_actions(actions, shape)
        frame, regime = self.clock_frames, self.regime
        before = self._batch.state.copy()
        reward = self._play(commanded)
        self._check_physics(before)
        self._elapsed_frames += self.action_repeat
        truncated = self._elapsed_frames >= EPISODE_FRAMES
        self._observation = self._observe()
        arrived = self.observation
        self._advance_clock()
        if truncated.any():
            self._begin_episodes(np.flatnonzero(truncated))
        return Step(arrived, reward.reshape(truncated.shape), truncated, frame, regime)

    def reset(self, seeds: Any = None) -> np.ndarray:
        """Begin a new episode in every world; the clock stays.

        Args:
            seeds: (A, W) of the starts; unless given, the old ones continue.

        Returns:
            The first observations, (A, W, n_columns).

        Raises:
            FallowError: another number of seeds than of worlds.
        """
        if seeds is not None:
            seeds = arguments.checked_seeds(seeds)
            if seeds.size != self._batch.nsim:
                raise FallowError(
                    f"{seeds.size} seeds for {self._batch.nsim} worlds; give one each"
                )
            self._random = [np.random.RandomState(seed) for seed in seeds.flat]
        self._begin_episodes(np.arange(self._batch.nsim))
        return self.observation

    def set_clock(self, frames: int | Sequence[int] | np.ndarray) -> None:
        """Move the clocks, and with them the dynamics.

        Args:
            frames: of all agents, or (A,) of each.

        Raises:
            FallowError: a clock below 0.
        """
        frames = np.broadcast_to(np.asarray(frames, np.int64), self.n_agents)
        if (frames < 0).any():
            raise FallowError(f"a clock of {frames.min()} frames; it must be 0 or more")
        self._clock_frames = frames.copy()
        self._segment_ends[:] = -np.inf
        self._apply_dynamics()

    def place(self, agent: int, world: int, qpos: np.ndarray) -> None:
        """Begin an episode of one world at rest in a pose of your choice.

        Args:
            agent: from 0.
            world: from 0.
            qpos: MuJoCo's positions of the body.
        """
        row = self._row(agent, world)
        self._batch.reset(ids=[row], stage=STAGE_NONE)
        self._batch.qpos[row] = qpos
        self._settled([row])

    def set_state(
        self, agent: int, world: int, state: np.ndarray, endless: bool = False
    ) -> None:
        """Put one world at the start of an episode saved as `start_state`.

        Args:
            agent: from 0.
            world: from 0.
            state: of the simulator.
            endless: whether the episode has no time limit, so that its last state can
                be looked at.
        """
        row = self._row(agent, world)
        self._batch.state[row] = state
        self._settled([row])
        if endless:
            self._elapsed_frames[agent, world] = ENDLESS

    def snapshot(self, agent: int = 0, world: int = 0) -> tuple[Any, Any]:
        """A copy of one world, to render or to inspect.

        Args:
            agent: from 0.
            world: from 0.

        Returns:
            Its `MjModel` and `MjData`.
        """
        row = self._row(agent, world)
        model, data = self._batch.get_model(row), self._batch.get_data(row)
        simulator.load().mj_step1(model, data)  # positions, velocities, sensors
        return model, data

    def save(self) -> dict[str, np.ndarray]:
        """Arrays with leading (A, W) from which `restore` continues to the bit.

        They leave out the task, conditions and seeds, which the constructor takes.
        """
        shape = self._elapsed_frames.shape
        return {
            "state": self._batch.state.reshape(*shape, -1).copy(),
            "start_state": self.start_state,
            "observation": self.observation,
            "elapsed_frames": self._elapsed_frames.copy(),
            "clock_frames": self.clock_frames,
            **random_states.packed(self._random, shape),
        }

    def restore(self, saved: Mapping[str, np.ndarray]) -> None:
        """Continue from a saved state, bit for bit.

        Args:
            saved: what `save` returned.

        Raises:
            FallowError: it is of another task or another number of worlds.
        """
        arguments.check_saved(saved, self.save())
        random_states.restore(self._random, saved)
        self._elapsed_frames = saved["elapsed_frames"].astype(np.int64)
        self._start_state = saved["start_state"].copy()
        self.set_clock(saved["clock_frames"])
        self._batch.state[:] = saved["state"].reshape(self._batch.nsim, -1)
        self._batch.forward(stage=STAGE_VELOCITY)
        self._observation = saved["observation"].copy()

    def _row(self, agent: int, world: int) -> int:
        if not (0 <= agent < self.n_agents and 0 <= world < self.n_worlds):
            raise FallowError(
                f"there is no world {world} of agent {agent}; there are "
                f"{self.n_agents} agents of {self.n_worlds} worlds, from 0"
            )
        return agent * self.n_worlds + world

    def _begin_episodes(self, rows: np.ndarray) -> None:
        self._batch.reset(ids=rows, stage=STAGE_NONE)
        for row in rows:
            qpos, qvel = self.task.body.sample_start(self.model, self._random[row])
            self._batch.qpos[row], self._batch.qvel[row] = qpos, qvel
            if self.task.body.settle_substeps:
                self._settle_first(row)
        if self.task.body.settle_substeps:
            self._batch.step(
                ids=rows,
                nstep=self.task.body.settle_substeps - 1,
                stage=STAGE_VELOCITY,
            )
            self._batch.time[rows] = 0
        self._settled(rows)

    def _settle_first(self, row: int) -> None:
        """The suite's first settling step, which still uses the pose of the model.

        It resets, computes forces at the default pose, then moves the joints and
        integrates those forces once. `mujoco.batch` would recompute them.
        """
        mujoco = simulator.load()
        model, data = self._scratch
        self._batch.get_model(row, model)
        mujoco.mj_resetData(model, data)
        mujoco.mj_forward(model, data)
        data.qpos[:] = self._batch.qpos[row]
        mujoco.mj_step2(model, data)
        spec = mujoco.mjtState.mjSTATE_INTEGRATION
        mujoco.mj_getState(model, data, self._batch.state[row], spec)

    def _settled(self, rows: Any) -> None:
        """Record observation and state of worlds `rows` at an episode's start."""
        self._batch.forward(ids=rows)
        n_agents, n_worlds = self.n_agents, self.n_worlds
        self._elapsed_frames.reshape(-1)[rows] = 0
        self._start_state.reshape(n_agents * n_worlds, -1)[rows] = self._batch.state[
            rows
        ]
        observation = self._observe().reshape(n_agents * n_worlds, -1)
        self._observation.reshape(n_agents * n_worlds, -1)[rows] = observation[rows]

    def _observe(self) -> np.ndarray:
        observation = self.task.body.observe(self._view)
        return observation.reshape(self.n_agents, self.n_worlds, -1)

    def _advance_clock(self) -> None:
        self._clock_frames += self.frames_per_step
        self._frames_to_change -= self.frames_per_step
        if self._frames_to_change <= 0:
            self._apply_dynamics()

    def _apply_dynamics(self) -> None:
        """Write the model fields of every agent that has entered a new segment."""
        for agent in np.flatnonzero(self._clock_frames >= self._segment_ends):
            course, frame = self._courses[agent], int(self._clock_frames[agent])
            segment = course.schedule.segment(frame)
            self._segment_ends[agent] = course.schedule.segment_end(frame)
            regime = course.schedule.regime(segment)
            self._regime[agent] = NO_REGIME if regime is None else regime
            fields = course.fields(segment)
            if fields:
                rows = np.arange(agent * self.n_worlds, (agent + 1) * self.n_worlds)
                write(fields, self._fields, rows)
                # forces already computed for the next step saw the old numbers
                self._batch.forward(ids=rows, stage=STAGE_VELOCITY)
        self._frames_to_change = (self._segment_ends - self._clock_frames).min()

    def _check_physics(self, before: np.ndarray) -> None:
        if not self._batch.warning.any():
            return
        row = int(np.argwhere(self._batch.warning.any(axis=-1))[0, 0])
        self._batch.warning[:] = 0
        self._batch.state[:] = before
        self._batch.forward(stage=STAGE_VELOCITY)
        raise PhysicsError(
            f"the simulation of agent {row // self.n_worlds}, world "
            f"{row % self.n_worlds} diverged; all worlds are as before this step"
        )


def _expand(batch: Any, fields_by_agent: list[Fields]) -> Fields:
    """Give each world its own values of every field that some agent's shift writes."""
    names = {name for fields in fields_by_agent for name in fields}
    return {name: batch.expand(name) for name in sorted(names)}
