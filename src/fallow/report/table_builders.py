"""Builds the two kinds of table: returns of each rule, and paired differences."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fallow.report.cells import (
    CountCell,
    IntervalCell,
    MeanCell,
    NumberCell,
    ReportTable,
    TableCell,
    TextCell,
    digits_for,
)
from fallow.report.names import condition_name, rule_name
from fallow.report.paper import Published
from fallow.study.statistics import (
    BASELINE,
    NO_CHANGE,
    Returns,
    Setting,
    difference,
    difference_less_none,
)
from fallow.study.summary import Missing, Summary

MOST_NOTES = 8
"""Lines on missing branches below a table; the rest is counted."""
AUC = "AUC"
OURS, PAPER, WHOSE = "ours", "the paper", "whose"


@dataclass(frozen=True)
class Entry:
    """One row of returns: its labels, our numbers and the paper's, by rule."""

    labels: tuple[str, ...]
    ours: dict[str, Summary]
    paper: dict[str, Published] = field(default_factory=dict)
    auc: float | None = None
    paper_auc: float | None = None


@dataclass(frozen=True)
class Line:
    """One row of a paired difference: its labels, setting and the two rules."""

    labels: tuple[str, ...]
    setting: Setting
    rule: str
    against: str = BASELINE
    published: Published | None = None
    extra: tuple[TableCell, ...] = ()
    """Cells between the labels and our value."""


def values_table(
    title: str,
    head: Sequence[str],
    rules: dict[str, str],
    entries: Sequence[Entry],
    notes: Sequence[str] = (),
    signed: bool = False,
) -> ReportTable:
    """A column for each rule, `rules` naming them; the paper's row below ours."""
    summaries = [summary for entry in entries for summary in entry.ours.values()]
    digits = digits_for([summary.mean for summary in summaries])
    with_paper = any(entry.paper for entry in entries)
    with_auc = any(e.auc is not None or e.paper_auc is not None for e in entries)

    def row(
        labels: Sequence[TextCell],
        whose: str,
        auc: float | None,
        values: Iterable[TableCell],
    ) -> tuple[TableCell, ...]:
        names = (*labels, TextCell(whose)) if with_paper else labels
        return *names, *((NumberCell(auc),) if with_auc else ()), *values

    rows = []
    for entry in entries:
        ours = [_estimate(entry.ours.get(rule), digits, signed) for rule in rules]
        labels = [TextCell(label) for label in entry.labels]
        rows.append(row(labels, OURS, entry.auc, ours))
        if entry.paper:
            paper = [_published(entry.paper.get(r), digits, signed) for r in rules]
            labels = [TextCell(label, blank=True) for label in entry.labels]
            rows.append(row(labels, PAPER, entry.paper_auc, paper))
    columns = (*head, *((WHOSE,) if with_paper else ()))
    return ReportTable(
        title=title,
        head=(*columns, *((AUC,) if with_auc else ()), *rules.values()),
        rows=tuple(rows),
        notes=(
            *notes,
            *missing_notes(m for summary in summaries for m in summary.missing),
        ),
        n_labels=len(columns),
    )


def differences_table(
    title: str,
    head: Sequence[str],
    returns: Returns,
    lines: Sequence[Line],
    notes: Sequence[str] = (),
    extra_head: Sequence[str] = (),
) -> ReportTable:
    """A row for each paired difference, with its intervals and the paper's value."""
    found = [difference(returns, x.setting, x.rule, x.against) for x in lines]
    digits = digits_for([summary.mean for summary in found])
    with_paper = any(line.published for line in lines)
    less_none = [_less_none(returns, line) for line in lines]
    with_less_none = any(summary is not None and summary.n for summary in less_none)
    rows = []
    for line, gap, less in zip(lines, found, less_none, strict=True):
        name = f"{rule_name(line.rule)} - {rule_name(line.against)}"
        cells: list[TableCell] = [TextCell(text) for text in (*line.labels, name)]
        cells += [*line.extra, MeanCell.of(gap, digits, signed=True)]
        if with_paper:
            cells.append(_published(line.published, digits, signed=True))
            paper_sign = line.published.sign if line.published else 0
            cells.append(TextCell(sign_text(gap.mean, paper_sign, digits)))
        cells += [
            IntervalCell(gap.interval, digits),
            IntervalCell(gap.bootstrap, digits),
        ]
        cells.append(CountCell(gap.n_positive, gap.n))
        if with_less_none:
            cells.append(_estimate(less, digits, signed=True))
        rows.append(tuple(cells))
    paper_head = (PAPER, "sign") if with_paper else ()
    less_none_head = ("less that of no change",) if with_less_none else ()
    # a rule that was never run without a change is not missing there
    compared = [summary for summary in less_none if summary is not None and summary.n]
    missing = [m for summary in (*found, *compared) for m in summary.missing]
    return ReportTable(
        title=title,
        head=(
            *head,
            "Difference",
            *extra_head,
            OURS,
            *paper_head,
            "t, 95 %",
            "bootstrap, 95 %",
            "seeds above 0",
            *less_none_head,
        ),
        rows=tuple(rows),
        notes=(*notes, *_notes(found, with_paper), *missing_notes(missing)),
        n_labels=len(head) + 1,
    )


