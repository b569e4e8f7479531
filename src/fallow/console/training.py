"""A training run on the terminal."""

import time
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from fallow.agents.progress import Progress as TrainingProgress
from fallow.console.progress import Lines
from fallow.console.scalars import Scalars, write_progress
from fallow.study.estimate import duration_text

MOST_SHOWN = 12
"""Branches whose own return is on a line."""


class TrainingBar:
    """A bar with frames, return, updates a second and the time left.

    Evaluations are lines above the bar. Without a terminal there are only lines, one
    for each evaluation and at least every half minute.
    """

    def __init__(self, scalars: Sequence[Scalars] = (), quiet: bool = False) -> None:
        self._console = Console()
        self._console.quiet = quiet
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[frames]}"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=self._console,
            disable=quiet or not self._console.is_terminal,
        )
        self._lines = Lines(not self._console.is_terminal)
        self._task = self._bar.add_task("training", total=None, frames="", rate="")
        self._scalars = scalars
        self._start: tuple[int, float] | None = None

    def __enter__(self) -> "TrainingBar":
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()
        for scalars in self._scalars:
            scalars.close()

    def __call__(self, progress: TrainingProgress) -> None:
        if progress.message:
            self._console.print(
                progress.message, highlight=False, soft_wrap=True, markup=False
            )
            return
        self._bar.update(
            self._task,
            completed=progress.frame,
            total=progress.until_frame,
            frames=f"{progress.frame:,}/{progress.until_frame:,} frames",
            rate=f"{progress.updates_per_s:,.0f} updates/s",
        )
        left, evaluation = self._left(progress), progress.evaluation
        if self._lines.due(evaluation is not None):
            where = f"frame {progress.frame:>9,} of {progress.until_frame:,}"
            if evaluation is not None:
                reached = _words(evaluation.returns)
                where = f"frame {evaluation.frame:>9,}  return {reached}"
            self._console.print(
                f"{where}  {progress.updates_per_s:,.0f} updates/s{left}",
                highlight=False,
                soft_wrap=True,
            )
        write_progress(self._scalars, progress, ())

    def _left(self, progress: TrainingProgress) -> str:
        """The time left, where no bar shows it."""
        now = (progress.frame, time.monotonic())
        start = self._start = self._start or now
        if self._console.is_terminal or now[0] <= start[0]:
            return ""
        pace_s = (now[1] - start[1]) / (now[0] - start[0])
        left = (progress.until_frame - progress.frame) * pace_s
        return f", about {duration_text(left)} left" if left else ""


def _words(returns: np.ndarray) -> str:
    """The mean over branches, and of several also their spread and each one's own."""
    means = returns.mean(1)
    if len(means) == 1:
        return f"{means[0]:6.1f}"
    each = " ".join(f"{mean:.0f}" for mean in means[:MOST_SHOWN])
    more = " …" if len(means) > MOST_SHOWN else ""
    return f"{means.mean():6.1f} (sd {means.std(ddof=1):5.1f}: {each}{more})"
