"""Histories of agents that learn on changing bodies, with the true regimes.

    python benchmarks/learned_histories.py FOLDER --tasks cheetah-run hopper-hop
    python benchmarks/tracker.py FOLDER/*.fallow

Needs the extra `sb3`. Stable-Baselines3's SAC learns in four worlds at once. Up to the
change one agent acts for all conditions of a seed, whose bodies are alike so far; then
each condition has a copy of it, which continues to learn. A history is a run from its
first episode on.
"""

import argparse
import contextlib
import copy
from pathlib import Path

import gymnasium
import numpy as np
import torch
from scripted_histories import recorded
from stable_baselines3 import SAC
from stable_baselines3.common.logger import Logger

from fallow.core import seeds
from fallow.dynamics import EPISODE_FRAMES, Step, Worlds
from fallow.dynamics.tasks import ACTION_REPEAT
from fallow.logs.recorder import Recorder

N_WORLDS, N_UPDATES = 4, 2
"""Worlds of an agent, and its updates in each step of all of them."""
N_BEFORE, N_AFTER = 120, 80
"""Episodes before the change and from it on."""
N_RANDOM = 4
"""Episodes of random actions at the start."""
N_STEPS = EPISODE_FRAMES // ACTION_REPEAT
"""Of an episode."""
GAINS = ("none", "gain:g=0.5", "gain:g=0.7", "recurring", "damage")
FRICTION = "friction:schedule=permanent,level=0.05"
DAMPING = "damping:schedule=permanent,level="
LEARNED = {
    "walker-walk": (*GAINS, "damage:actuator=4", f"{DAMPING}1", FRICTION),
    "cheetah-run": (*GAINS, "damage:actuator=4", f"{DAMPING}3", FRICTION),
    "hopper-hop": (*GAINS, "damage:actuator=2"),
    "cartpole-swingup": ("none", "gain:g=0.5", "recurring"),
    "pendulum-swingup": ("none", "gain:g=0.5", "recurring", f"{DAMPING}0.5"),
}
"""Conditions by task; all of them begin to differ at one frame."""


class Spaces(gymnasium.Env):
    """The observation and action spaces of a body, whose worlds step elsewhere."""

    def __init__(self, worlds: Worlds) -> None:
        shape = worlds.observation.shape[2:]
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, shape)
        self.action_space = gymnasium.spaces.Box(-1, 1, (worlds.n_actuators,))


class Learner:
    """SAC that acts and learns in the worlds of one condition."""

    def __init__(self, worlds: Worlds, seed: int) -> None:
        self.model = SAC(
            "MlpPolicy",
            Spaces(worlds),
            learning_rate=1e-3,
            batch_size=128,
            ent_coef="auto_0.1",
            buffer_size=(N_BEFORE + N_AFTER) * N_STEPS,
            policy_kwargs={"net_arch": [128, 128]},
            seed=seed,
            device="cpu",
        )
        self.model.set_logger(Logger(folder=None, output_formats=[]))

    def act(self, observation: np.ndarray) -> np.ndarray:
        """(W, d) actions, with the policy's noise; random ones at first."""
        if self.model.replay_buffer.size() < N_RANDOM * N_STEPS:
            space = self.model.action_space
            return np.stack([space.sample() for _ in observation])
        return self.model.predict(observation)[0]

    def learn(self, before: np.ndarray, action: np.ndarray, step: Step, i: int) -> None:
        """Store a transition of every world, and make `N_UPDATES`."""
        for world in range(len(before)):
            self.model.replay_buffer.add(
                before[world],
                step.observation[i, world],
                action[world],
                step.reward[i, world],
                np.zeros(1),  # an episode ends by the clock
                [{}],
            )
        self.model.train(gradient_steps=N_UPDATES, batch_size=self.model.batch_size)


def record(task: str, conditions: list[str], seed: int, paths: list[Path]) -> None:
    """Write a history of one learner on each of several changing bodies."""
    at = f"shift_frame={N_BEFORE * EPISODE_FRAMES}"
    texts = [f"{c}{',' if ':' in c else ':'}{at}" if c != "none" else c
             for c in conditions]  # fmt: skip
    starts = [seeds.derive(seed, "learned worlds", world) for world in range(N_WORLDS)]
    worlds = Worlds(task, texts, [starts] * len(texts), n_threads=1)
    learners = [Learner(worlds, seed)]
    returns = np.zeros(len(texts))
    with contextlib.ExitStack() as stack:
        recorders = [
            stack.enter_context(Recorder(worlds, path, agent))
            for agent, path in enumerate(paths)
        ]
        for t in range((N_BEFORE + N_AFTER) // N_WORLDS * N_STEPS):
            if t == N_BEFORE // N_WORLDS * N_STEPS:
                learners = [copy.deepcopy(learners[0]) for _ in texts]
            before = worlds.observation
            acted = [one.act(seen) for one, seen in zip(learners, before, strict=False)]
            every = np.stack(acted * (len(texts) // len(acted)))
            step = worlds.step(every)
            for recorder in recorders:
                recorder.add(every, step)
            for i, learner in enumerate(learners):
                learner.learn(before[i], every[i], step, i)
            returns += step.reward.mean(axis=1)
            if step.truncated.any():
                n_done = (t + 1) // N_STEPS * N_WORLDS
                print(
                    f"{task} {seed}, {n_done} episodes:", *returns.round(), flush=True
                )
                returns[:] = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", nargs="*", default=list(LEARNED), choices=LEARNED)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    for seed in range(chosen.first_seed, chosen.first_seed + chosen.seeds):
        for task in chosen.tasks:
            recorded(record, task, LEARNED[task], seed, chosen.folder)


if __name__ == "__main__":
    main()
