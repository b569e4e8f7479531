"""Simulation of the frames of one action, and their reward."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from fallow.dynamics import simulator
from fallow.dynamics.simulator import STAGE_VELOCITY
from fallow.dynamics.tasks import Task, View

Play = Callable[[np.ndarray], np.ndarray]
"""Hold an action (n, n_actuators) in n worlds; returns the summed rewards (n,)."""


def plays_at_once(task: Task) -> bool:
    """Whether positions and velocities after each frame are all that a task reads."""
    return set(task.body.fields) <= {"qpos", "qvel"} and task.body.n_substeps == 1


def player(batch: Any, task: Task, view: View, n_frames: int) -> Play:
    """The cheapest way to play `n_frames` of a task on a `mujoco.batch.Batch`."""
    if plays_at_once(task):
        return _at_once(batch, task, n_frames)
    return _one_by_one(batch, task, view, n_frames)


def _one_by_one(batch: Any, task: Task, view: View, n_frames: int) -> Play:
    """All worlds advance by a frame, then all are looked at."""
    ctrl = batch.bind("ctrl")

    def play(actions: np.ndarray) -> np.ndarray:
        reward = np.zeros(batch.nsim)
        for _ in range(n_frames):
            ctrl[:] = actions
            batch.step(nstep=task.body.n_substeps, stage=STAGE_VELOCITY)
            reward += task.reward(view)
        return reward

    return play


def _at_once(batch: Any, task: Task, n_frames: int) -> Play:
    """Each world advances by all frames; its positions and velocities are recorded.

    What MuJoCo derives from them is then a step old, so this is for tasks that read
    nothing else.
    """
    bits = simulator.load().mjtState
    ctrl, n_positions = batch.bind("ctrl"), batch.model.nq
    record = int(bits.mjSTATE_QPOS) | int(bits.mjSTATE_QVEL)
    states = np.empty((batch.nsim, n_frames, n_positions + batch.model.nv))
    rows = states.reshape(batch.nsim * n_frames, -1)
    seen = SimpleNamespace(qpos=rows[:, :n_positions], qvel=rows[:, n_positions:])

    def play(actions: np.ndarray) -> np.ndarray:
        ctrl[:] = actions
        batch.rollout(n_frames, record=(record,), out={record: states})
        return task.reward(seen).reshape(batch.nsim, n_frames).sum(axis=1)

    return play
