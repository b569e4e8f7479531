"""A diagnosis on the terminal: a table and a sentence."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from fallow.diagnosis.phrases import CAVEAT, advice, interval, notes
from fallow.diagnosis.pipeline import Diagnosis, Failure
from fallow.views.numbers import listed, number


def show(results: Sequence[Diagnosis | Failure], console: Console) -> None:
    """One log in full, several as one table of decisions."""
    only = results[0]
    if len(results) == 1 and isinstance(only, Diagnosis):
        console.print(in_full(only))
    else:
        console.print(overview(results))


def in_full(diagnosis: Diagnosis) -> RenderableType:
    """What was read, the segments, both gates, and the advice."""
    log, decision = diagnosis.log, diagnosis.decision
    step = "" if log.control_step_s is None else f", {log.control_step_s:.4g} s a step"
    head = (
        f"{log.source}: {log.n_episodes} episodes, {log.n_transitions.sum():,} "
        f"transitions, {len(log.actuators)} actuators{step} ({log.format})"
    )
    lines = [Text(head), *(Text(f"note: {note}") for note in notes(diagnosis))]
    caveat = [Text(CAVEAT, style="dim")] if decision.change_points else []
    return Group(
        *lines,
        _segments(diagnosis),
        _gates(diagnosis),
        Text(
            f"series: {decision.response.variant}; scale: {decision.scale}", style="dim"
        ),
        Text(advice(diagnosis), style="bold"),
        *caveat,
    )


def overview(results: Sequence[Diagnosis | Failure]) -> RenderableType:
    """One row for each log."""
    table = Table(box=None, pad_edge=False)
    for name in ("log", "decision", "AUC", "m_hat", "interval", "changes at"):
        table.add_column(name, overflow="fold")
    for result in results:
        if isinstance(result, Failure):
            table.add_row(escape(result.path.name), "bad input", "", "", "", "")
            continue
        decision = result.decision
        table.add_row(
            escape(Path(result.log.source).name),
            decision.word,
            number(decision.auc.value),
            number(decision.magnitude.value),
            interval(decision),
            listed(decision.change_points),
        )
    failures = [r for r in results if isinstance(r, Failure)]
    return Group(table, *(Text(f"bad input: {f.reason}") for f in failures))


def _segments(diagnosis: Diagnosis) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("episodes", "response K", "z", "data"):
        table.add_column(name, justify="right")
    segments = diagnosis.decision.segments
    for segment in segments:
        table.add_row(
            f"{segment.start} to {segment.stop - 1}",
            f"{segment.response:#.3g}",
            "–" if segment is segments[-1] else f"{segment.z:.1f}",
            "stale" if segment.stale else "fresh",
        )
    return table


def _gates(diagnosis: Diagnosis) -> Table:
    decision, truth = diagnosis.decision, diagnosis.truth
    table = Table(box=None, pad_edge=False)
    for name in ("gate", "estimate", "95 % interval", "threshold", "says"):
        table.add_column(name)
    if truth is not None:
        table.add_column("truth")
    rows = (
        (decision.auc, "", truth.auc if truth else None),
        (decision.magnitude, interval(decision), truth.magnitude if truth else None),
    )
    for gate, within, true in rows:
        says = "discard" if gate.passed else "keep"
        row = [gate.name, number(gate.value), within, f"{gate.threshold:.2f}", says]
        table.add_row(*row, *([] if truth is None else [number(true)]))
    row = ["changes at", listed(decision.change_points), "", "", ""]
    table.add_row(*row, *([] if truth is None else [listed(truth.change_points)]))
    return table
