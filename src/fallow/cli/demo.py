"""`fallow demo`: a paired study in small, or a walker that weakens."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fallow.cli.training import need_jax, resume_hint
from fallow.core.errors import FallowError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text


@dataclass(frozen=True)
class DemoCommand:
    """Show recorded findings, then run a small paired study and report it.

    The study branches trained agents that come with Fallow. With --walker: a walker
    loses half its strength, in a few seconds.
    """

    out: Path | None = None
    """Folder for all of it; runs/demo, or runs/walker, unless given."""
    seeds: str | None = None
    """Other seeds than those shipped, e.g. 10-12; their agents are trained first."""
    walker: bool = False
    """Only watch a scripted walker: one picture, two lines."""
    seed: int = 0
    """Seed of the walker's starting pose."""

    def run(self) -> None:
        from rich.console import Console

        if self.walker and self.seeds is not None:
            raise FallowError("--seeds is of the study; leave it or --walker out")
        if self.seed and not self.walker:
            raise FallowError("--seed is of the walker; add --walker, or name --seeds")
        console = Console(soft_wrap=True, highlight=False, markup=False)
        for line in self._walk() if self.walker else self._study():
            console.print(line)

    def _walk(self) -> "Iterator[str | Text]":
        from fallow.demo.walker import run_demo

        return run_demo(self.out or Path("runs/walker"), self.seed)

    def _study(self) -> "Iterator[str | Text]":
        need_jax()

        from fallow.agents.compiling import keep_compiled
        from fallow.demo.study import demo_plan, run_demo

        keep_compiled()
        plan = demo_plan(self.seeds)
        folder = self.out or Path(
            "runs/demo" + (f"-{self.seeds}" if self.seeds else "")
        )
        with resume_hint(self._command()):
            yield from run_demo(folder, plan)

    def _command(self) -> str:
        """The command that continues this one."""
        given = {"--seeds": self.seeds, "--out": self.out}
        options = [f"{name} {value}" for name, value in given.items() if value]
        return " ".join(["fallow demo", *options])
