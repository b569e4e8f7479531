"""The selector's evaluation as tables: changes found and decisions made."""

import statistics
from collections.abc import Sequence

from fallow.report.cells import (
    DASH,
    CountCell,
    IntervalCell,
    MeanCell,
    NumberCell,
    ReportTable,
    TableCell,
    TextCell,
)
from fallow.report.names import condition_name
from fallow.report.paper import (
    AGREEMENT,
    ESTIMATED_MAGNITUDE,
    FAILING_AUC,
    LOCATED,
    LOCATION_ERROR,
)
from fallow.report.table_builders import seeds_text
from fallow.study.estimator import (
    FOUND_WITHIN,
    Agreement,
    Change,
    SelectorResult,
    UnreadHistory,
    agreement,
    is_in,
    is_the_papers,
    without_any_one,
)
from fallow.study.statistics import NO_CHANGE

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
    f"Found: located within {FOUND_WITHIN} episodes of the change in the end. Location "
    "error: how many episodes late the nearest one is located (median). Decision "
    "delay: episodes seen after the change before an analysis of the past finds it "
    "(median).",
    "Right: the rule chosen from the whole history is the one with the higher return "
    "of that seed. m_hat and AUC are means over the histories that have them.",
    f"The paper: all {LOCATED[1]} permanent changes at g = 0.5 found, each "
    f"{LOCATION_ERROR} episode late; AUCs of {FAILING_AUC[0]} and {FAILING_AUC[1]} in "
    "its two wrong decisions there.",
)
CUT = "those of the 20k period cut at 314 episodes, as in the paper"
UNCUT = "all histories whole"

Results = Sequence[SelectorResult | UnreadHistory]


def selector_tables(cut: Results, uncut: Results) -> list[ReportTable]:
    """How often the selector is right, with and without the paper's cut; each decision.

    Where the cut changes nothing there is one reading only.
    """
    readings = [(CUT, cut), (UNCUT, uncut)] if _lengths(cut) != _lengths(uncut) else []
    if not readings:
        readings = [(UNCUT, uncut)]
    tables = [selector_table(results, text) for text, results in readings]
    return [*tables, decisions_table([r for _, results in readings for r in results])]


def _lengths(results: Results) -> list[int]:
    return [one.n_episodes for one in results if isinstance(one, SelectorResult)]


def selector_table(results: Results, reading: str = UNCUT) -> ReportTable:
    """One row for each condition, and one for all changes together."""
    bars = agreement(results)
    rows = tuple(_row(results, bar) for bar in bars)
    notes = [*NOTES, *_left_out(results)]
    if any(one.case.setting.condition == NO_CHANGE for one in results):
        notes.append("Histories without a change are not counted in the last row.")
    if is_the_papers(results) and bars[-1].n:
        low, high = without_any_one(bars[-1])
        notes.append(
            f"The paper counts 24 histories and does not say which is missing: of our "
            f"{bars[-1].n}, {low} to {high} of {bars[-1].n - 1} are right when any one "
            "is left out."
        )
    title = f"Retrospective replay decisions; {reading}"
    return ReportTable(title, HEAD, rows, tuple(notes))


DECISIONS_HEAD = (
    "Change",
    "seed",
    "episodes",
    "changes at",
    "located at",
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
    "Episodes: read by the selector, the trunk's included. Changes at: the first "
    "episode of each new regime, as recorded. Located at: the change found nearest to "
    "each of them. False: changes found near none."
)


def decisions_table(results: Results) -> ReportTable:
    """One row for each history that was evaluated."""
    order = [bar.condition for bar in agreement(results)]
    evaluated = [one for one in results if isinstance(one, SelectorResult)]
    evaluated.sort(
        key=lambda one: (
            order.index(one.case.setting.condition),
            one.case.seed,
            one.n_episodes,
        )
    )
    evaluated = list(
        {(id(one.case), one.n_episodes): one for one in evaluated}.values()
    )
    rows = tuple(_decision(one) for one in evaluated)
    title = "Each decision and what turned out better"
    return ReportTable(title, DECISIONS_HEAD, rows, (DECISIONS_NOTE,), n_labels=2)


def _decision(one: SelectorResult) -> tuple[TableCell, ...]:
    put = [None if c.error is None else c.episode + c.error for c in one.changes]
    decision = one.decision
    return (
        TextCell(condition_name(one.case.setting.condition)),
        NumberCell(one.case.seed, 0),
        NumberCell(one.n_episodes, 0),
        _listed([change.episode for change in one.changes]),
        _listed(put),
        NumberCell(one.n_false, 0),
        NumberCell(decision.magnitude.value),
        IntervalCell(decision.interval, 2),
        NumberCell(decision.auc.value),
        TextCell(one.chosen),
        MeanCell(one.advantage, signed=True),
        TextCell(RIGHT[one.right]),
    )


def _listed(episodes: Sequence[int | None]) -> TextCell:
    known = dict.fromkeys(str(one) for one in episodes if one is not None)
    return TextCell(", ".join(known) or DASH)


def _row(
    results: Sequence[SelectorResult | UnreadHistory], bar: Agreement
) -> tuple[TableCell, ...]:
    members = [
        r
        for r in results
        if isinstance(r, SelectorResult)
        and is_in(r.case.setting.condition, bar.condition)
    ]
    changes: list[Change] = [change for one in members for change in one.changes]
    name = "All changes" if bar.condition is None else condition_name(bar.condition)
    paper = AGREEMENT.get(bar.condition, (0, 0))
    alike = bar.condition is not None  # a mean over unlike conditions has no meaning
    magnitude = _mean([one.decision.magnitude.value for one in members])
    auc = _mean([one.decision.auc.value for one in members])
    true_auc = _mean([_true_auc(one) for one in members])
    return (
        TextCell(name),
        NumberCell(len(members), 0),
        CountCell(sum(change.found for change in changes), len(changes)),
        NumberCell(sum(one.n_false for one in members), 0),
        NumberCell(_median([change.error for change in changes]), 1),
        NumberCell(_median([change.delay for change in changes]), 1),
        NumberCell(magnitude if alike else None),
        NumberCell(ESTIMATED_MAGNITUDE.get(bar.condition or "")),
        NumberCell(auc if alike else None),
        NumberCell(true_auc if alike else None),
        CountCell(bar.n_right, bar.n),
        CountCell(*paper),
    )


def _true_auc(result: SelectorResult) -> float | None:
    return None if result.truth is None else result.truth.auc


def _left_out(results: Sequence[SelectorResult | UnreadHistory]) -> list[str]:
    """One note for all histories of a condition that were left out for one reason."""
    seeds: dict[tuple[str, str, str], list[int]] = {}
    for one in results:
        if isinstance(one, UnreadHistory):
            why = "Left out", one.reason
        elif one.right is None:
            without = "no D" if one.advantage is None else "a D of 0"
            why = "Not counted as right or wrong", without
        else:
            continue
        what, reason = why
        name = condition_name(one.case.setting.condition)
        seeds.setdefault((what, name, reason), []).append(one.case.seed)
    return [
        f"{what}: {name}, {seeds_text(left_out)}: {reason}."
        for (what, name, reason), left_out in seeds.items()
    ]


def _median(values: Sequence[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(statistics.median(known)) if known else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None
