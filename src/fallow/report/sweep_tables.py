"""The sweeps as tables: Recency's advantage against period, gain and window."""

import math
from collections.abc import Sequence
from dataclasses import replace

from fallow.report.cells import Number, Table
from fallow.report.comparing import AUC, Line, differences_table
from fallow.report.names import option
from fallow.report.paper import SWEEP, SWEEP_AUC, WINDOW_TEXT, Published
from fallow.study.statistics import BASELINE, Returns, Setting, setting_auc

GAIN, PERIOD_FRAMES, WINDOW_TRANSITIONS = 0.5, 20_000, 10_000
"""What `gain`, `recurring` and `recency` have unless told otherwise."""
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


def sweep_tables(returns: Returns, name: str) -> list[Table]:
    """One sweep, once for each task, agent and preset; none if nothing was swept."""
    groups: dict[tuple[str, str, str], list[Setting]] = {}
    for one in returns.settings:
        groups.setdefault((one.task, one.agent, one.preset), []).append(one)
    tables = [_table(returns, name, settings) for _, settings in sorted(groups.items())]
    return [table for table in tables if table.rows]


def gain_of(condition: str) -> float | None:
    """The gain of a permanent change of all actuators; None for other conditions."""
    name = condition.partition(":")[0]
    return option(condition, "g", GAIN) if name == "gain" else None


def period_of(condition: str) -> float | None:
    """Frames between switches to half gain; infinite for good, None for others."""
    if condition == "gain":
        return math.inf
    name = condition.partition(":")[0]
    recurring = name == "recurring"
    return option(condition, "period_frames", PERIOD_FRAMES) if recurring else None


def window_of(rule: str) -> float | None:
    """Transitions in the window of `recency`; None for other rules."""
    name = rule.partition(":")[0]
    recency = name == "recency"
    return option(rule, "window_transitions", WINDOW_TRANSITIONS) if recency else None


def published(condition: str, trunk_set: str = "") -> Published | None:
    """The paper's advantage; without a set of trunks its first, if it has that."""
    sets = (trunk_set,) if trunk_set else ("A", "B")
    return next((SWEEP[condition, s] for s in sets if (condition, s) in SWEEP), None)


def _table(returns: Returns, name: str, settings: Sequence[Setting]) -> Table:
    one = settings[0]
    lines = [line for s in settings for line in _lines(returns, name, s)]
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
        (WINDOW_TEXT,) if name == "window" else (),
        (AUC, f"{AUC}, the paper"),
    )


Order = tuple[float, float, str]


def _lines(returns: Returns, name: str, setting: Setting) -> list[tuple[Order, Line]]:
    """The lines of one setting, with what sorts them; none if it is not swept."""
    condition = setting.condition
    knob = gain_of(condition) if name == "magnitude" else period_of(condition)
    if knob is None:
        return []
    windows = {rule: window_of(rule) for rule in returns.rules(setting)}
    if name != "window":
        windows = {"recency": WINDOW_TRANSITIONS}
    paper = None if name == "window" else published(condition, setting.trunk_set)
    auc, paper_auc = setting_auc(returns, setting), SWEEP_AUC.get(condition)
    extra = (Number(auc), Number(paper_auc))
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
