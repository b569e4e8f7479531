"""A training run on the terminal, and in TensorBoard's event files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from fallow.agents.progress import Progress as TrainingProgress
from fallow.core.extras import load

MOST_SHOWN = 12
"""Branches whose own return is on a line."""


class TrainingBar:
    """A bar with frames, return, updates a second and the time left.

    Evaluations are lines above the bar; without a terminal there are only these.
    """

    def __init__(self, events: Path | None = None, quiet: bool = False) -> None:
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
        self._line = self._bar.add_task("training", total=None, frames="", rate="")
        self._events = event_writer(events) if events else None

    def __enter__(self) -> "TrainingBar":
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()
        if self._events is not None:
            self._events.close()

    def __call__(self, progress: TrainingProgress) -> None:
        if progress.message:
            self._console.print(progress.message, markup=False)
        self._bar.update(
            self._line,
            completed=progress.frame,
            total=progress.until_frame,
            frames=f"{progress.frame:,}/{progress.until_frame:,} frames",
            rate=f"{progress.updates_per_s:,.0f} updates/s",
        )
        evaluation = progress.evaluation
        if evaluation is not None:
            self._console.print(
                f"frame {evaluation.frame:>9,}  return {_words(evaluation.returns)}  "
                f"{progress.updates_per_s:,.0f} updates/s",
                highlight=False,
            )
        if self._events is not None:
            self._write_events(self._events, progress)

    def _write_events(self, events: Any, progress: TrainingProgress) -> None:
        _write_numbers(events, progress.metrics, progress.frame)
        if progress.evaluation is not None:
            frame, returns = progress.evaluation
            _write_numbers(events, {"evaluation/return": returns.mean(1)}, frame)


def _write_numbers(events: Any, numbers: Mapping[str, Any], frame: int) -> None:
    """Those of each branch, by name."""
    for name, values in numbers.items():
        for index, value in enumerate(np.atleast_1d(values)):
            events.add_scalar(f"{name}/{index:03d}", float(value), frame)


def event_writer(folder: Path) -> Any:
    """A writer of TensorBoard's event files."""
    library = load("tensorboardX", "tensorboard", "--tensorboard")
    return library.SummaryWriter(str(folder))


def _words(returns: np.ndarray) -> str:
    """The mean over branches, and of several also their spread and each one's own."""
    means = returns.mean(1)
    if len(means) == 1:
        return f"{means[0]:6.1f}"
    each = " ".join(f"{mean:.0f}" for mean in means[:MOST_SHOWN])
    more = " …" if len(means) > MOST_SHOWN else ""
    return f"{means.mean():6.1f} (sd {means.std(ddof=1):5.1f}: {each}{more})"
