"""The records that every layer shares. Imports NumPy only."""

from dataclasses import dataclass

import numpy as np

NO_REGIME = -1
"""Stands in arrays where no regime is known."""


@dataclass(frozen=True)
class Episode:
    """One recorded episode of T transitions.

    Row t holds the observation at step t and the action *taken at* it; a closing row
    holds the last observation, so there are T + 1 observations.
    """

    observation: np.ndarray  # (T + 1, n_columns)
    action: np.ndarray  # (T, n_actuators), as commanded
    reward: np.ndarray  # (T,), what the action at t brought
    regime: np.ndarray | None = None  # (T,), in force during the transition
    policy_mean: np.ndarray | None = None  # (T, n_actuators)
    policy_std: np.ndarray | None = None  # (T, n_actuators)
    start_state: np.ndarray | None = None  # the simulator's, at row 0
    world: int = 0
    start_frame: int = 0  # the agent's clock at row 0

    @property
    def n_transitions(self) -> int:
        """T."""
        return len(self.action)


@dataclass(frozen=True)
class ReplayRows:
    """An episode as agents replay it: T + 1 rows.

    Row t holds an observation, the action that *led to* it and the reward received on
    arriving there; row 0 has no action and no reward.
    """

    observation: np.ndarray  # (T + 1, n_columns)
    action: np.ndarray  # (T + 1, n_actuators)
    reward: np.ndarray  # (T + 1,)
    is_first: np.ndarray  # (T + 1,)


def replay_rows(episode: Episode) -> ReplayRows:
    """Turn actions taken at observations into actions that led to them."""
    is_first = np.zeros(episode.n_transitions + 1, bool)
    is_first[0] = True
    return ReplayRows(
        observation=episode.observation,
        action=np.concatenate([np.zeros_like(episode.action[:1]), episode.action]),
        reward=np.concatenate([np.zeros_like(episode.reward[:1]), episode.reward]),
        is_first=is_first,
    )


@dataclass(frozen=True)
class Branch:
    """One run of an agent: a seed, what happens to its body, what it keeps."""

    seed: int
    condition: str = "none"
    rule: str = "passive"
