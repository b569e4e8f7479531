"""A small body with known truth for a tracker: three coupled joints."""

from dataclasses import replace

import numpy as np

from fallow.tracking import Tracker, TrackerConfig, TrackerUpdate

N_STEPS, STEP_S = 120, 0.05
SMALL = TrackerConfig(n_state_features=20, n_command_features=4)
COUPLING = np.array([[1.0, 0.3, 0.0], [0.2, 0.8, 0.1], [0.0, 0.2, 1.2]])


def episode(
    seed: int,
    gain: np.ndarray,
    drag: float = 0.0,
    amplitude: float = 0.7,
    at_limit: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Three coupled joints with friction, pushed by swings and noise.

    A joint that is `at_limit` stays there from the twentieth step on.
    """
    random = np.random.default_rng(seed)
    time = np.arange(N_STEPS)[:, None]
    phase = random.uniform(0, 6, 3)
    actions = amplitude * (
        0.6 * np.sin(0.2 * time * [1.0, 1.3, 0.7] + phase)
        + 0.4 * random.normal(size=(N_STEPS, 3))
    )
    actions = np.clip(actions, -1, 1)
    v = np.zeros((N_STEPS + 1, 3))
    v[0] = random.normal(size=3)
    for t in range(N_STEPS):
        force = gain * actions[t] - drag * v[t]
        change = COUPLING @ force - 0.1 * v[t] - 0.05 * np.tanh(3 * v[t])
        v[t + 1] = v[t] + change + 0.05 * random.normal(size=3)
        if at_limit is not None and t >= 20:
            v[t + 1, at_limit] *= 0.02
    return v, actions


def run(
    gains: list[np.ndarray], drags: list[float] | None = None, seed: int = 0
) -> tuple[Tracker, list[TrackerUpdate]]:
    """A tracker after one episode for each row of gains."""
    tracker = Tracker(3, STEP_S, replace(SMALL, seed=seed))
    drags = drags or [0.0] * len(gains)
    return tracker, [
        tracker.update(*episode(i, gain, drag))
        for i, (gain, drag) in enumerate(zip(gains, drags, strict=True))
    ]


FULL, HALF = np.ones(3), np.full(3, 0.5)
DEAD = np.array([1.0, 0.0, 1.0])
