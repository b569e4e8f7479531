"""What conditions and rules are called in tables, and in which order they stand."""

from fallow.core import options
from fallow.study.statistics import BASELINE, Returns, Setting

RULES = {
    "passive": "Passive",
    "recency": "Recency",
    "graded": "Graded",
    "wmar": "WMAR",
    "reservoir": "Reservoir",
    "reset": "Reset-once",
}
"""The paper's names, in its order."""
CONDITIONS = {
    "gain": "Gain reduction",
    "damage": "Actuator damage",
    "recurring": "Recurring",
    "damping": "Damping",
    "friction": "Friction",
    "none": "No change",
}


def rule_name(rule: str) -> str:
    """The paper's name of a rule as it has it; with options, its text."""
    return RULES.get(rule, rule)


def condition_name(condition: str) -> str:
    """The paper's name of a condition as it has it; with options, its text."""
    return CONDITIONS.get(condition, condition)


Order = tuple[int, str, tuple[tuple[str, float, str], ...]]


def rule_order(rule: str) -> Order:
    """Sorts rules as the paper does, numbers by size."""
    return _order(rule, tuple(RULES))


def condition_order(condition: str) -> Order:
    """Sorts conditions as the paper does, numbers by size."""
    return _order(condition, tuple(CONDITIONS))


def setting_order(setting: Setting) -> tuple[str, str, str, str, Order]:
    """Sorts settings: their conditions last."""
    own = (setting.task, setting.agent, setting.preset, setting.trunk_set)
    return *own, condition_order(setting.condition)


def baseline_of(returns: Returns, setting: Setting | None = None) -> str | None:
    """`passive`, or else the first rule there is; None without rules."""
    rules = sorted(returns.rules(setting), key=rule_order)
    return BASELINE if BASELINE in rules else next(iter(rules), None)


def where(setting: Setting) -> str:
    """Task, agent, preset and set of trunks, in words."""
    trunks = f", trunks {setting.trunk_set}" if setting.trunk_set else ""
    return f"{setting.task}, {setting.agent}, preset {setting.preset}{trunks}"


def _order(text: str, names: tuple[str, ...]) -> Order:
    name, _, rest = text.partition(":")
    place = names.index(name) if name in names else len(names)
    items = []
    for item in filter(None, rest.split(",")):
        key, _, value = item.partition("=")
        try:
            items.append((key, float(value), ""))
        except ValueError:
            items.append((key, 0.0, value))
    return place, name, tuple(items)


def option(text: str, name: str, default: float) -> float | None:
    """The one option `name` of a condition or rule; None if it has others as well."""
    _, given = options.parse(text)
    if set(given) - {name}:
        return None
    value = given.get(name, default)
    return float(value) if isinstance(value, int | float) else None
