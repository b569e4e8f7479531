"""Many branches that act and learn together in compiled programs.

Every branch has its own agent, replay, rule, condition and worlds; all branches are
always at the same step. The learner updates on the device while the worlds step on the
host: an action uses the parameters after all updates that were due before it, which
sampled from the rows stored up to one step earlier.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from fallow.agents import AGENTS, clock
from fallow.agents.base import Agent
from fallow.agents.branch_state import BranchState, common_step, flattened
from fallow.agents.evaluation import Evaluation
from fallow.agents.learners import Learners
from fallow.agents.programs import Programs, Shards
from fallow.core import options, seeds
from fallow.core.errors import FallowError
from fallow.core.records import NO_REGIME, Branch
from fallow.dynamics import TASKS, Condition, Step, Worlds
from fallow.dynamics.tasks import EPISODE_FRAMES
from fallow.logs import Recorder
from fallow.replay import Field
from fallow.replay.device_buffer import DeviceBuffer
from fallow.replay.labeler import Tracked, true_mismatches
from fallow.replay.rules import Rule

SWEEP_STEPS = 500
"""Steps between two sweeps of the model's errors, for rules that ask for them."""
WATCH_STEPS = 50
"""Steps between two looks at the metrics."""
CATCH_UP = 4
"""A branch with overdue updates makes up to this many times the usual number a step."""
WAIT_EPISODES = 2
"""A branch from which nothing can be sampled for longer is an error."""


PolicyMoments = tuple[np.ndarray, np.ndarray]
"""Mean and standard deviation of the policy that acted."""
UNIFORM_STD = np.float32(3**-0.5)
"""Of random actions, uniform in [-1, 1]."""


def build_agent(task: str, agent: str = "dreamer", preset: str = "lean") -> Agent:
    """An agent of a preset for the body of a task."""
    kind, body = AGENTS[agent], TASKS[task].body
    n_columns, n_actuators = len(body.columns), len(body.actuator_velocity)
    return kind.build(preset, kind.sizes(preset), n_columns, n_actuators)


