"""Sizes of the agent. A preset sets sizes and learning rates, never the algorithm."""

import math
from dataclasses import dataclass, field
from fractions import Fraction

from fallow.agents import presets
from fallow.core import options
from fallow.core.errors import FallowError
from fallow.core.registry import Registry


@dataclass(frozen=True)
class Config:
    """All numbers of one agent; the defaults are the paper's."""

    n_worlds: int = 4
    """Number of parallel worlds."""
    n_deter: int = 512
    """Width of the recurrent state."""
    n_hidden: int = 512
    """Width of the layers around it."""
    n_categoricals: int = 32
    n_classes: int = 32
    """The latent: so many categoricals of so many classes."""
    coder_layers: int = 5
    coder_width: int = 1024
    """Of encoder and decoder."""
    head_layers: int = 2
    head_width: int = 512
    """Of reward, continuation, actor and critic."""
    batch: int = 16
    length: int = 64
    """Sequences an update replays, and their steps."""
    n_starts: int = 1024
    """States of a batch from which behaviour is imagined."""
    horizon: int = 15
    """Imagined states, the start included."""
    train_ratio: int = 512
    """Replayed steps for each transition collected."""
    prefill_transitions: int = 2500
    """Transitions of uniformly random actions before learning."""
    pretrain_updates: int = field(default=100, metadata=presets.MAY_BE_ZERO)
    """Updates when learning begins."""
    model_rate: float = 1e-4
    actor_rate: float = 3e-5
    critic_rate: float = 3e-5
    """Learning rates of the three networks."""
    compute: str = "bfloat16"
    """Type of the matrix products; parameters are always float32."""
    unroll: int = field(default=1, metadata=options.SPEED_ONLY)
    """Steps of the posterior's scan compiled as one; changes speed alone."""

    def __post_init__(self) -> None:
        presets.check(self, "dreamer")
        n_states = self.batch * self.length
        if self.n_starts > n_states:
            raise FallowError(
                f"dreamer: n_starts is {self.n_starts} and a batch has {n_states} "
                "states (batch times length); imagine from at most as many"
            )
        if self.horizon < 2:
            raise FallowError(
                f"dreamer: horizon is {self.horizon}; it counts the state that "
                "imagination starts from, so that it must be 2 or more"
            )

    @property
    def n_stoch(self) -> int:
        """Numbers in a flat latent."""
        return self.n_categoricals * self.n_classes

    @property
    def n_feature(self) -> int:
        """Numbers that a head sees."""
        return self.n_stoch + self.n_deter

    @property
    def updates_per_step(self) -> Fraction:
        """Updates for each step of all worlds."""
        return Fraction(self.train_ratio * self.n_worlds, self.batch * self.length)

    @property
    def prefill_steps(self) -> int:
        """Steps of all worlds before learning."""
        return math.ceil(self.prefill_transitions / self.n_worlds)


PRESETS: Registry[Config] = Registry("preset of dreamer")
PRESETS.add("paper", Config())
PRESETS.add(
    "lean",
    Config(
        n_deter=256,
        n_hidden=256,
        n_categoricals=16,
        n_classes=16,
        coder_layers=3,
        coder_width=256,
        head_width=256,
        n_starts=256,
        unroll=8,
        model_rate=3e-4,
        actor_rate=9e-5,
        critic_rate=9e-5,
    ),
)
PRESETS.add(
    "tiny",
    Config(
        n_deter=64,
        n_hidden=64,
        n_categoricals=8,
        n_classes=8,
        coder_layers=2,
        coder_width=64,
        head_layers=1,
        head_width=64,
        batch=4,
        n_starts=16,
        train_ratio=96,
        prefill_transitions=1000,
        model_rate=1e-3,
        actor_rate=5e-4,
        critic_rate=4e-3,
        compute="float32",
    ),
)
