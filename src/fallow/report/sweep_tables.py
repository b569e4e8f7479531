"""The sweeps as tables: Recency's advantage against period, gain and window."""

import math
from collections.abc import Sequence
from dataclasses import replace

from fallow.report.cells import NumberCell, ReportTable
from fallow.report.paper import (
    RECURRENCE_TEXT,
    SWEEP,
    SWEEP_AUC,
    WINDOW_TEXT,
    Published,
)
from fallow.report.table_builders import AUC, Line, differences_table
from fallow.study.estimator import RECENCY
from fallow.study.statistics import (
    BASELINE,
    NO_CHANGE,
    Returns,
    Setting,
    setting_auc,
)
from fallow.study.sweeps import gain_of, period_of, window_of

NOTES = {"recurrence": (RECURRENCE_TEXT,), "window": (WINDOW_TEXT,)}
"""The paper's statements on a sweep in words."""
SWEEPS = {
    "recurrence": "Recency against Passive by recurrence period",
    "magnitude": "Recency against Passive by permanent gain",
    "window": "Recency against Passive by recurrence period and window",
}
"""Titles by the name of the study."""
HEADS = {
    "recurrence": ("Period, frames",),
    "magnitude": ("Gain",),
    "window": ("Period, frames", "Window, transitions"),
}


def sweep_tables(returns: Returns, name: str) -> list[ReportTable]:
    """One sweep, once for each task, agent and preset; none if nothing was swept."""
    groups: dict[tuple[str, str, str], list[Setting]] = {}
    for one in returns.settings:
        groups.setdefault((one.task, one.agent, one.preset), []).append(one)
    tables = [_table(returns, name, settings) for _, settings in sorted(groups.items())]
    return [table for table in tables if table.rows]


def published(condition: str, trunk_set: str = "") -> Published | None:
    """The paper's advantage; without a set of trunks its first, if it has that."""
    sets = (trunk_set,) if trunk_set else ("A", "B")
    return next((SWEEP[condition, s] for s in sets if (condition, s) in SWEEP), None)


def _table(returns: Returns, name: str, settings: Sequence[Setting]) -> ReportTable:
    one = settings[0]
    lines = [line for s in _each_once(settings) for line in _lines(returns, name, s)]
    lines.sort(key=lambda pair: pair[0], reverse=name == "magnitude")
    head, shown = HEADS[name], [line for _, line in lines]
    if any(setting.trunk_set for setting in settings):
        head = (*head, "Trunks")
        shown = [
            replace(line, labels=(*line.labels, line.setting.trunk_set))
            for line in shown
        ]
    return differences_table(
        f"{SWEEPS[name]}; {one.task}, {one.agent}, preset {one.preset}",
        head,
        returns,
        shown,
        NOTES.get(name, ()),
        (AUC, f"{AUC}, the paper"),
    )


def _each_once(settings: Sequence[Setting]) -> list[Setting]:
    """Without `none` where a gain of 1 was run as well, from the same trunks."""
    full = {s.trunk_set for s in settings if s.condition == "gain:g=1.0"}
    return [s for s in settings if s.condition != NO_CHANGE or s.trunk_set not in full]


Order = tuple[float, float, str]


def _lines(returns: Returns, name: str, setting: Setting) -> list[tuple[Order, Line]]:
    """The lines of one setting, with what sorts them; none if it is not swept."""
    condition = setting.condition
    knob = gain_of(condition) if name == "magnitude" else period_of(condition)
    if knob is None:
        return []
    windows = {rule: window_of(rule) for rule in returns.rules(setting)}
    if name != "window":
        windows = {RECENCY: window_of(RECENCY)}
    paper = None if name == "window" else published(condition, setting.trunk_set)
    auc, paper_auc = setting_auc(returns, setting), SWEEP_AUC.get(condition)
    extra = (NumberCell(auc), NumberCell(paper_auc))
    return [
        (
            (knob, window, setting.trunk_set),
            Line(_labels(name, knob, window), setting, rule, BASELINE, paper, extra),
        )
        for rule, window in windows.items()
        if window is not None
    ]


def _labels(name: str, knob: float, window: float) -> tuple[str, ...]:
    if name == "magnitude":
        return (f"{knob:g}",)
    period = "permanent" if math.isinf(knob) else f"{knob:,.0f}"
    return (period,) if name == "recurrence" else (period, f"{window:,.0f}")
