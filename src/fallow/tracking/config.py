"""Settings of the tracker."""

from dataclasses import dataclass

from fallow.core.errors import FallowError


@dataclass(frozen=True)
class TrackerConfig:
    """Settings of a tracker; the defaults serve every body that was tried."""

    false_alarms_per_1000: float = 1.0
    """Acceptable false alarms in 1,000 episodes of an unchanged body; sets every
    threshold."""
    seed: int = 0
    """Seed of the random features; all else is deterministic."""
    warm_up_episodes: int = 8
    """Usable episodes before the first decision; the body must not change in them."""
    n_state_features: int = 60
    """Random features of the state that the body model adds to a linear model."""
    n_command_features: int = 12
    """Random features of the state that scale the effect of each command."""
    memory_steps: float = 16_000.0
    """Time constant, in steps, with which the body model forgets."""
    drift: float = 30.0
    """Factor by which the body model's uncertainty exceeds that of its data alone;
    larger trusts the model less in states that the policy has not visited."""
    min_episodes: int = 2
    """Episodes that a decision needs, however clear the first one is."""
    max_suspicious: int = 6
    """Suspicious episodes after which the tracker keeps the present regime."""
    trial_episodes: int = 12
    """Episodes of a new regime before another new one; its gains are reviewed after
    half of them and after all."""
    max_regimes: int = 12
    """Most regimes; beyond it a change is reported as the nearest known regime."""

    def __post_init__(self) -> None:
        for name, low in _AT_LEAST.items():
            value = getattr(self, name)
            if not value >= low:
                raise FallowError(
                    f"TrackerConfig: {name} is {value:g}; choose {low:g} or more"
                )


_AT_LEAST = {
    "false_alarms_per_1000": 1e-6,
    "seed": 0,
    "warm_up_episodes": 2,
    "n_state_features": 0,
    "n_command_features": 0,
    "memory_steps": 100,
    "drift": 1,
    "min_episodes": 1,
    "max_suspicious": 2,
    "trial_episodes": 2,
    "max_regimes": 2,
}
