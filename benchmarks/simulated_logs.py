"""Logs of simulated bodies for benchmarks, many histories stepped together."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fallow.core import seeds
from fallow.dynamics import EPISODE_FRAMES, Worlds
from fallow.dynamics.scripted import Scripted
from fallow.logs import header_of
from fallow.logs.log import Log


@dataclass(frozen=True)
class Repeated(Scripted):
    """A policy whose amplitudes repeat every `period` episodes, with new noise."""

    period: int = 1

    def amplitude_of(self, episode: int) -> float:
        return super().amplitude_of(episode % self.period)


def simulated_logs(
    task: str, condition: str, n_episodes: int, n_histories: int
) -> list[Log]:
    """What `fallow simulate` records with seeds 0, 1, …"""
    names = [seeds.derive(seed, "simulated worlds") for seed in range(n_histories)]
    worlds = Worlds(task, condition, [[name] for name in names], n_threads=1)
    shape = worlds.n_actuators, worlds.control_step_s
    scripts = [Scripted(*shape, seed) for seed in range(n_histories)]
    return _logs(worlds, n_episodes, lambda n, e, steps: scripts[n].actions(e, steps))


def repeated_logs(
    task: str, condition: str, n_episodes: int, n_histories: int, policy: int
) -> list[Log]:
    """Histories of one policy that differ in noise and initial states only."""
    names = [seeds.derive(n, "coverage worlds", policy) for n in range(n_histories)]
    worlds = Worlds(task, condition, [[name] for name in names], n_threads=1)
    shape = worlds.n_actuators, worlds.control_step_s
    script = Repeated(*shape, policy, period=n_episodes)
    return _logs(
        worlds,
        n_episodes,
        lambda n, e, steps: script.actions(n * n_episodes + e, steps),
    )


def _logs(
    worlds: Worlds, n_episodes: int, actions: Callable[[int, int, int], np.ndarray]
) -> list[Log]:
    """One log for each agent of one world; `actions(history, episode, n_steps)`."""
    n_steps = EPISODE_FRAMES // worlds.action_repeat
    header = header_of(worlds)
    columns, d = list(header.actuator_velocity), worlds.n_actuators
    action = np.zeros((worlds.n_agents, n_episodes, n_steps, d), np.float32)
    velocity = np.zeros((worlds.n_agents, n_episodes, n_steps + 1, d), np.float32)
    regime = np.zeros(n_episodes, np.int64)
    for e in range(n_episodes):
        for n in range(worlds.n_agents):
            action[n, e] = actions(n, e, n_steps)
        velocity[:, e, 0] = worlds.observation[:, 0, columns]
        for t in range(n_steps):
            step = worlds.step(action[:, e, t, None])
            velocity[:, e, t + 1] = step.observation[:, 0, columns]
        regime[e] = step.regime[0]
    shift = worlds.conditions[0].shift
    shifted = np.ones(d) if shift is None else shift.gains(d)
    return [
        Log(
            source=f"{worlds.task.name}, {worlds.conditions[0]}, history {n}",
            format="simulated",
            actuators=header.actuators,
            velocity=velocity[n].reshape(-1, d),
            action=action[n].reshape(-1, d),
            n_transitions=np.full(n_episodes, n_steps),
            start_step=np.arange(n_episodes) * n_steps,
            regime=regime,
            gain=np.where(regime[:, None] > 0, shifted, 1.0),
        )
        for n in range(worlds.n_agents)
    ]
