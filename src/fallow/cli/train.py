"""`fallow train`: agents, all branches together in one program."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fallow.cli.training import (
    need_jax,
    refuse_with_resume,
    resume_command,
    resume_hint,
)
from fallow.core import options

if TYPE_CHECKING:
    from fallow.agents import runs


FROM_0 = ("save_frames", "offset_frames")
"""Numbers that may be 0."""
OF_A_START = ("resume", "cache", "trust_cache", "tensorboard", "wandb", "quiet")
"""Options that may change from one start of a run to the next."""


@dataclass(frozen=True)
class TrainCommand:
    """Train agents, all branches together in one program.

    One branch for each seed, condition and rule given. Ctrl-C saves a checkpoint
    and prints how to resume. Results go to `results.csv`, histories to `histories/`.
    """

    task: str = "walker-walk"
    """What to learn; `fallow list` shows all tasks."""
    agent: str = "dreamer"
    """The agent; `fallow list` shows all."""
    preset: str = "lean"
    """Its sizes: paper, lean or tiny, or one of them changed, e.g. lean:horizon=10."""
    condition: tuple[str, ...] = ("none",)
    """What happens to the body, e.g. gain:g=0.5,shift_frame=40000."""
    rule: tuple[str, ...] = ("passive",)
    """What is kept and sampled, e.g. recency:window_transitions=20000."""
    seeds: str = "0"
    """Seeds, e.g. 0-4 or 0,3,7."""
    frames: int = 200_000
    """Frames of each branch."""
    evaluate_frames: int = 10_000
    """Frames between two evaluations."""
    offset_frames: int = 0
    """Evaluate at multiples of --evaluate-frames plus this."""
    episodes: int = 10
    """Episodes of an evaluation."""
    save_frames: int = 20_000
    """Frames between two checkpoints; 0 saves at the end only."""
    no_histories: bool = False
    """Do not record the branches' interaction histories."""
    tensorboard: bool = False
    """Also write TensorBoard event files, to `events` in the folder."""
    wandb: str | None = None
    """Also log to this project of Weights & Biases."""
    out: Path = Path("runs/train")
    """Folder for results, histories and checkpoints."""
    resume: Path | None = None
    """Resume the run in this folder, with all its other options."""
    cache: Path | None = None
    """Folder of compiled programs, which can be carried to another machine."""
    trust_cache: bool = False
    """Run programs from a --cache folder that another machine or user filled."""
    quiet: bool = False
    """Print the path of the results only."""

    def run(self) -> None:
        need_jax()
        self._check()

        from fallow.agents import runs
        from fallow.agents.compiling import keep_compiled
        from fallow.console.scalars import writers
        from fallow.console.training import TrainingBar

        keep_compiled(self.cache, self.trust_cache)
        folder = self.resume or self.out
        run = runs.Run.read(folder) if self.resume else self._run()
        scalars = writers(folder, self.tensorboard, self.wandb)
        view = TrainingBar(scalars, self.quiet)
        resume = resume_command("train", folder, self, OF_A_START)
        with resume_hint(resume), view as bar:
            table = runs.train(run, folder, bar)
        print(f"results: {table}")

    def _check(self) -> None:
        for name in ("frames", "evaluate_frames", "episodes", *FROM_0):
            flag, least = f"--{name.replace('_', '-')}", int(name not in FROM_0)
            options.check_int("fallow train", flag, getattr(self, name), at_least=least)
        refuse_with_resume(self, *OF_A_START)

    def _run(self) -> "runs.Run":
        from fallow.agents import runs
        from fallow.core.records import Branch

        return runs.Run(
            task=self.task,
            agent=self.agent,
            preset=self.preset,
            branches=tuple(
                Branch(seed, condition, rule)
                for seed in options.seeds(self.seeds)
                for condition in self.condition
                for rule in self.rule
            ),
            until_frame=self.frames,
            evaluate_frames=self.evaluate_frames,
            n_episodes=self.episodes,
            save_frames=self.save_frames,
            histories=not self.no_histories,
            offset_frames=self.offset_frames,
        )
