"""Writes a history while worlds run."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

import fallow
from fallow.core.legacy import ALGORITHM
from fallow.core.records import NO_REGIME, Episode
from fallow.dynamics import Step, Worlds
from fallow.logs.history import Header, HistoryWriter


def header_of(
    worlds: Worlds, agent: int = 0, observation_type: str = "float32"
) -> Header:
    """The header of a history of one agent's worlds."""
    body, model = worlds.task.body, worlds.model
    return Header(
        columns=body.columns,
        actuators=tuple(model.actuator(i).name for i in range(model.nu)),
        actuator_velocity=body.actuator_velocity,
        control_step_s=worlds.control_step_s,
        frames_per_step=worlds.frames_per_step,
        observation_type=observation_type,
        about={
            "task": worlds.task.name,
            "condition": str(worlds.conditions[agent]),
            "schedule_seed": worlds.schedule_seeds[agent],
            "action_repeat": worlds.action_repeat,
            "n_worlds": worlds.n_worlds,
            "fallow": fallow.__version__,
            "algorithm": ALGORITHM,
        },
    )


class Recorder:
    """Collects the steps of one agent's worlds and appends each finished episode.

    Concurrent episodes are written in the order in which they end, then by world. If a
    write fails, e.g. on a full disk, the finished episodes wait for the next `add`.

        recorder = Recorder(worlds, "run.fallow")
        while ...:
            actions = policy(worlds.observation)
            recorder.add(actions, worlds.step(actions))
    """

    def __init__(
        self,
        worlds: Worlds,
        path: str | Path,
        agent: int = 0,
        observation_type: str = "float32",
        keep_episodes: int | None = None,
    ) -> None:
        header = header_of(worlds, agent, observation_type)
        self.writer = HistoryWriter(path, header, keep_episodes)
        self._worlds = worlds
        self._agent = agent
        self._running = [self._opened(world) for world in range(worlds.n_worlds)]
        self._finished: list[Episode] = []

    def _opened(self, world: int) -> dict[str, list[np.ndarray]]:
        agent = self._agent
        return {
            "observation": [self._worlds.observation[agent, world]],
            "start_state": [self._worlds.start_state[agent, world]],
            "start_frame": [self._worlds.clock_frames[agent]],
        }

    def add(
        self,
        actions: np.ndarray,
        step: Step,
        policy_mean: np.ndarray | None = None,
        policy_std: np.ndarray | None = None,
    ) -> None:
        """Record one step of all the agent's worlds: (A, W, …) arrays, as stepped."""
        columns = {
            "observation": step.observation,
            "action": np.asarray(actions),
            "reward": step.reward.astype(np.float32),
            "policy_mean": policy_mean,
            "policy_std": policy_std,
        }
        for world, running in enumerate(self._running):
            for name, values in columns.items():
                if values is not None:
                    running.setdefault(name, []).append(values[self._agent, world])
            running.setdefault("regime", []).append(step.regime[self._agent])
            if step.truncated[self._agent, world]:
                self._finished.append(_closed(running, world))
                self._running[world] = self._opened(world)
        self._write()

    def _write(self) -> None:
        while self._finished:
            self.writer.add(self._finished[0])
            del self._finished[0]

    def save(self) -> dict[str, np.ndarray]:
        """The episodes still running, for a checkpoint beside `Worlds.save`.

        To resume: `Recorder(…, keep_episodes=n)` with the number of episodes written
        when it was saved, then `restore`.
        """
        self._write()
        return {
            f"{world}/{name}": np.array(values)
            for world, running in enumerate(self._running)
            for name, values in running.items()
        }

    def restore(self, saved: Mapping[str, np.ndarray]) -> None:
        """Continue with the running episodes that `save` returned."""
        self._finished = []
        self._running = [{} for _ in self._running]
        for key, values in saved.items():
            world, _, name = key.partition("/")
            self._running[int(world)][name] = list(values)

    def close(self) -> None:
        """Close the history; episodes still running are not in it."""
        try:
            self._write()
        finally:
            self.writer.close()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _closed(running: dict[str, list[np.ndarray]], world: int) -> Episode:
    arrays = {name: np.array(values) for name, values in running.items()}
    regime = arrays["regime"]
    return Episode(
        observation=arrays["observation"],
        action=arrays["action"],
        reward=arrays["reward"],
        regime=None if (regime == NO_REGIME).any() else regime,
        policy_mean=arrays.get("policy_mean"),
        policy_std=arrays.get("policy_std"),
        start_state=arrays["start_state"][0],
        start_frame=int(arrays["start_frame"][0]),
        world=world,
    )
