"""A scripted policy for any body, whose amplitude drifts.

Each actuator swings at its own frequency, with its own phase in every episode, under
white noise such as a learner explores with. The amplitude of both rises and falls
slowly from episode to episode, as a learner's does.
"""

from dataclasses import dataclass

import numpy as np

from fallow.core import seeds

SWING_HZ = (0.5, 2.0)
"""Range of an actuator's frequency."""
SWING = 0.5
"""Amplitude of the swing, relative to that of the episode."""
NOISE = 0.5
"""Standard deviation of the noise, likewise."""
DRIFT_EPISODES = (80, 160)
"""Range of the period of the amplitude's drift."""


@dataclass(frozen=True)
class Scripted:
    """Actions of an open-loop policy; all of it follows from the seed."""

    n_actuators: int
    control_step_s: float
    seed: int = 0
    amplitude: float = 0.6
    """Its mean over episodes."""
    drift: float = 0.25
    """Size of that drift."""

    def amplitude_of(self, episode: int) -> float:
        """The amplitude of one episode."""
        random = seeds.generator(self.seed, "scripted amplitude")
        period, phase = random.uniform(*DRIFT_EPISODES), random.uniform(0, 2 * np.pi)
        wave = np.sin(2 * np.pi * episode / period + phase)
        return float(self.amplitude + self.drift * wave)

    def actions(self, episode: int, n_steps: int) -> np.ndarray:
        """(n_steps, n_actuators) of one episode, each in [-1, 1]."""
        body = seeds.generator(self.seed, "scripted frequencies")
        frequency_hz = body.uniform(*SWING_HZ, self.n_actuators)
        random = seeds.generator(self.seed, "scripted actions", episode)
        phase = random.uniform(0, 2 * np.pi, self.n_actuators)
        time_s = np.arange(n_steps)[:, None] * self.control_step_s
        swing = SWING * np.sin(2 * np.pi * frequency_hz * time_s + phase)
        noise = NOISE * random.normal(size=(n_steps, self.n_actuators))
        return np.clip(self.amplitude_of(episode) * (swing + noise), -1, 1)
