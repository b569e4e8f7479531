"""Features of the body model: linear in the force that actuators apply.

    force[l, j] = gain[j] command[l, j]                             lag l, actuator j
    phi = (1, x, cos(x A + a), force[l, j] * (1, cos(x B + b), still[j]) for all l, j)

Rigid bodies are linear in force, so a change of gain enters phi linearly, and one
evaluation gives the evidence about every gain at once. A joint that is `still` may be
at its limit or pressed to the ground, where it answers no command; without that feature
a policy that lies down looks like a weaker body.
"""

from dataclasses import dataclass

import numpy as np

from fallow.tracking.signals import LEAK_STEPS, N_LAGS, Signals

MAX_STATE = 6.0
"""Robust standard deviations at which a state is clipped."""
MAX_SIGNAL = 1000.0
"""Units at which commands and changes of velocity are clipped."""
LENGTH = 1.5
"""Length scale of the random features, in robust standard deviations."""
STILL = 0.25
"""Motion below which a joint counts as still, relative to its usual velocity."""
MIN_SCALE = 0.1
"""Smallest unit of a column, relative to its standard deviation or to the largest."""
MAD_TO_STD = 1.4826


@dataclass(frozen=True)
class Scaling:
    """Units of every signal, set at warm-up."""

    state_centre: np.ndarray  # (4 d,)
    state: np.ndarray  # (4 d,)
    command: np.ndarray  # (d,)
    change: np.ndarray  # (d,)


def scaling_of(episodes: list[Signals]) -> Scaling:
    """Robust units of the signals of some episodes."""
    state = np.concatenate([e.state for e in episodes])
    change = np.concatenate([e.change for e in episodes])
    command = np.concatenate([e.command[:, 0] for e in episodes])
    centre = np.median(state, axis=0)
    return Scaling(
        state_centre=centre,
        state=_robust_std(state - centre),
        command=_positive(np.sqrt((command**2).mean(axis=0))),
        change=_robust_std(change),
    )


def _robust_std(centred: np.ndarray) -> np.ndarray:
    robust = MAD_TO_STD * np.median(np.abs(centred), axis=0)
    return _positive(np.maximum(robust, MIN_SCALE * centred.std(axis=0)))


def _positive(unit: np.ndarray) -> np.ndarray:
    """Units with those of silent columns raised to a share of the largest."""
    largest = float(unit.max())
    return np.maximum(unit, MIN_SCALE * largest if largest > 0 else 1.0)


@dataclass(frozen=True)
class Design:
    """An episode ready for regression: phi and what a change of gain adds to it."""

    plain: np.ndarray  # (T, 1 + 4 d + m) features without force
    response: np.ndarray  # (T, 1 + k) features that scale force
    command: np.ndarray  # (T, 2, d) in units of the scaling
    change: np.ndarray  # (T, d) likewise
    still: np.ndarray  # (T, d) from 0, a joint that moves, to 1

    def phi(self, gain: np.ndarray) -> np.ndarray:
        """(T, p) features for gains (d,)."""
        force = gain * self.command  # (T, 2, d)
        scaled = force[..., None] * self.response[:, None, None, :]
        still, n = force * self.still[:, None, :], len(force)
        return np.hstack([self.plain, scaled.reshape(n, -1), still.reshape(n, -1)])

    def jacobian(self, weights: np.ndarray) -> np.ndarray:
        """(T, d, d) derivative of the predicted change by gain; weights (p, d)."""
        n_steps, d = self.change.shape
        _, by_force, by_still = np.split(
            weights, [self.plain.shape[1], len(weights) - N_LAGS * d]
        )
        by_force = by_force.reshape(N_LAGS * d, -1, d)
        effect = self.response @ by_force.transpose(1, 0, 2).reshape(
            self.response.shape[1], -1
        )
        effect = effect.reshape(n_steps, N_LAGS, d, d)
        effect = effect + self.still[:, None, :, None] * by_still.reshape(N_LAGS, d, d)
        return np.asarray((self.command[..., None] * effect).sum(axis=1))


class Basis:
    """Random features for d actuators: m of the state, k that scale the commands."""

    def __init__(self, d: int, m: int, k: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        n_state = (2 + len(LEAK_STEPS)) * d
        scale = LENGTH * np.sqrt(n_state)
        self.n_state_features, self.n_command_features = m, k
        self.directions = random.normal(size=(n_state, m + k)) / scale
        self.phases = random.uniform(0, 2 * np.pi, m + k)
        self.n_features = 1 + n_state + m + N_LAGS * d * (2 + k)

    def design(self, signals: Signals, scaling: Scaling) -> Design:
        """The design of one episode."""
        m, k = self.n_state_features, self.n_command_features
        x = (signals.state - scaling.state_centre) / scaling.state
        x = np.clip(x, -MAX_STATE, MAX_STATE)
        waves = np.cos(x @ self.directions + self.phases)
        one = np.ones((len(x), 1))
        usual = scaling.state[: signals.motion.shape[1]]  # of the velocity now
        return Design(
            plain=np.hstack([one, x, waves[:, :m] * np.sqrt(2 / max(m, 1))]),
            response=np.hstack([one, waves[:, m:] * np.sqrt(2 / max(k, 1))]),
            command=_clipped(signals.command / scaling.command),
            change=_clipped(signals.change / scaling.change),
            still=np.exp(-((signals.motion / (STILL * usual)) ** 2) / 2),
        )


def jump(signals: Signals, scaling: Scaling) -> str:
    """Why an episode with a jump of a velocity cannot be used; empty if it has none."""
    largest = float((np.abs(signals.change) / scaling.change).max())
    if largest <= MAX_SIGNAL:
        return ""
    return f"skipped: a velocity jumps by {largest:.0f} times its usual change"


def _clipped(values: np.ndarray) -> np.ndarray:
    return np.clip(values, -MAX_SIGNAL, MAX_SIGNAL)


def stacked(designs: list[Design]) -> Design:
    """Several episodes as one."""
    names = ("plain", "response", "command", "change", "still")
    parts = (np.concatenate([getattr(d, name) for d in designs]) for name in names)
    return Design(*parts)
