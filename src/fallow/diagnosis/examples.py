"""Example logs with known truth: joints that are pushed, with a policy that drifts.

    v[t + 1] = v[t] + gain strength a[t] - drag v[t] + noise

The policy is a[t] = amplitude noise + feedback v[t]. Its amplitude follows a random
walk from episode to episode, and its feedback may grow, which changes K although the
body does not change. The estimator fails there.
"""

from dataclasses import dataclass

import numpy as np

from fallow.core import seeds
from fallow.core.errors import FallowError
from fallow.logs.log import Log

STRENGTH = 1.0
"""Velocity that a full action adds in one step, at gain 1."""
NOISE = 0.1
"""Standard deviation of the velocity's disturbance."""


@dataclass(frozen=True)
class Example:
    """Parameters of a log to generate, which are its truth."""

    gains: tuple[float, ...] = (1.0, 0.5)
    """Of one regime after another."""
    change_points: tuple[int, ...] = (40,)
    """First episode of each regime but the first."""
    n_episodes: int = 100
    n_steps: int = 100
    n_joints: int = 3
    amplitude_drift: float = 0.02
    """Relative standard deviation of the amplitude's walk, an episode."""
    feedback: float = 0.0
    """Action for each unit of velocity at the last episode, from 0 at the first."""
    drag: float = 0.1
    """Share of the velocity lost in one step."""
    damaged_joint: int | None = None
    """The gains are this joint's alone; None: all joints have them."""

    def __post_init__(self) -> None:
        if len(self.gains) != len(self.change_points) + 1:
            raise FallowError(
                f"{len(self.gains)} gains for {len(self.change_points)} change points; "
                "give one gain more"
            )

    @property
    def regime(self) -> np.ndarray:
        """(k,) the number of the gain in force; equal gains are one regime."""
        order = list(dict.fromkeys(self.gains))
        places = np.searchsorted(
            self.change_points, np.arange(self.n_episodes), side="right"
        )
        return np.array([order.index(self.gains[place]) for place in places])

    @property
    def gain(self) -> np.ndarray:
        """(k, d) of every episode and joint."""
        order = np.array(list(dict.fromkeys(self.gains)))
        gain = np.ones((self.n_episodes, self.n_joints))
        joints = range(self.n_joints)
        for joint in joints if self.damaged_joint is None else (self.damaged_joint,):
            gain[:, joint] = order[self.regime]
        return gain


def example(
    truth: Example | None = None, seed: int = 0, noise_seed: int | None = None
) -> Log:
    """A log generated from `truth`; all of it follows from the seed.

    Logs of one seed that differ in `noise_seed` have the same policy: the amplitude of
    each episode is the same, and the noise is not.
    """
    truth = truth or Example()
    random = seeds.generator(seed, "example log")
    shape = (truth.n_episodes, truth.n_joints)
    walk = np.cumsum(random.normal(0, truth.amplitude_drift, truth.n_episodes))
    if noise_seed is not None:
        random = seeds.generator(seed, "example noise", noise_seed)
    amplitude = 0.5 * np.exp(walk)[:, None]
    feedback = truth.feedback * np.linspace(0, 1, truth.n_episodes)[:, None]
    velocity = np.zeros((truth.n_episodes, truth.n_steps + 1, truth.n_joints))
    action = np.zeros((truth.n_episodes, truth.n_steps, truth.n_joints))
    for t in range(truth.n_steps):
        wanted = amplitude * random.normal(size=shape) + feedback * velocity[:, t]
        action[:, t] = np.clip(wanted, -1, 1)
        push = truth.gain * STRENGTH * action[:, t]
        noise = random.normal(0, NOISE, shape)
        velocity[:, t + 1] = (1 - truth.drag) * velocity[:, t] + push + noise
    n_transitions = np.full(truth.n_episodes, truth.n_steps)
    return Log(
        source=f"example, seed {seed}",
        format="example",
        actuators=tuple(f"joint {j}" for j in range(truth.n_joints)),
        velocity=velocity.reshape(-1, truth.n_joints),
        action=action.reshape(-1, truth.n_joints),
        n_transitions=n_transitions,
        start_step=np.cumsum(n_transitions) - n_transitions,
        control_step_s=0.02,
        regime=truth.regime,
        gain=truth.gain,
    )
