"""Histories of a scripted policy on changing bodies, with the true regimes.

A policy swings every joint open-loop, drifts and jumps between gaits, as a learner's
does. The condition `payload` gives a body of the task more mass.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fallow.core import seeds
from fallow.dynamics import EPISODE_FRAMES, Worlds
from fallow.dynamics.conditions import CONDITIONS, ConditionKind
from fallow.dynamics.scripted import Scripted
from fallow.dynamics.shifts import Fields, Original, Shift
from fallow.logs.recorder import Recorder

N_EPISODES = 100
GAINS = ["none", "recurring", "gain:g=0.3", "gain:g=0.7", "gain:g=0.9"]
OTHERS = ["friction:schedule=permanent,level=0.05", "payload:level=2"]
EVERY = (*GAINS, *OTHERS)
SCRIPTED = {
    "walker-walk": (
        *EVERY,
        "damage:actuator=1",
        "damage:actuator=2",
        "damping:schedule=permanent,level=1",
        "damping:schedule=recurring,level=3",
    ),
    "cheetah-run": (
        *EVERY,
        "damage:actuator=0",
        "damage:actuator=5",
        "damping:schedule=permanent,level=3",
        "damping:schedule=recurring,level=10",
    ),
    "hopper-hop": ("none", "recurring", "damage:actuator=2", "payload:level=2"),
    "cartpole-swingup": ("none", "recurring", "payload:body=2,level=5"),
    "pendulum-swingup": ("none", "recurring", "damping:schedule=recurring,level=0.5"),
}
"""Conditions by task. More mass of a pendulum is less gain, exactly."""


def learner(task: str, seed: int) -> Callable[[int, int], np.ndarray]:
    """A policy that grows, jumps and changes its gait, as a learner's does."""
    worlds = Worlds(task, "none", [[seed]], n_threads=1)
    random = seeds.generator(seed, "benchmark learner")
    jumps = np.sort(random.choice(np.arange(12, N_EPISODES), 5, replace=False))
    gaits = [
        Scripted(
            worlds.n_actuators,
            worlds.control_step_s,
            seed=int(random.integers(2**31)),
            amplitude=float(random.uniform(0.3, 0.9)),
        )
        for _ in range(len(jumps) + 1)
    ]

    def actions(episode: int, n_steps: int) -> np.ndarray:
        now = int(np.searchsorted(jumps, episode, side="right"))
        later = gaits[now].actions(episode, n_steps)
        if now == 0:
            return later
        share = min(1.0, 0.4 + 0.1 * (episode - int(jumps[now - 1])))
        return share * later + (1 - share) * gaits[now - 1].actions(episode, n_steps)

    return actions


@dataclass(frozen=True)
class Payload(Shift):
    """Mass and inertia of one body of a task, its torso by default, times `level`."""

    task: str = ""
    body: int = 1
    level: float = 1.0

    def levels(self, original: Original) -> float:
        return self.level

    def fields(self, original: Original, level: float | None) -> Fields:
        model = Worlds(self.task, "none", [[0]], n_threads=1).model
        found = {n: getattr(model, n).copy() for n in ("body_mass", "body_inertia")}
        for values in found.values():
            values[self.body] *= 1.0 if level is None else level
        return found


def record(task: str, conditions: list[str], seed: int, paths: list[Path]) -> None:
    """Write a history of one scripted learner on each of several changing bodies."""
    if "payload" not in CONDITIONS:
        kind = ConditionKind("Payload", "more mass", Payload, "permanent")
        CONDITIONS.add("payload", kind)
    texts = [c.replace("payload:", f"payload:task={task},") for c in conditions]
    first = seeds.derive(seed, "simulated worlds")
    worlds = Worlds(task, texts, np.full((len(texts), 1), first), n_threads=1)
    policy, n_steps = learner(task, seed), EPISODE_FRAMES // worlds.action_repeat
    with contextlib.ExitStack() as stack:
        recorders = [
            stack.enter_context(Recorder(worlds, path, agent))
            for agent, path in enumerate(paths)
        ]
        for episode in range(N_EPISODES):
            for action in policy(episode, n_steps).astype(np.float32):
                actions = np.broadcast_to(action, (len(texts), 1, len(action)))
                step = worlds.step(actions)
                for recorder in recorders:
                    recorder.add(actions, step)


Record = Callable[[str, list[str], int, list[Path]], None]
"""Writes a history of each of some conditions of a task, of one seed."""


def recorded(
    record: Record, task: str, conditions: Sequence[str], seed: int, folder: Path
) -> list[Path]:
    """Histories of all conditions; those that exist are not recorded again."""
    paths = [folder / f"{task}@{c}@{seed}.fallow" for c in conditions]
    missing = [path for path in paths if not path.exists()]
    if missing:
        parts = [path.with_suffix(".part") for path in missing]
        record(task, [path.name.split("@")[1] for path in missing], seed, parts)
        for part, path in zip(parts, missing, strict=True):
            part.replace(path)
    return paths
