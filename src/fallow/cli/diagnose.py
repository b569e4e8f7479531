"""`fallow diagnose`: did the actuators of a robot change, by its logs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from fallow.cli.columns import ColumnOptions
from fallow.core import files


@dataclass(frozen=True, kw_only=True)
class DiagnoseCommand(ColumnOptions):
    """Did the actuators change, when, by how much, and should the old data go?

    Exit codes: 0, and 2 for bad input; with --ci also 10 if some episodes should go.
    """

    paths: tyro.conf.Positional[tuple[Path, ...]]
    """Logs, data sets or folders of logs."""
    variant: Literal["joint", "mean", "large"] = "joint"
    """Look for changes in each joint's response, the mean, or that of large actions."""
    json: bool = False
    """Print everything as JSON."""
    html: Path | None = None
    """Write one self-contained page."""
    ci: bool = False
    """Exit with 10 if some episodes of a log should go."""
    no_tracker: bool = False
    """Let the verdict rest on the response alone, without the online tracker."""
    scale: Literal["mad", "mad_normal"] = "mad"
    """Unit of the standardised series; mad_normal is 1.4826 times larger."""
    stale_by: Literal["mean", "any-joint"] = "mean"
    """A segment is stale if z is above 3 in the mean response, or in any joint."""

    def run(self) -> int:
        from fallow.console.progress import track
        from fallow.diagnosis.pipeline import diagnose_all, exit_code

        if self.html is not None:
            files.require_place(self.html, "--html")
        results = diagnose_all(
            self.paths,
            self.columns(),
            track,
            variant=self.variant,
            scale=self.scale,
            stale_by=self.stale_by.replace("-", "_"),
            tracker=not self.no_tracker,
        )
        if self.html is not None:
            from fallow.diagnosis.page import render

            files.write_text(self.html, render(results))
        if self.json:
            from fallow.diagnosis.serialize import dumps

            print(dumps(results))
        else:
            from rich.console import Console

            from fallow.diagnosis.terminal import show

            show(results, Console(highlight=False))
        return exit_code(results, self.ci)
