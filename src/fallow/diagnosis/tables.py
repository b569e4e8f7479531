"""The tables of a diagnosis as text, for the terminal, the page and notebooks."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fallow.diagnosis.changes import relative_change
from fallow.diagnosis.phrases import interval, lost
from fallow.diagnosis.pipeline import Diagnosis, Failure
from fallow.diagnosis.recommendation import recommendation, state
from fallow.diagnosis.regime_phrases import spans_text
from fallow.diagnosis.text_table import TextTable
from fallow.views.numbers import listed, number


def stretches_table(diagnosis: Diagnosis) -> TextTable:
    """The episodes between abrupt changes, and what changed at the start of each."""
    rows = tuple(
        (
            f"{stretch.start} to {stretch.stop - 1}",
            _response(stretch.response),
            "stale" if stretch.stale else "as now",
            _jump(diagnosis, index),
        )
        for index, stretch in enumerate(diagnosis.stretches)
    )
    return TextTable(("episodes", "mean K", "data", "largest change"), rows)


def joints_table(diagnosis: Diagnosis) -> TextTable:
    """Every actuator before and after its last abrupt change."""
    names = [f"{joint.index} {joint.name}" for joint in diagnosis.joints]
    if not diagnosis.changes:
        now = [_response(joint.now) for joint in diagnosis.joints]
        return TextTable(("actuator", "K"), tuple(zip(names, now, strict=True)))
    heads = ("actuator", "response lost (95 % of resamples)", "", "K before", "K now")
    rows = tuple(
        (
            name,
            lost(joint),
            state(joint),
            _response(joint.before),
            _response(joint.now),
        )
        for name, joint in zip(names, diagnosis.joints, strict=True)
    )
    return TextTable(heads, rows)


def gates_table(diagnosis: Diagnosis) -> TextTable:
    """The two gates of the paper's selector, with the truth where the log has it."""
    decision, truth = diagnosis.decision, diagnosis.truth
    heads: tuple[str, ...] = ("the paper's selector", "says")
    heads += ("estimate (95 % of resamples)", "gate")
    rows: list[tuple[str, ...]] = [
        (
            gate.name,
            "discard" if gate.passed else "keep",
            " ".join(filter(None, (number(gate.value), within))),
            f"{gate.threshold:.2f}",
        )
        for gate, within in (
            (decision.auc, ""),
            (decision.magnitude, interval(decision)),
        )
    ]
    rows.append(("both", decision.word, "", ""))
    if truth is not None:
        changes = f"changes at {listed(truth.change_points, 6)}"
        true = (
            number(truth.auc),
            number(truth.magnitude),
            changes if truth.change_points else "no change",
        )
        rows = [(*row, cell) for row, cell in zip(rows, true, strict=True)]
        heads += ("truth",)
    return TextTable(heads, tuple(rows))


def segments_table(diagnosis: Diagnosis) -> TextTable:
    """The segments that the selector rests on."""
    segments = diagnosis.decision.segments
    rows = tuple(
        (
            f"{segment.start} to {segment.stop - 1}",
            _response(segment.response),
            "–" if segment is segments[-1] else f"{segment.z:.1f}",
            "stale" if segment.stale else "fresh",
        )
        for segment in segments
    )
    return TextTable(("episodes", "mean K", "z", "data"), rows)


def overview_table(results: Sequence[Diagnosis | Failure]) -> TextTable:
    """One row for each log."""
    heads = tuple(["log", "advice", "keep episodes", "changes at", "actuators changed"])
    heads += ("AUC", "m_hat")
    rows = []
    for result in results:
        if isinstance(result, Failure):
            rows.append((result.name, "bad input", *[""] * (len(heads) - 1)))
            continue
        decision = result.decision
        rows.append(
            (
                Path(result.log.source).name,
                recommendation(result),
                _kept(result),
                listed(tuple(change.episode for change in result.changes), 4),
                listed(tuple(j.index for j in result.joints if j.changed), 6),
                number(decision.auc.value),
                number(decision.magnitude.value),
                decision.word,
            )
        )
    return TextTable((*heads, "the paper's selector"), tuple(rows))


def _kept(diagnosis: Diagnosis) -> str:
    """The episodes of the regime in force, by the tracker."""
    found = diagnosis.regimes
    if found is None or not found.is_ready:
        return "–"
    return spans_text(found.keep) if found.discards else "all"


def _response(k: float | None) -> str:
    return "–" if k is None else f"{k:#.3g}"


def _jump(diagnosis: Diagnosis, index: int) -> str:
    """`-50 % in right_hip, 5 others`: what changed where a stretch begins."""
    if index == 0:
        return ""
    before, after = diagnosis.stretches[index - 1 : index + 1]
    changed = diagnosis.changes[index - 1].changed
    effect = np.where(changed, relative_change(before.joint, after.joint), 0.0)
    largest = int(np.abs(effect).argmax())
    n_others = int(changed.sum()) - 1
    rest = f", {n_others} other{'s' if n_others > 1 else ''}" if n_others else ""
    name = diagnosis.log.actuators[largest]
    return f"{100 * effect[largest]:+.0f} % in {name}{rest}"
