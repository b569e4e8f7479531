"""Rows of numbers from lines of text as they come: a CSV table, or JSON lines."""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fallow.core.errors import FallowError
from fallow.core.text import printable
from fallow.logs.table import limit_columns

DELIMITERS = ",;\t"
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")


@dataclass(frozen=True)
class RowFormat:
    """How one line becomes a row of numbers; other values become NaN."""

    name: str
    """`csv` or `jsonl`."""
    names: tuple[str, ...]
    """Of all columns."""
    arrays: Mapping[str, tuple[int, ...]]
    """Columns of each array, by its name."""
    delimiter: str = ","
    is_number: tuple[bool, ...] = field(default=())
    """Of a table: which columns hold numbers in the first row."""

    def parse(self, lines: Sequence[str]) -> np.ndarray:
        """(lines, columns), NaN throughout for a line that cannot be read."""
        if self.name == "jsonl":
            return np.array([self._of_json(line) for line in lines])
        rows = np.full((len(lines), len(self.names)), np.nan)
        chosen = np.flatnonzero(self.is_number)
        n_marks = len(self.names) - 1
        if any(line.count(self.delimiter) != n_marks for line in lines):
            rows[:] = [self._of_table(line) for line in lines]
            return rows
        try:
            rows[:, chosen] = np.loadtxt(
                lines,
                delimiter=self.delimiter,
                usecols=chosen.tolist(),
                ndmin=2,
                comments=None,
                quotechar='"',
            )
        except ValueError:
            rows[:] = [self._of_table(line) for line in lines]
        return rows

    def _of_table(self, line: str) -> list[float]:
        cells = _cells(line, self.delimiter)
        while len(cells) > len(self.names) and not cells[-1].strip():
            cells.pop()  # of a line that ends with a delimiter
        if len(cells) != len(self.names):
            return [np.nan] * len(self.names)
        return [number(cell) for cell in cells]

    def without_heads(self, source: str, lines: Sequence[str]) -> list[str]:
        """The lines but for repeated heads of the table.

        Raises:
            FallowError: a line names the columns in another order.
        """
        if self.name == "jsonl":
            return list(lines)
        kept = []
        for line in lines:
            if line.split(self.delimiter, 1)[0].strip(' "') not in self.names:
                kept.append(line)
                continue
            names = tuple(name.strip() for name in _cells(line, self.delimiter))
            if names == self.names:
                continue
            if sorted(names) == sorted(self.names):
                raise FallowError(
                    f"the columns of {source} change their order within the file, to "
                    f"'{printable(line, 60)}'; split it there"
                )
            kept.append(line)
        return kept

    def _of_json(self, line: str) -> list[float]:
        try:
            found = flat(json.loads(line))
        except (ValueError, RecursionError):
            found = {}
        row: list[float] = []
        for name, places in self.arrays.items():
            values = found.get(name, [])
            if len(values) != len(places):
                return [np.nan] * len(self.names)
            row += values
        return row


def format_of(source: str, first: str, second: str | None) -> RowFormat | None:
    """The format of a text from its first two lines; None where it takes the second.

    Raises:
        FallowError: the first line is neither the head of a table nor a JSON object.
    """
    if first.lstrip().startswith(("{", "[")):
        return _json_format(source, first)
    delimiter = max(DELIMITERS, key=first.count)
    names = [name.strip() for name in _cells(first, delimiter)]
    limit_columns(source, len(names))
    if not any(names) or all(not np.isnan(number(name)) for name in names):
        raise FallowError(
            f"the first line of {source} is '{printable(first, 60)}'; it must name the "
            "columns, or be a JSON object"
        )
    if second is None:
        return None
    cells = _cells(second, delimiter)
    for cell, name in zip(cells, names, strict=False):
        if DECIMAL_COMMA.fullmatch(cell):
            raise FallowError(
                f"the first row of {source} holds '{printable(cell, 60)}' in column "
                f"'{printable(name, 60)}'; write numbers with a decimal point"
            )
    known = [not np.isnan(number(cell)) for cell in cells]
    known = (known + [False] * len(names))[: len(names)]
    places = {"table": tuple(range(len(names)))}
    return RowFormat("csv", tuple(names), places, delimiter, tuple(known))


def _json_format(source: str, line: str) -> RowFormat:
    try:
        found = flat(json.loads(line))
    except (ValueError, RecursionError) as error:
        raise FallowError(
            f"the first line of {source} is not a JSON object: {error}"
        ) from None
    arrays: dict[str, tuple[int, ...]] = {}
    names: list[str] = []
    for name, values in found.items():
        arrays[name] = tuple(range(len(names), len(names) + len(values)))
        several = len(values) > 1
        names += [f"{name}[{i}]" if several else name for i in range(len(values))]
    limit_columns(source, len(names))
    return RowFormat("jsonl", tuple(names), arrays)


def flat(content: Any, prefix: str = "") -> dict[str, list[float]]:
    """Numbers by name; those of an object inside by `name/inner name`."""
    if not isinstance(content, Mapping):
        raise ValueError("it must be an object")
    found: dict[str, list[float]] = {}
    for key, value in content.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}/")
        else:
            found[f"{prefix}{key}"] = list(_numbers(value))
    return found


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, list):
        for inner in value:
            yield from _numbers(inner)
    else:
        yield number(value)


def number(value: Any) -> float:
    """A number, NaN for anything else."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def filled(values: np.ndarray) -> np.ndarray:
    """(n,) each NaN replaced by the value before it."""
    known = np.where(np.isnan(values), 0, np.arange(len(values)))
    return values[np.maximum.accumulate(known)]
