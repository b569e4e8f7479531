"""Sizes of the agent. A preset sets sizes and learning rates, never the algorithm."""

from dataclasses import dataclass, field

from fallow.agents import presets
from fallow.core.errors import FallowError
from fallow.core.registry import Registry

GROUP = 8
"""Numbers of a latent that sum to one."""


@dataclass(frozen=True)
class Config:
    """All numbers of one agent; the defaults are the paper's, of 5M parameters."""

    n_latent: int = 512
    """Width of the latent, a multiple of 8."""
    encoder_width: int = 256
    """Of the encoder's hidden layer."""
    width: int = 512
    """Of all other hidden layers."""
    n_values: int = 5
    """Value functions learned side by side."""
    batch: int = 256
    horizon: int = 3
    """Sequences an update replays, and the transitions of each and of a plan."""
    n_iterations: int = 6
    """Times a plan is refitted; two more on bodies with 20 actuators or more."""
    n_samples: int = 512
    n_elites: int = 64
    """Action sequences tried in each iteration, and how many of them are kept."""
    n_proposals: int = field(default=24, metadata=presets.MAY_BE_ZERO)
    """Number of the tried sequences that the policy proposes."""
    prefill_transitions: int = 2500
    """Transitions of uniformly random actions before learning."""
    pretrain_updates: int = field(default=2500, metadata=presets.MAY_BE_ZERO)
    """Updates when learning begins."""
    rate: float = 3e-4
    """Learning rate; the encoder's is 0.3 of it."""
    compute: str = "float32"
    """Type of the matrix products; parameters are always float32."""

    def __post_init__(self) -> None:
        presets.check(self, "tdmpc")
        if self.n_latent % GROUP:
            raise FallowError(
                f"n_latent of {self.n_latent}; it must be a multiple of {GROUP}"
            )
        if self.n_values < 2:
            raise FallowError(f"n_values of {self.n_values}; two are sampled at a time")
        if self.n_elites > self.n_samples:
            raise FallowError(
                f"n_elites of {self.n_elites}; choose 1 to n_samples, {self.n_samples}"
            )
        if self.n_proposals >= self.n_samples:
            raise FallowError(
                f"n_proposals of {self.n_proposals}; choose fewer than n_samples, "
                f"{self.n_samples}"
            )


PRESETS: Registry[Config] = Registry("preset of tdmpc")
PRESETS.add("paper", Config())
PRESETS.add("lean", Config(n_latent=128, width=384, n_values=2, compute="bfloat16"))
PRESETS.add(
    "tiny",
    Config(
        n_latent=32,
        encoder_width=64,
        width=64,
        n_values=2,
        batch=64,
        n_iterations=3,
        n_samples=32,
        n_elites=8,
        n_proposals=8,
        prefill_transitions=1000,
        pretrain_updates=1000,
        rate=2e-3,
    ),
)
