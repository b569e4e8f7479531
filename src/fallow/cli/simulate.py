"""`fallow simulate`: a history of a body that changes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class SimulateCommand:
    """Record a body that changes, moved by a scripted policy whose amplitude drifts."""

    task: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TASK")]
    """The body and its task, e.g. walker-walk; `fallow list` shows all."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """The history to write; it must not be there yet."""
    condition: str = "none"
    """What changes and when, e.g. gain, gain:g=0.7, recurring, damage."""
    episodes: int = 150
    """500 transitions each; changes come at episode 40 unless the condition says."""
    seed: int = 0
    """Everything follows from it."""

    def run(self) -> None:
        from fallow.console.progress import progress
        from fallow.logs.simulate import simulate

        with progress(self.episodes, "simulating") as tick:
            condition = simulate(
                self.task, self.condition, self.episodes, self.seed, self.out, tick
            )
        print(
            f"{self.out}: {self.episodes} episodes of {self.task} under {condition}, "
            f"seed {self.seed}"
        )