def sign_text(ours: float | None, other: float | None, digits: int) -> str:
    """Whether two differences have one sign; one that is printed as 0 has none."""
    both = round(ours or 0, digits) * round(other or 0, digits)
    return "agrees" if both > 0 else "differs" if both else ""


def missing_notes(missing: Iterable[Missing]) -> list[str]:
    """Sentences on branches that are in no mean, grouped by reason."""
    groups: dict[tuple[str, str, str], list[int]] = {}
    for one in dict.fromkeys(missing):
        key = (one.condition, one.rule, one.reason)
        groups.setdefault(key, []).append(one.seed)
    together: dict[tuple[str, str, str], list[str]] = {}
    for (condition, rule, reason), seeds in groups.items():
        together.setdefault((condition, seeds_text(seeds), reason), []).append(rule)
    notes = [
        f"Left out: {condition_name(condition)}, {_joined(rules)}, {seeds}: {reason}."
        for (condition, seeds, reason), rules in together.items()
    ]
    if len(notes) > MOST_NOTES:
        notes[MOST_NOTES:] = [f"And {len(notes) - MOST_NOTES} more like these."]
    return notes


def _joined(rules: Iterable[str]) -> str:
    return ", ".join(rule_name(rule) for rule in rules)


def grid_text(frames: Sequence[int]) -> str:
    """`the 9 evaluations at branch frames 50,000, 60,000, …, 130,000`."""
    if len(frames) == 1:
        return f"the evaluation at branch frame {frames[0]:,}"
    shown = [f"{frame:,}" for frame in frames]
    if len({b - a for a, b in itertools.pairwise(frames)}) == 1 and len(frames) > 3:
        shown = [*shown[:2], "…", shown[-1]]
    return f"the {len(frames)} evaluations at branch frames {', '.join(shown)}"


def seeds_text(seeds: Iterable[int]) -> str:
    """`seed 3`, `seeds 0 to 4`, `seeds 0, 2`."""
    ordered = sorted(set(seeds))
    steps = {b - a for a, b in itertools.pairwise(ordered)}
    if len(ordered) == 1:
        return f"seed {ordered[0]}"
    if len(ordered) > 2 and steps == {1}:
        return f"seeds {ordered[0]} to {ordered[-1]}"
    return f"seeds {', '.join(str(seed) for seed in ordered)}"


def _notes(found: Sequence[Summary], with_paper: bool) -> list[str]:
    notes = []
    if any(summary.n == 1 for summary in found):
        notes.append("One seed: no standard error and no interval.")
    if any(summary.n > 1 for summary in found):
        notes.append(
            "Differences are paired by seed and trunk. The percentile bootstrap is the "
            "paper's; with five seeds it covers 84 %, so rely on the t interval."
        )
    if with_paper:
        notes.append(
            "Signs are compared even where an interval contains 0. Differences of the "
            "paper without s.e. are differences of its printed means."
        )
    return notes


def _less_none(returns: Returns, line: Line) -> Summary | None:
    setting = line.setting
    if setting.condition == NO_CHANGE or not returns.rules(setting.without_change):
        return None
    return difference_less_none(returns, setting, line.rule, line.against)


def _estimate(summary: Summary | None, digits: int, signed: bool) -> MeanCell:
    return MeanCell(None) if summary is None else MeanCell.of(summary, digits, signed)


def _published(printed: Published | None, digits: int, signed: bool) -> MeanCell:
    if printed is None:
        return MeanCell(None)
    return MeanCell(
        printed.mean, printed.se, digits=digits, signed=signed, sign=printed.sign
    )
