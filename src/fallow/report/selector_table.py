"""The estimator's evaluation as a table: what it found, and whether it chose well."""

import statistics
from collections.abc import Sequence

from fallow.report.cells import (
    DASH,
    Cell,
    Count,
    Estimate,
    Number,
    Span,
    Table,
    Words,
)
from fallow.report.names import condition_name
from fallow.report.paper import AGREEMENT, ESTIMATED_MAGNITUDE
from fallow.study.estimator import (
    FOUND_WITHIN,
    Agreement,
    Change,
    Judgement,
    Unjudged,
    agreement,
)

HEAD = (
    "Change",
    "histories",
    "changes found",
    "false changes",
    "location error, episodes",
    "decision delay, episodes",
    "m_hat",
    "m_hat, the paper",
    "AUC",
    "true AUC",
    "right",
    "right, the paper",
)
NOTES = (
    f"Found: put within {FOUND_WITHIN} episodes of the change in the end. Location "
    "error: how many episodes late the nearest one is put (median). Decision delay: "
    "episodes seen after the change before an analysis of the past finds it (median).",
    "Right: the rule chosen from the whole history is the one with the higher return "
    "of that seed. m_hat and AUC are means over the histories that have them.",
)


def selector_table(results: Sequence[Judgement | Unjudged]) -> Table:
    """One row for each condition, and one for all histories together."""
    rows = tuple(_row(results, bar) for bar in agreement(results))
    return Table(
        "Retrospective replay decisions", HEAD, rows, (*NOTES, *_left_out(results))
    )


DECISIONS_HEAD = (
    "Change",
    "seed",
    "changes at",
    "put at",
    "false",
    "m_hat",
    "m_hat, 95 %",
    "AUC",
    "chosen",
    "Recency - Passive",
    "right",
)
RIGHT = {True: "yes", False: "no", None: DASH}
DECISIONS_NOTE = (
    "Changes at: the first episode of each new regime, as recorded. Put at: the change "
    "found nearest to each of them. False: changes found near none."
)


def decisions_table(results: Sequence[Judgement | Unjudged]) -> Table:
    """One row for each history that was judged."""
    order = [bar.condition for bar in agreement(results)]
    judged = [one for one in results if isinstance(one, Judgement)]
    judged.sort(
        key=lambda one: (order.index(one.case.setting.condition), one.case.seed)
    )
    rows = tuple(_decision(one) for one in judged)
    title = "Each decision and what turned out better"
    return Table(title, DECISIONS_HEAD, rows, (DECISIONS_NOTE,), n_labels=2)


def _decision(one: Judgement) -> tuple[Cell, ...]:
    put = [None if c.error is None else c.episode + c.error for c in one.changes]
    decision = one.decision
    return (
        Words(condition_name(one.case.setting.condition)),
        Number(one.case.seed, 0),
        _listed([change.episode for change in one.changes]),
        _listed(put),
        Number(one.n_false, 0),
        Number(decision.magnitude.value),
        Span(decision.interval, 2),
        Number(decision.auc.value),
        Words(one.chosen),
        Estimate(one.advantage, signed=True),
        Words(RIGHT[one.right]),
    )


def _listed(episodes: Sequence[int | None]) -> Words:
    known = dict.fromkeys(str(own) for own in episodes if own is not None)
    return Words(", ".join(known) or DASH)


def _row(results: Sequence[Judgement | Unjudged], bar: Agreement) -> tuple[Cell, ...]:
    own = [
        r
        for r in results
        if isinstance(r, Judgement)
        and bar.condition in (None, r.case.setting.condition)
    ]
    changes: list[Change] = [change for one in own for change in one.changes]
    name = "All" if bar.condition is None else condition_name(bar.condition)
    paper = AGREEMENT.get(bar.condition, (0, 0))
    alike = bar.condition is not None  # means over unlike conditions say nothing
    return (
        Words(name),
        Number(len(own), 0),
        Count(sum(change.found for change in changes), len(changes)),
        Number(sum(one.n_false for one in own), 0),
        Number(_median([change.error for change in changes]), 1),
        Number(_median([change.delay for change in changes]), 1),
        Number(_mean([one.decision.magnitude.value for one in own]) if alike else None),
        Number(ESTIMATED_MAGNITUDE.get(bar.condition or "")),
        Number(_mean([one.decision.auc.value for one in own]) if alike else None),
        Number(_mean([_true_auc(one) for one in own]) if alike else None),
        Count(bar.n_right, bar.n),
        Count(*paper),
    )


def _true_auc(judgement: Judgement) -> float | None:
    return None if judgement.truth is None else judgement.truth.auc


def _left_out(results: Sequence[Judgement | Unjudged]) -> list[str]:
    notes = []
    for one in results:
        where = f"{one.case.setting.condition}, seed {one.case.seed}"
        if isinstance(one, Unjudged):
            notes.append(f"Left out: {where}: {one.reason}.")
        elif one.right is None:
            reason = "no D" if one.advantage is None else "a D of 0"
            notes.append(f"Not counted as right or wrong: {where}: {reason}.")
    return notes


def _median(values: Sequence[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(statistics.median(known)) if known else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None
