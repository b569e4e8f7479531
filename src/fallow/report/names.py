"""Labels of conditions and rules in tables, figures and pages, and their order."""

from collections.abc import Iterable
from typing import Any

from fallow.core import options
from fallow.core.errors import FallowError
from fallow.dynamics.conditions import CONDITIONS
from fallow.replay.rules import RULES
from fallow.study.statistics import BASELINE, Returns, Setting
from fallow.study.sweeps import window_of
from fallow.views.plotting import thousands


def rule_name(rule: str) -> str:
    """`Recency (window 20k)` of `recency:window_transitions=20000`."""
    return _name(rule, {name: kind.label for name, kind in RULES.items()})


def condition_name(condition: str) -> str:
    """`Gain reduction (g=0.7)` of `gain:g=0.7`."""
    return _name(condition, {name: kind.label for name, kind in CONDITIONS.items()})


def _name(text: str, labels: dict[str, str]) -> str:
    try:
        name, given = options.parse(text)
    except FallowError:
        return text
    inside = ", ".join(_option(key, value) for key, value in given.items())
    label = labels.get(name, name)
    return f"{label} ({inside})" if inside else label


def _option(key: str, value: Any) -> str:
    """Counts without their unit; other options as they are written."""
    stem, _, unit = key.rpartition("_")
    if isinstance(value, int) and unit in ("transitions", "frames"):
        return f"{stem} {thousands(value) if value % 100 == 0 else f'{value:,}'}"
    return options.render("", {key: value})[1:]


Order = tuple[int, str, tuple[tuple[str, float, str], ...]]


def rule_order(rule: str) -> Order:
    """Sorts rules as the paper does, numbers by size."""
    return _order(rule, RULES)


def condition_order(condition: str) -> Order:
    """Sorts conditions as the paper does, numbers by size."""
    return _order(condition, CONDITIONS)


def setting_order(setting: Setting) -> tuple[str, str, str, str, Order]:
    """Sorts settings: their conditions last."""
    place = (setting.task, setting.agent, setting.preset, setting.trunk_set)
    return *place, condition_order(setting.condition)


def baseline_of(returns: Returns, setting: Setting | None = None) -> str | None:
    """`passive`, or else the first rule there is; None without rules."""
    rules = sorted(returns.rules(setting), key=rule_order)
    return BASELINE if BASELINE in rules else next(iter(rules), None)


def recency_rules(returns: Returns, settings: Iterable[Setting]) -> list[str]:
    """The Recency rules of some settings, small windows first."""
    rules = {rule for setting in settings for rule in returns.rules(setting)}
    return sorted(filter(window_of, rules), key=lambda rule: window_of(rule) or 0)


def where(setting: Setting) -> str:
    """Task, agent, preset and set of trunks, in words."""
    trunks = f", trunks {setting.trunk_set}" if setting.trunk_set else ""
    return f"{setting.task}, {setting.agent}, preset {setting.preset}{trunks}"


def _order(text: str, names: Iterable[str]) -> Order:
    name, _, rest = text.partition(":")
    known = list(names)
    place = known.index(name) if name in known else len(known)
    items = []
    for item in filter(None, rest.split(",")):
        key, _, value = item.partition("=")
        try:
            items.append((key, float(value), ""))
        except ValueError:
            items.append((key, 0.0, value))
    return place, name, tuple(items)
