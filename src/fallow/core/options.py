"""Parses a choice with options: `name:option=value,option=value`.

Conditions, rules and presets are written this way on the command line and in files,
e.g. `gain:g=0.7`, `recency:window_transitions=20000` or `lean:horizon=10`. Several
values of one option are joined with a slash: `damage:actuator=1/4`.
"""

import contextlib
import dataclasses
import math
import operator
from collections.abc import Mapping
from typing import Any, TypeVar

from fallow.core.errors import FallowError, unknown

T = TypeVar("T")
MAX_SEEDS = 10_000
"""Of one command or study; more is taken for a typing error."""
MOST_SHOWN = 80
"""Characters of a wrong value that an error repeats."""


def parse(text: str) -> tuple[str, dict[str, Any]]:
    """Split `name:option=value,…` into the name and its options, values still raw."""
    name, _, rest = text.strip().partition(":")
    options: dict[str, Any] = {}
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise FallowError(
                f"cannot read '{item}' in '{text}': write option=value, "
                "several separated by commas"
            )
        if key.strip() in options:
            raise FallowError(f"option '{key.strip()}' is given twice in '{text}'")
        options[key.strip()] = _value(value.strip())
    return name, options


def render(name: str, options: Mapping[str, Any]) -> str:
    """The inverse of `parse`."""
    items = ",".join(f"{key}={_text(value)}" for key, value in options.items())
    return f"{name}:{items}" if items else name


def build(cls: type[T], options: Mapping[str, Any], owner: str) -> T:
    """Make a dataclass from options; an unknown one is an error naming the nearest."""
    _check_known(cls, options, owner)
    return cls(**options)


def replaced(instance: T, options: Mapping[str, Any], owner: str) -> T:
    """A dataclass with some options changed; errors as from `build`."""
    _check_known(type(instance), options, owner)
    return dataclasses.replace(instance, **options)  # type: ignore[type-var]


def _check_known(cls: type, options: Mapping[str, Any], owner: str) -> None:
    known = {field.name for field in dataclasses.fields(cls)}
    for key in options:
        if key not in known:
            raise unknown(f"option of {owner}", key, known)


def changed(instance: Any) -> dict[str, Any]:
    """The options of a dataclass that differ from their defaults."""
    return {
        field.name: getattr(instance, field.name)
        for field in dataclasses.fields(instance)
        if getattr(instance, field.name) != field.default
    }


SPEED_ONLY: Mapping[str, Any] = {"speed_only": True}
"""Metadata of a field that changes how long results take, not what they are."""


def identifying(instance: Any) -> dict[str, Any]:
    """The fields of a dataclass that its results depend on."""
    return {
        field.name: getattr(instance, field.name)
        for field in dataclasses.fields(instance)
        if not field.metadata.get("speed_only")
    }


def seeds(text: str) -> list[int]:
    """Read seeds: `0-4` and `0,3,7`, also mixed; each once, in the order given."""
    found: dict[int, None] = {}
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            begin, end = int(first), int(last) if dash else int(first)
        except ValueError:
            begin, end = 0, -1
        if not 0 <= begin <= end < 2**31:
            raise FallowError(f"cannot read seeds '{shown(text)}': write 0-4 or 0,3,7")
        if end - begin >= MAX_SEEDS or len(found) >= MAX_SEEDS:
            raise FallowError(
                f"seeds '{shown(text)}' are more than {MAX_SEEDS:,}; give fewer"
            )
        found |= dict.fromkeys(range(begin, end + 1))
    return list(found)


def check_int(
    owner: str, option: str, value: Any, at_least: int, at_most: int | None = None
) -> None:
    """Check that `value` is an integer between two limits."""
    limit = f"{at_least} or more"
    if at_most is not None:
        limit = f"from {at_least:,} to {at_most:,}"
    fits = isinstance(value, int) and not isinstance(value, bool) and value >= at_least
    if not fits or (at_most is not None and value > at_most):
        raise FallowError(
            f"{owner}: {option} is {shown(value)}; it must be a whole number, {limit}"
        )


def integer(
    owner: str, option: str, value: Any, at_least: int, at_most: int | None = None
) -> int:
    """An integer of any library, checked as `check_int` does."""
    if type(value) is not int:
        with contextlib.suppress(TypeError):  # the check says what it is
            value = operator.index(value)
    check_int(owner, option, value, at_least, at_most)
    return value


def check_text(owner: str, option: str, value: Any) -> None:
    """Check that `value` is a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise FallowError(
            f"{owner}: {option} is {shown(value)}; it must be a text in quotes"
        )


def check_number(
    owner: str,
    option: str,
    value: Any,
    at_least: float = -math.inf,
    above: float = -math.inf,
) -> None:
    """Check that `value` is a finite number, `at_least` or strictly `above` a limit."""
    limit = f"above {above:g}" if above > -math.inf else f"{at_least:g} or more"
    fits = (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and value >= at_least
        and value > above
    )
    if not fits:
        raise FallowError(
            f"{owner}: {option} is {shown(value)}; it must be a number, {limit}"
        )


def _value(text: str) -> Any:
    if "/" in text:
        return tuple(_value(part) for part in text.split("/"))
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def shown(value: Any) -> str:
    """A value as an error shows it, cut where it is long."""
    try:
        found = _text(value)
    except ValueError:  # an integer of thousands of digits
        found = "an integer too long to print"
    return found if len(found) <= MOST_SHOWN else f"{found[:MOST_SHOWN]}…"


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return "/".join(_text(item) for item in value)
    return repr(value) if isinstance(value, float) else str(value)
