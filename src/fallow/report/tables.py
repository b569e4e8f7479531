"""The tables of a study: in the paper's layout beside its numbers, or a plain one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fallow.core.results import ResultRow
from fallow.dynamics.schedules import SHIFT_FRAME
from fallow.report.cells import MeanCell, ReportTable
from fallow.report.names import (
    baseline_of,
    condition_name,
    rule_name,
    rule_order,
    setting_order,
    where,
)
from fallow.report.paper import TABLES, PaperRow, PaperTable
from fallow.report.sweep_tables import SWEEPS, sweep_tables
from fallow.report.table_builders import (
    Entry,
    Line,
    differences_table,
    grid_text,
    seeds_text,
    values_table,
)
from fallow.study.named import held_study, paper_text
from fallow.study.results import StudyResults
from fallow.study.statistics import (
    BASELINE,
    Returns,
    Setting,
    difference,
    mean_return,
    of_regime,
    returns_of,
    setting_auc,
)


def tables_of(
    rows: Sequence[ResultRow],
    name: str = "",
    shift_frame: int = SHIFT_FRAME,
    seeds: Sequence[int] | None = None,
    n_evaluations: int | None = None,
    trunk_sets: Mapping[str, str] | None = None,
) -> list[ReportTable]:
    """All tables of a study from its rows; `name` is the study's.

    `table1` to `table3` and the sweeps come in the paper's layout, any other as one
    table of conditions and rules for each task and agent. The other arguments are those
    of `returns_of`.
    """
    returns = returns_of(rows, shift_frame, seeds, n_evaluations, trunk_sets)
    return _tables_of_returns(returns, name)


def study_tables(study: StudyResults) -> list[ReportTable]:
    """The tables of a study, in the paper's layout where the study holds one."""
    if not study.rows:
        return []
    name = study.name if study.plan is None else held_study(study.plan)
    return _tables_of_returns(study.returns, name)


def _tables_of_returns(returns: Returns, name: str) -> list[ReportTable]:
    made: list[ReportTable] = []
    if name in TABLES:
        made = paper_tables(returns, TABLES[name])
    elif name in SWEEPS:
        made = sweep_tables(returns, name)
    return made or general_tables(returns)


def paper_tables(returns: Returns, layout: PaperTable) -> list[ReportTable]:
    """One of the paper's tables, once for each preset and set of trunks."""
    in_paper = {(place.task, place.agent) for place in layout.places}
    sets = sorted(
        {
            (setting.preset, setting.trunk_set)
            for setting in returns.settings
            if (setting.task, setting.agent) in in_paper
        }
    )
    return [
        table
        for preset, trunk_set in sets
        for table in _paper_set(returns, layout, preset, trunk_set)
    ]


def general_tables(returns: Returns) -> list[ReportTable]:
    """Conditions and rules of each task, agent, preset and set of trunks."""
    groups: dict[str, list[Setting]] = {}
    for setting in sorted(returns.settings, key=setting_order):
        groups.setdefault(where(setting), []).append(setting)
    tables = []
    for title, settings in groups.items():
        places = {
            PaperRow(
                (condition_name(one.condition),), one.task, one.agent, one.condition
            ): one
            for one in settings
        }
        layout = PaperTable("", title, ("Change",), tuple(places), ())
        tables += _tables(returns, layout, places)
    return tables


def _paper_set(
    returns: Returns, layout: PaperTable, preset: str, trunk_set: str
) -> list[ReportTable]:
    layout = _with_ours(returns, layout, preset, trunk_set)
    here = [
        s for s in returns.settings if (s.preset, s.trunk_set) == (preset, trunk_set)
    ]
    places = {
        place: _reading(place, here)
        or Setting(place.task, place.agent, preset, place.condition, trunk_set)
        for place in layout.places
    }
    trunks = f", trunks {trunk_set}" if trunk_set else ""
    title = f"{layout.name}: {layout.title}; preset {preset}{trunks}"
    return _tables(returns, replace(layout, title=title), places)


