"""A study on the terminal: its progress, and the time left."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from fallow.agents.clock import shares
from fallow.console.progress import Lines
from fallow.console.scalars import Scalars, write_progress
from fallow.study.estimate import duration_text
from fallow.study.fleets import PlannedFleet
from fallow.study.status import FleetStatus, Status, status_of

if TYPE_CHECKING:  # it imports jax, and the status of a study must not
    from fallow.agents.progress import EvaluationResult
    from fallow.study.runner import Event

LOOK_S = 1.0
"""Between two reads of the study's status."""
LEAST_SHARE = 0.005
"""Smallest share of a stage's time that is shown."""


class StudyView:
    """Two bars, the study and the fleet at work; evaluations are lines above them.

    Without a terminal there are only lines with the time left, one for each evaluation
    and at least every half minute.
    """

    def __init__(
        self, folder: Path, quiet: bool = False, scalars: Sequence[Scalars] = ()
    ) -> None:
        self._folder = folder
        self._scalars = scalars
        self._console = Console()
        self._console.quiet = quiet
        self._looked_s = 0.0
        self._lines = Lines(not self._console.is_terminal)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f} %"),
            TextColumn("{task.fields[note]}"),
            console=self._console,
            disable=quiet or not self._console.is_terminal,
        )
        self._overall = self._bars.add_task("study", total=1.0, note="starting")
        self._fleet = self._bars.add_task("fleet", total=1.0, note="")

    def __enter__(self) -> "StudyView":
        self._bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is None:
            for bar in (self._overall, self._fleet):
                self._bars.update(bar, completed=1.0, note="done")
        self._bars.stop()
        for scalars in self._scalars:
            scalars.close()

    def __call__(self, event: "Event") -> None:
        progress = event.progress
        if progress.message:
            self._console.print(
                progress.message, highlight=False, soft_wrap=True, markup=False
            )
            return
        if self._scalars:
            write_progress(self._scalars, progress, _names(event))
        if self._lines.due(progress.evaluation is not None):
            self._print_line(event, progress.evaluation)
        if time.monotonic() - self._looked_s > LOOK_S:
            self._looked_s = time.monotonic()
            self._draw(event, status_of(self._folder))

    def _print_line(
        self, event: "Event", evaluation: "EvaluationResult | None"
    ) -> None:
        progress, fleet = event.progress, event.fleet
        which = f"{fleet.trunks[0].task} {_seeds(fleet)}"
        frame, reached = progress.frame, ""
        if evaluation is not None:
            frame = evaluation.frame
            reached = f"mean return {evaluation.returns.mean():6.1f}  "
        left = "" if self._console.is_terminal else _left(status_of(self._folder))
        self._console.print(
            f"{which}  {event.stage:8}  frame {frame:>9,} of "
            f"{progress.until_frame:,}  {reached}"
            f"{progress.updates_per_s:,.0f} updates/s{left}",
            highlight=False,
            soft_wrap=True,
        )

    def _draw(self, event: "Event", status: Status) -> None:
        share = status.updates_done / max(status.updates_total, 1)
        note = f"{status.n_branches('done')} of {len(status.plan.branches())} branches"
        self._bars.update(self._overall, completed=share, note=note + _left(status))
        progress = event.progress
        share = progress.frame / max(progress.until_frame, 1)
        note = f"{event.stage}, {progress.updates_per_s:,.0f} updates/s"
        self._bars.update(self._fleet, completed=share, note=note)


def _names(event: "Event") -> list[str]:
    """Of the branches, or of the trunks, in TensorBoard and the like."""
    fleet = event.fleet
    if event.stage == "trunks":
        return [f"trunk/set {one.trunk_set}, seed {one.seed}" for one in fleet.trunks]
    if event.stage == "prefixes":
        return [f"prefix/{one.rule}/seed {one.seed}" for one in fleet.prefixes]
    return [f"{one.condition}/{one.rule}/seed {one.seed}" for one in fleet.branches]


def show_status(status: Status, console: Console) -> None:
    """Show what is done, running and left, and the time left."""
    keep_lines = not console.is_terminal  # a terminal's lines break between words
    total = len(status.plan.branches())
    done = status.n_branches("done")
    at_work = status.n_branches("running")
    begun = status.n_branches("stopped")
    left = status.n_branches("left")
    failed = status.n_branches("failed")
    console.print(
        f"study {status.plan.name}: {done} of {total} branches done, "
        f"{at_work} running, {begun} stopped, {left} left"
        + (f", {failed} failed" if failed else ""),
        soft_wrap=keep_lines,
    )
    for fleet in status.fleets:
        console.print(_line(fleet), soft_wrap=keep_lines)
        for stage, seconds in fleet.spent_s.items():
            console.print(_spent(stage, seconds), soft_wrap=keep_lines)
    console.print(_time_left(status), soft_wrap=keep_lines)


def _left(status: Status) -> str:
    """`, about 3 min left`, or nothing where no pace is known."""
    left = status.seconds_left
    return "" if left is None else f", about {duration_text(left)} left"


def _seeds(fleet: PlannedFleet) -> str:
    seeds = list(dict.fromkeys(str(trunk.seed) for trunk in fleet.trunks))
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}"


def _line(status: FleetStatus) -> str:
    fleet = status.planned
    state = f"{status.state}, {status.stage}" if status.stage else status.state
    frame = ""
    if status.until_frame:
        frame = f"  frame {status.frame:,} of {status.until_frame:,}"
    what = f"{fleet.trunks[0].agent} on {fleet.trunks[0].task}, {_seeds(fleet)}"
    return f"  {fleet.id}  {what}: {len(fleet.branches)} branches  {state}{frame}"


def _spent(stage: str, seconds: Mapping[str, float]) -> str:
    """How the time of a stage was spent, in its last session."""
    total_s = seconds["total"]
    named = [
        f"{name} {share:.0%}"
        for name, share in shares(seconds, total_s).items()
        if share >= LEAST_SHARE
    ]
    return f"    {stage} {duration_text(total_s)}: {', '.join(named)}"


def _time_left(status: Status) -> str:
    if status.is_done:
        return "complete"
    share = f"{status.updates_done:,} of {status.updates_total:,} updates made"
    if status.seconds_left is None:
        return f"{share}; the pace is not known yet"
    pace = f"at {status.updates_per_s:,.0f} updates/s"
    tail = f"{share}; about {duration_text(status.seconds_left)} left {pace}"
    return tail if status.is_running else f"{tail} once it is resumed"
