"""Comma, semicolon or tab separated tables: a header, then one row for each time."""

import csv
import functools
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fallow.core.errors import FallowError
from fallow.logs.columns import Columns
from fallow.logs.readers.flat import episode_lengths, episode_regime, episode_steps_s
from fallow.logs.readers.reader import Reader
from fallow.logs.table import MAX_COLUMNS, Array, Table, limit_columns

SUFFIXES = (".csv", ".tsv", ".txt")
DELIMITERS = ",;\t"
MAX_HEADER_BYTES = 64 * MAX_COLUMNS
"""Longer first lines are not read to their end."""
WHOLE_BYTES = 1 << 30
"""Larger files are read once for each group of columns, to save memory."""


def matches(path: Path, head: bytes) -> bool:
    """Whether the file is text and is called so."""
    return path.suffix.lower() in SUFFIXES and bool(head) and b"\0" not in head


def read(path: Path, columns: Columns) -> Table:
    """The table; only the columns that are asked for are ever parsed."""
    header, delimiter = _header(path)
    has_names = not all(_is_number(name) for name in header)
    names = header if has_names else [str(i) for i in range(len(header))]

    parse = functools.partial(_parse, path, delimiter, int(has_names))
    try:  # one pass, if it is all numbers and fits
        small = path.stat().st_size <= WHOLE_BYTES
        whole = parse(list(range(len(names)))) if small else None
    except FallowError:
        whole = None

    def load(chosen: Sequence[int]) -> np.ndarray:
        return parse(chosen) if whole is None else whole[:, list(chosen)]

    def column(name: str) -> np.ndarray:
        return load([names.index(name)])[:, 0]

    n_rows = len(load([0])) if columns.episode_steps is not None else 0
    lengths = episode_lengths(str(path), names, column, n_rows, columns)
    kept = int(lengths.sum())
    table = Array(tuple(names), lengths, lambda c: load(c)[:kept], named=True)
    return Table(
        source=str(path),
        format="csv",
        arrays={"table": table},
        step_s=episode_steps_s(names, column, lengths, columns),
        regime=episode_regime(names, column, lengths),
    )


def _parse(
    path: Path, delimiter: str, n_header_rows: int, chosen: Sequence[int]
) -> np.ndarray:
    order = sorted(set(chosen))
    try:
        with warnings.catch_warnings(action="ignore"):  # of no rows: said below
            values = np.loadtxt(
                path,
                delimiter=delimiter,
                skiprows=n_header_rows,
                usecols=order,
                ndmin=2,
                comments=None,
                quotechar='"',
                encoding="utf-8-sig",
            )
    except (ValueError, IndexError) as error:
        reason = str(error).split(";")[0].rstrip(".")
        raise FallowError(
            f"{path} is no table of numbers: {reason}; repair that row or choose other "
            "columns"
        ) from None
    if len(values) == 0:
        raise FallowError(f"{path} has a header and no rows; record something")
    return values[:, [order.index(column) for column in chosen]]


def _header(path: Path) -> tuple[list[str], str]:
    with path.open("rb") as file:
        line = file.readline(MAX_HEADER_BYTES + 1)
    delimiter = max(DELIMITERS, key=lambda mark: line.count(mark.encode()))
    limit_columns(str(path), line.count(delimiter.encode()) + 1)
    if len(line) > MAX_HEADER_BYTES:
        raise FallowError(
            f"the first line of {path} is longer than {MAX_HEADER_BYTES:,} bytes; it "
            "must name the columns"
        )
    text = line.decode("utf-8-sig", errors="strict")
    return [name.strip() for name in next(csv.reader([text], delimiter=delimiter))], (
        delimiter
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


READER = Reader("csv", "tables with a header, a row for each time", matches, read)