def _reading(place: PaperRow, settings: Sequence[Setting]) -> Setting | None:
    """Our setting of one of the paper's rows, in whatever reading we have it."""
    found = [
        one
        for one in settings
        if (one.task, one.agent) == (place.task, place.agent)
        and place.condition in (one.condition, paper_text(one.condition))
    ]
    exact = [one for one in found if one.condition == place.condition]
    return next(iter(exact or sorted(found, key=setting_order)), None)


def _labels(place: PaperRow, setting: Setting) -> tuple[str, ...]:
    """The labels of a row; a reading that is not the default is named."""
    if place.condition == setting.condition:
        return place.labels
    return (*place.labels[:-1], condition_name(setting.condition))


def _with_ours(
    returns: Returns, layout: PaperTable, preset: str, trunk_set: str
) -> PaperTable:
    """The layout with conditions of ours that the paper's table does not have."""
    here = [
        s for s in returns.settings if (s.preset, s.trunk_set) == (preset, trunk_set)
    ]
    read = {_reading(place, here) for place in layout.places}
    firsts = {
        (place.task, place.agent): place.labels[:-1] for place in layout.places[::-1]
    }
    more = [
        PaperRow(
            (*firsts[one.task, one.agent], condition_name(one.condition)),
            one.task,
            one.agent,
            one.condition,
        )
        for one in sorted(here, key=setting_order)
        if (one.task, one.agent) in firsts and one not in read
    ]
    return replace(layout, places=(*layout.places, *more))


def _tables(
    returns: Returns, layout: PaperTable, places: Mapping[PaperRow, Setting]
) -> list[ReportTable]:
    """Returns, paired differences, and returns by regime."""
    columns = _columns(returns, layout, places)
    notes = _made_of(returns, tuple(places.values()))
    notes += _remarks(returns, layout, places, columns)
    first = _gains if layout.differences and not layout.returns else _reached
    made = [first(returns, layout, places, columns, notes)]
    lines = _lines(returns, layout, places, columns)
    if lines:
        text = f"Paired differences. {layout.title}"
        made.append(differences_table(text, layout.head, returns, lines, notes))
    return [*made, *_by_regime(returns, layout, places, columns)]


Columns = dict[str, str]
"""Our rules, in their order, and what the paper's table calls each."""


def _columns(
    returns: Returns, layout: PaperTable, places: Mapping[PaperRow, Setting]
) -> Columns:
    """The paper's rules in our reading, then those that it does not have."""
    ours = {rule for setting in places.values() for rule in returns.rules(setting)}
    found: Columns = {}
    for rule in layout.rules:
        alike = [r for r in ours - {*found} if paper_text(r) == rule]
        found[rule if rule in ours or not alike else min(alike, key=rule_order)] = rule
    return found | {rule: rule for rule in sorted(ours - {*found}, key=rule_order)}


def _reached(
    returns: Returns,
    layout: PaperTable,
    places: Mapping[PaperRow, Setting],
    columns: Columns,
    notes: Sequence[str],
) -> ReportTable:
    names = {rule: rule_name(rule) for rule in columns}
    entries = [
        Entry(
            labels=_labels(place, setting),
            ours={
                rule: mean_return(returns, setting, rule)
                for rule in _expected(returns, layout, place, setting, columns)
            },
            paper={
                rule: layout.returns[place, paper]
                for rule, paper in columns.items()
                if (place, paper) in layout.returns
            },
            auc=setting_auc(returns, setting),
            paper_auc=layout.auc.get(place),
        )
        for place, setting in places.items()
    ]
    return values_table(layout.title, layout.head, names, entries, notes)


def _gains(
    returns: Returns,
    layout: PaperTable,
    places: Mapping[PaperRow, Setting],
    columns: Columns,
    notes: Sequence[str],
) -> ReportTable:
    """As Table III: differences from `passive` in place of returns."""
    rules = {rule: paper for rule, paper in columns.items() if rule != BASELINE}
    names = {rule: f"{rule_name(rule)} - {rule_name(BASELINE)}" for rule in rules}
    entries = []
    for place, setting in places.items():
        expected = _expected(returns, layout, place, setting, columns)
        paper = {rule: layout.difference(place, name) for rule, name in rules.items()}
        entries.append(
            Entry(
                labels=_labels(place, setting),
                ours={
                    r: difference(returns, setting, r) for r in rules if r in expected
                },
                paper={rule: one for rule, one in paper.items() if one is not None},
            )
        )
    return values_table(layout.title, layout.head, names, entries, notes, True)


