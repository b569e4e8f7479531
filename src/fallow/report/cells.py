"""Tables as data: cells that hold their numbers and render to any format."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from fallow.study.summary import Summary

DASH = "–"
Value = str | float | int | None


class TableCell(Protocol):
    """One cell: a text to print, and named values for CSV."""

    def text(self) -> str:
        """As it is printed."""

    def values(self) -> Mapping[str, Value]:
        """Its numbers by name; the name is empty for a plain text."""


@dataclass(frozen=True)
class TextCell:
    """A cell of text; a repeated label may stay blank."""

    words: str = ""
    blank: bool = False

    def text(self) -> str:
        return "" if self.blank else self.words

    def values(self) -> Mapping[str, Value]:
        return {"": self.words}


@dataclass(frozen=True)
class NumberCell:
    """One number; a dash where there is none."""

    value: float | None
    digits: int = 2

    def text(self) -> str:
        return DASH if self.value is None else number(self.value, self.digits)

    def values(self) -> Mapping[str, Value]:
        return {"": self.value}


@dataclass(frozen=True)
class MeanCell:
    """Mean ± standard error, and of how many seeds; a dash where there is no mean."""

    mean: float | None
    se: float | None = None
    n: int | None = None
    n_expected: int | None = None
    digits: int = 0
    signed: bool = False
    sign: int = 0
    """Where no mean is known but its sign is: shown as < 0 or > 0."""

    @classmethod
    def of(cls, summary: Summary, digits: int = 0, signed: bool = False) -> "MeanCell":
        """That of a summary."""
        numbers = (summary.mean, summary.se, summary.n, summary.n_expected)
        return cls(*numbers, digits=digits, signed=signed)

    def text(self) -> str:
        if self.mean is None:
            return {0: DASH, 1: "> 0", -1: "< 0"}[self.sign]
        words = number(self.mean, self.digits, self.signed)
        if self.se is not None:
            words += f" ± {number(self.se, self.digits)}"
        if self.n is not None and self.n_expected not in (None, self.n):
            words += f" ({self.n} of {self.n_expected})"
        elif self.n == 1:
            words += " (1 seed)"
        return words

    def values(self) -> Mapping[str, Value]:
        found: dict[str, Value] = {"mean": self.mean, "se": self.se}
        if self.n is None:
            return found
        return found | {"n": self.n, "of": self.n_expected}


@dataclass(frozen=True)
class IntervalCell:
    """An interval; a dash where there is none."""

    ends: tuple[float, float] | None
    digits: int = 0

    def text(self) -> str:
        if self.ends is None:
            return DASH
        return " to ".join(number(end, self.digits) for end in self.ends)

    def values(self) -> Mapping[str, Value]:
        low, high = self.ends or (None, None)
        return {"low": low, "high": high}


@dataclass(frozen=True)
class CountCell:
    """A count of a total, `3 of 5`; a dash where the total is 0."""

    n: int
    of: int

    def text(self) -> str:
        return f"{self.n} of {self.of}" if self.of else DASH

    def values(self) -> Mapping[str, Value]:
        return {"n": self.n, "of": self.of}


@dataclass(frozen=True)
class ReportTable:
    """A title, named columns, rows of cells, and notes below."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    notes: tuple[str, ...] = ()
    n_labels: int = 1
    """Columns at the left that label a row."""

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.head) for row in self.rows)

    def texts(self) -> list[list[str]]:
        """The rows as they are printed."""
        return [[cell.text() for cell in row] for row in self.rows]


def number(value: float, digits: int = 0, signed: bool = False) -> str:
    """A number with `digits` decimals; never a negative zero."""
    text = f"{value:{'+' if signed else ''}.{digits}f}"
    return text.replace("-", "").replace("+", "") if float(text) == 0 else text


def digits_for(values: list[float | None]) -> int:
    """Decimals that leave about three figures of the largest value."""
    largest = max((abs(value) for value in values if value is not None), default=100)
    return 0 if largest >= 100 else 1 if largest >= 10 else 2
