"""`fallow diagnose`: what the logs of a robot say."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro


@dataclass(frozen=True)
class DiagnoseCommand:
    """Did the actuators change, when, by how much, and should the old data go?

    Exit codes: 0, and 2 for bad input; with --ci also 10 if the paper's selector
    discards data.
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
    """Exit with 10 if the paper's selector discards the data of a log."""
    velocity: str | None = None
    """Velocity columns: names, places (11:17) or both (qvel[3:9]); else guessed."""
    action: str | None = None
    """Action columns, likewise, in the order of the velocities they drive."""
    position: str | None = None
    """Position columns, whose differences are the velocities, where none are logged."""
    episode: str | None = None
    """The column that numbers the episodes."""
    time: str | None = None
    """The column of times in seconds."""
    episode_steps: int | None = None
    """Cut a recording without episodes into pieces of so many rows."""
    lag_ms: float | None = None
    """How long commands act after they are logged (MCAP, ROS); else estimated."""
    max_memory: str | None = None
    """Refuse logs that need more, e.g. 4GiB; else a quarter of the memory."""
    scale: Literal["mad", "mad_normal"] = "mad"
    """Unit of the standardised series; mad_normal is 1.4826 times larger."""
    stale_by: Literal["mean", "any-joint"] = "mean"
    """A segment is stale if z is above 3 in the mean response, or in any joint."""

    def run(self) -> int:
        from fallow.console.progress import track
        from fallow.core.sizes import parse_size
        from fallow.diagnosis.pipeline import diagnose_all, exit_code
        from fallow.logs.columns import Columns

        limit = parse_size(self.max_memory, "--max-memory") if self.max_memory else None
        columns = Columns(
            velocity=self.velocity,
            action=self.action,
            episode=self.episode,
            time=self.time,
            episode_steps=self.episode_steps,
            position=self.position,
            lag_ms=self.lag_ms,
            max_memory_bytes=limit,
        )
        results = diagnose_all(
            self.paths,
            columns,
            track,
            variant=self.variant,
            scale=self.scale,
            stale_by=self.stale_by.replace("-", "_"),
        )
        if self.html is not None:
            from fallow.core import files
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