def _lines(
    returns: Returns,
    layout: PaperTable,
    places: Mapping[PaperRow, Setting],
    columns: Columns,
) -> list[Line]:
    lines = []
    for place, setting in places.items():
        against = BASELINE if layout.name else baseline_of(returns, setting)
        lines += [
            Line(
                _labels(place, setting),
                setting,
                rule,
                against,
                layout.difference(place, columns[rule]),
            )
            for rule in _expected(returns, layout, place, setting, columns)
            if against is not None and rule != against
        ]
    return lines


def _expected(
    returns: Returns,
    layout: PaperTable,
    place: PaperRow,
    setting: Setting,
    columns: Columns,
) -> list[str]:
    """Rules that the paper has there, or we have."""
    paper, ours = layout.rules_at(place), returns.rules(setting)
    return [rule for rule, name in columns.items() if name in paper or rule in ours]


def _by_regime(
    returns: Returns,
    layout: PaperTable,
    places: Mapping[PaperRow, Setting],
    columns: Columns,
) -> list[ReportTable]:
    """Where evaluations saw several regimes: what each rule reached in each."""
    entries = []
    for place, setting in places.items():
        branches = [b for b in returns.branches if b.setting == setting]
        regimes = sorted({regime for b in branches for regime, _ in b.by_regime})
        for regime in regimes if len(regimes) > 1 else ():
            part = of_regime(returns, regime)
            ours = {r: mean_return(part, setting, r) for r in returns.rules(setting)}
            name = f"{regime}, original" if regime == 0 else f"{regime}, changed"
            entries.append(Entry((*_labels(place, setting), name), ours))
    if not entries:
        return []
    rules = [r for r in columns if any(r in entry.ours for entry in entries)]
    names = {rule: rule_name(rule) for rule in rules}
    text = f"By the regime in force. {layout.title}"
    notes = ("Each value is the mean over the evaluations under that regime.",)
    return [values_table(text, (*layout.head, "Regime"), names, entries, notes)]


def _remarks(
    returns: Returns,
    layout: PaperTable,
    places: Mapping[PaperRow, Setting],
    columns: Columns,
) -> tuple[str, ...]:
    """The paper's remarks on cells that we have, beside our values."""
    found = []
    for (place, paper), text in layout.remarks.items():
        setting = places[place]
        for rule in (r for r, name in columns.items() if name == paper):
            if rule not in returns.rules(setting):
                continue
            found.append(
                f"{', '.join(place.labels)}, {rule_name(rule)}: "
                f"{_summed(returns, setting, rule)}; the paper: {text}."
            )
    return tuple(found)


def _summed(returns: Returns, setting: Setting, rule: str) -> str:
    if rule == BASELINE:
        reached = MeanCell.of(mean_return(returns, setting, rule))
        return f"a return of {reached.text()}"
    gained = difference(returns, setting, rule)
    return f"more than Passive in {gained.n_positive} of {gained.n} seeds"


def _made_of(returns: Returns, settings: Sequence[Setting]) -> tuple[str, ...]:
    """The seeds and evaluations that every number of a table is a mean of."""
    branches = [b for b in returns.branches if b.setting in settings]
    seeds = {b.seed for b in branches} | set(returns.seeds or ())
    grids = sorted({b.frames for b in branches if b.value is not None})
    if not grids:
        return ("No branch has all its evaluations yet.",)
    error = "mean ± s.e. over" if len(seeds) > 1 else "of"
    return (
        f"Return after the shift, {error} {seeds_text(seeds)}: the mean of "
        f"{' or '.join(grid_text(grid) for grid in grids)} of each branch.",
    )