class Fleet:
    """R branches of one agent on one task.

    Args:
        task: its name.
        agent: sizes and algorithm, the same for all branches; see `build_agent`.
        branches: seed, condition and rule of each.
        capacity_transitions: of each branch's replay.
        n_threads: of the worlds; 0 uses every core.
    """

    def __init__(
        self,
        task: str,
        agent: Agent,
        branches: Sequence[Branch],
        capacity_transitions: int = 200_000,
        n_threads: int = 0,
    ) -> None:
        if not branches:
            raise FallowError("a fleet of no branches; give at least one")
        options.check_int("fleet", "n_threads", n_threads, at_least=0)
        self.task, self.agent, self.branches = TASKS[task], agent, tuple(branches)
        self._check_body()
        self.schedule = agent.schedule
        self._seeds = [branch.seed for branch in branches]
        self._n_threads = n_threads
        self.clock = clock.Clock()
        # starting a program of thousands of kernels takes the host as long as they run
        self._starter = ThreadPoolExecutor(1)
        self.worlds = self._worlds("training", self.schedule.n_worlds, None)
        self.buffer = DeviceBuffer(
            {
                "observation": Field((agent.n_columns,)),
                "action": Field((agent.n_actuators,)),
                "reward": Field(()),
            },
            [branch.rule for branch in branches],
            self._seeds,
            self.schedule.n_worlds,
            capacity_transitions,
            tracked=self._tracked(),
        )
        self.set_true_mismatches()
        self.programs = Programs(agent, self.buffer.layout, self._seeds)
        self.learners = Learners(
            self.programs, self.buffer, self.schedule, self.branches, self.clock
        )
        self.carry: Shards = self.programs.initial_carry(self.schedule.n_worlds)
        self.n_steps = 0
        self.begins = np.ones(self._shape, bool)
        """(R, W) worlds in which the next action is an episode's first."""
        self._evaluation_worlds: Worlds | None = None
        self._evaluation: Evaluation | None = None
        self.recorders: list[Recorder] = []
        self._store_first()

    def _tracked(self) -> Tracked:
        """The inputs of trackers: driven velocities and commands."""
        columns = ",".join(str(c) for c in self.task.body.actuator_velocity)
        step_s = self.worlds.control_step_s
        return Tracked(f"observation[{columns}]", "action", control_step_s=step_s)

    def set_true_mismatches(self) -> None:
        """Give the mismatch between true regimes to rules that take true labels."""
        for branch, sampler in zip(self.branches, self.buffer.samplers, strict=True):
            if sampler.rule.needs_true_gains:
                gains = Condition.parse(branch.condition).gains(self.agent.n_actuators)
                sampler.ledger.set_beliefs((), true_mismatches(gains))

    # -------------------------------------------------------------- training

    @property
    def frame(self) -> int:
        """Every branch's clock, in frames."""
        return int(self.worlds.clock_frames[0])

    @property
    def frames_per_step(self) -> int:
        """Frames of a branch in one step of all its worlds."""
        return self.worlds.frames_per_step

    def step(self) -> Step:
        """One transition of every world of every branch, and the updates then due."""
        if self.n_steps < self.schedule.prefill_steps:
            actions = self._random_actions()
            policy = (np.zeros_like(actions), np.full_like(actions, UNIFORM_STD))
            self._start_evaluation()
            step = self._move(actions)
        else:
            if self.n_steps == self.schedule.prefill_steps:
                self._catch_up(self.n_steps, self.schedule.pretrain_updates)
            with self.clock.on(clock.ACTING):
                acted = self.programs.act(
                    self.learners.state,
                    self.carry,
                    self.worlds.observation,
                    self.begins,
                    self.n_steps,
                    explore=True,
                )
            self.carry = acted.carry
            self._start_evaluation()
            most = CATCH_UP * math.ceil(self.schedule.updates_per_step)
            learning = self._starter.submit(self._catch_up, self.n_steps + 1, most)
            with self.clock.on(clock.WAITING):
                actions, policy = acted.action, acted.policy
            step = self._move(actions)
            with self.clock.on(clock.WAITING):
                learning.result()  # all updates are started; the device works on
        with self.clock.on(clock.STORING):
            self._store(actions, step, policy)
        self.n_steps += 1
        with self.clock.on(clock.WAITING):
            self._look_after()
        return step

    def _move(self, actions: np.ndarray) -> Step:
        with self.clock.on(clock.PHYSICS):
            step = self.worlds.step(actions)
        if self._evaluation is not None:
            with self.clock.on(clock.EVALUATING):
                self._evaluation.move()
        return step

    def _start_evaluation(self) -> None:
        """Before updates are started, since the device takes one after the other."""
        if self._evaluation is not None:
            with self.clock.on(clock.EVALUATING):
                self._evaluation.start()

    def run(self, until_frame: int) -> None:
        """Train until the clock reaches `until_frame`."""
        while self.frame < until_frame:
            self.step()

    def _catch_up(self, n_steps: int, most: int) -> None:
        patience = WAIT_EPISODES * EPISODE_FRAMES // self.worlds.action_repeat
        self.learners.catch_up(n_steps, most, patience)

    def _random_actions(self) -> np.ndarray:
        shape = (self.schedule.n_worlds, self.agent.n_actuators)
        return np.stack(
            [
                seeds.generator(seed, "prefill", self.n_steps).uniform(-1, 1, shape)
                for seed in self._seeds
            ]
        ).astype(np.float32)

    # ---------------------------------------------------------------- storing

    def _store_first(self) -> None:
        """The rows that begin all episodes, with neither action nor reward."""
        self.buffer.add(
            is_first=np.ones(self._shape, bool),
            regimes=self.worlds.regime.tolist(),
            observation=self.worlds.observation.astype(np.float32),
            action=np.zeros((*self._shape, self.agent.n_actuators), np.float32),
            reward=np.zeros(self._shape, np.float32),
        )
        self.begins[:] = True

    def _store(self, actions: np.ndarray, step: Step, policy: PolicyMoments) -> None:
        # the first act after random actions starts from the initial carry
        self.begins[:] = self.n_steps + 1 == self.schedule.prefill_steps
        self.buffer.add(
            is_first=np.zeros(self._shape, bool),
            regimes=step.regime.tolist(),
            observation=step.observation.astype(np.float32),
            action=actions,
            reward=step.reward.astype(np.float32),
        )
        for recorder in self.recorders:
            recorder.add(actions, step, *policy)
        for branch in np.flatnonzero(self.worlds.regime != step.regime):
            self.buffer.note_change(int(branch))
        if step.truncated.any():  # all worlds began together and last equally long
            self._store_first()

    def _look_after(self) -> None:
        """Sweep for rules that need it, and check the metrics."""
        needs = any(sampler.rule.needs_errors for sampler in self.buffer.samplers)
        if needs and self.learners.n_updates and self.n_steps % SWEEP_STEPS == 0:
            self.learners.sweep()
        if self.n_steps % WATCH_STEPS == 0:
            self.learners.check_finite(self.frame)

    def record(
        self,
        folder: str | Path,
        kept: Sequence[int] | None = None,
        running: Sequence[Mapping[str, np.ndarray]] | None = None,
    ) -> None:
        """From now on write a history of each branch, `000.fallow` and so on.

        To append to those of an earlier run: how many episodes of each to keep, and
        those that were running, as `Recorder.save` gave them.
        """
        for index in range(len(self.branches)):
            recorder = Recorder(
                self.worlds,
                Path(folder) / f"{index:03d}.fallow",
                agent=index,
                keep_episodes=None if kept is None else kept[index],
            )
            if running is not None:
                recorder.restore(running[index])
            self.recorders.append(recorder)

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds spent so far by kind of work; see `agents.clock`."""
        return self.clock.seconds | {clock.TRACKING: self.buffer.waited_s}

    # ---------------------------------------------------------------- state

    def state_dict(self, index: int) -> BranchState:
        """All of a branch but its replay, whose bytes `buffer.save` writes."""
        arrays, counts = self.learners.state_dict(index)
        arrays |= flattened("carry", self.programs.branch(self.carry, index))
        arrays["begins"] = self.begins[index]
        for name, values in self.worlds.save().items():
            arrays[f"worlds/{name}"] = values[index : index + 1]
        n_episodes = None
        if self.recorders:
            n_episodes = self.recorders[index].writer.n_episodes
            for name, values in self.recorders[index].save().items():
                arrays[f"running/{name}"] = values
        header = {
            **self._identity,
            "branch": dataclasses.asdict(self.branches[index]),
            "n_steps": self.n_steps,
            **counts,
            "n_episodes": n_episodes,
            "frame": self.frame,
        }
        return BranchState(arrays, header)

    def load_state_dict(self, saved: Sequence[BranchState]) -> None:
        """Continue each branch from a saved one, under its own condition and rule.

        A branch whose rule is not the saved one continues under its own, and one whose
        body is not the saved one's has just changed. Load the replay first.

        Raises:
            FallowError: they were saved at different steps.
        """
        self.n_steps = common_step(saved)
        self.learners.load_state_dict(saved)
        carry = self.programs.branch(self.carry, 0)
        self.carry = self.programs.sharded([one.tree("carry", carry) for one in saved])
        for sampler, branch in zip(self.buffer.samplers, self.branches, strict=True):
            if sampler.rule != Rule.parse(branch.rule):
                sampler.set_rule(branch.rule)
        self.buffer.read_stored()
        self.set_true_mismatches()
        self.worlds.restore(
            {
                name: np.concatenate([one.arrays[f"worlds/{name}"] for one in saved])
                for name in self.worlds.save()
            }
        )
        self.begins = np.stack([one.arrays["begins"] for one in saved])
        for index, one in enumerate(saved):
            if one.regime not in (None, NO_REGIME, int(self.worlds.regime[index])):
                self.buffer.note_change(index)

    def check(self, saved: BranchState, source: str) -> None:
        """Raise if a saved branch is of another task, agent or size."""
        saved.check(self._identity, source)

    @property
    def _identity(self) -> dict[str, Any]:
        """The properties in which a saved branch and a fleet must agree."""
        return {
            "task": self.task.name,
            "agent": self.agent.name,
            "sizes": options.identifying(self.agent.config),
        }

    def close(self) -> None:
        """Close the histories; every finished episode is in them."""
        for recorder in self.recorders:
            recorder.close()

    # ------------------------------------------------------------ evaluation

    def evaluate(self, n_episodes: int = 10) -> np.ndarray:
        """(R, n_episodes) returns of the policy's mode under the present dynamics.

        Nothing is stored and no clock moves. Starts derive from a branch's seed and
        the frame, so branches of one seed share them.
        """
        with self.clock.on(clock.EVALUATING):
            return self._evaluated(self.learners.state, n_episodes).finish()

    def evaluate_concurrently(self, n_episodes: int = 10) -> Evaluation:
        """Like `evaluate`, but concurrent: one step with each of the next steps.

        The learners are evaluated as they are now, after any running evaluation.
        """
        with self.clock.on(clock.EVALUATING):
            copy = self.programs.copied(self.learners.state)
            self._evaluation = self._evaluated(copy, n_episodes)
        return self._evaluation

    def _evaluated(self, state: Shards, n_episodes: int) -> Evaluation:
        if self._evaluation is not None:  # it uses the same worlds
            self._evaluation.finish()
        worlds = self._evaluation_worlds
        if worlds is None or worlds.n_worlds != n_episodes:
            worlds = self._evaluation_worlds = self._worlds("evaluation", n_episodes, 0)
        worlds.set_clock(self.worlds.clock_frames)
        purpose = f"evaluation at {self.frame}"
        worlds.reset(seeds.of_worlds(self._seeds, n_episodes, purpose))
        return Evaluation(self.programs, state, worlds, self.n_steps)

    # ---------------------------------------------------------------- parts

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.branches), self.schedule.n_worlds

    def _check_body(self) -> None:
        body, agent = self.task.body, self.agent
        needed = (len(body.columns), len(body.actuator_velocity))
        if (agent.n_columns, agent.n_actuators) != needed:
            raise FallowError(
                f"the agent is built for {agent.n_columns} observation columns and "
                f"{agent.n_actuators} actuators; {self.task.name} has {needed[0]} and "
                f"{needed[1]}: build it for this task"
            )

    def _worlds(self, purpose: str, n_worlds: int, frames: int | None) -> Worlds:
        return Worlds(
            self.task,
            [branch.condition for branch in self.branches],
            seeds.of_worlds(self._seeds, n_worlds, purpose),
            [seeds.derive(seed, "schedule") for seed in self._seeds],
            frames_per_step=frames,
            episode_frames=self.schedule.n_worlds * EPISODE_FRAMES,
            n_threads=self._n_threads,
        )
