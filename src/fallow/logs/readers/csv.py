"""Comma, semicolon or tab separated tables: a header, then one row for each time."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fallow.core.errors import FallowError
from fallow.core.text import printable
from fallow.logs.columns import Columns
from fallow.logs.limits import Budget, require_regular
from fallow.logs.readers.flat import episode_lengths, episode_regime, episode_steps_s
from fallow.logs.readers.reader import Reader
from fallow.logs.table import MAX_COLUMNS, Array, LogTable, limit_columns
from fallow.logs.text_rows import DECIMAL_COMMA, DELIMITERS

SUFFIXES = (".csv", ".tsv", ".txt")
MAX_LINE_BYTES = 64 * MAX_COLUMNS
"""A longer line is damage."""
BLOCK_BYTES = 1 << 20
"""Read at a time where lines are only counted."""
NO_NUMBER = re.compile(
    r"could not convert string '(.*)' to \w+ at row (\d+), column (\d+)"
)
"""What NumPy says of a text: its row without the header, its column from 1."""
WHOLE_BYTES = 1 << 30
"""Larger files are read once for each group of columns, to save memory."""


def matches(path: Path, head: bytes) -> bool:
    """Whether the file is text and is called so."""
    return path.suffix.lower() in SUFFIXES and bool(head) and b"\0" not in head


def read(path: Path, columns: Columns, budget: Budget) -> LogTable:
    """The table; only the columns that are asked for are ever parsed."""
    header, delimiter = _header(require_regular(path))
    n_lines = _count_lines(path)
    _check_widths(path, delimiter, len(header))
    has_names = not all(_is_number(name) for name in header)
    names = header if has_names else [str(i) for i in range(len(header))]
    if has_names and not _has_rows(path):
        raise FallowError(f"{path} has a header and no rows; record something")

    def parse(chosen: Sequence[int]) -> np.ndarray:
        n_bytes = 2 * n_lines * len(set(chosen)) * np.dtype(float).itemsize
        budget.check(n_bytes, f"{n_lines:,} lines")
        return _parse(path, delimiter, names if has_names else (), chosen)

    try:  # one pass, if it is all numbers and fits
        small = path.stat().st_size <= WHOLE_BYTES
        whole = parse(list(range(len(names)))) if small else None
    except FallowError:
        whole = None

    def load(chosen: Sequence[int]) -> np.ndarray:
        return parse(chosen) if whole is None else whole[:, list(chosen)]

    def column(name: str) -> np.ndarray:
        return load([names.index(name)])[:, 0]

    n_rows = 0
    if columns.episode_steps is not None:  # the first column may hold texts
        n_rows = len(_load(path, delimiter, has_names, [0], dtype="S1"))
    lengths = episode_lengths(str(path), names, column, n_rows, columns)
    kept = int(lengths.sum())
    table = Array(tuple(names), lengths, lambda c: load(c)[:kept], named=True)
    return LogTable(
        source=str(path),
        format="csv",
        arrays={"table": table},
        step_s=episode_steps_s(str(path), names, column, lengths, columns),
        regime=episode_regime(names, column, lengths),
    )


def _count_lines(path: Path) -> int:
    """How many lines a text has.

    Raises:
        FallowError: it holds a NUL byte, as a crash leaves them, or an endless line.
    """
    n_lines, line_bytes, place = 1, 0, 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            if (zero := block.find(b"\0")) >= 0:
                raise FallowError(
                    f"{path} holds a NUL byte at place {place + zero:,}, as a crash "
                    f"leaves them; cut the file there: truncate -s {place + zero}"
                )
            first, last = block.find(b"\n"), block.rfind(b"\n")
            line_bytes += len(block) if first < 0 else first
            if line_bytes > MAX_LINE_BYTES + BLOCK_BYTES:
                raise FallowError(
                    f"a line of {path} is longer than {MAX_LINE_BYTES:,} bytes; it "
                    "must be a table with one row for each time"
                )
            if last >= 0:
                line_bytes = len(block) - last - 1
            n_lines += block.count(b"\n")
            place += len(block)
    return n_lines


def _check_widths(path: Path, delimiter: str, n_columns: int) -> None:
    """Raise where a line has more values than the first, so that columns shift."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if b'"' in line:  # may hold delimiters, or run over several lines
                return
            values = line.rstrip(b" \r\n" + delimiter.encode())
            n_values = values.count(delimiter.encode()) + 1
            if n_values > n_columns:
                raise FallowError(
                    f"line {number:,} of {path} has {n_values} values and the first "
                    f"line {n_columns}; repair it, or split the file there"
                )


def _parse(
    path: Path, delimiter: str, names: Sequence[str], chosen: Sequence[int]
) -> np.ndarray:
    """Columns (rows, chosen); `names` are those of the first line, if it has any."""
    order = sorted(set(chosen))
    try:
        values = _load(path, delimiter, bool(names), order)
    except (ValueError, IndexError) as error:
        raise FallowError(
            f"{path} is not a table of numbers: {_reason(str(error), names)}"
        ) from None
    return values[:, [order.index(column) for column in chosen]]


def _load(
    path: Path,
    delimiter: str,
    has_names: bool,
    chosen: Sequence[int],
    dtype: type | str = float,
) -> np.ndarray:
    """Columns (rows, chosen) as NumPy reads them."""
    return np.loadtxt(
        path,
        dtype,
        delimiter=delimiter,
        skiprows=1 if has_names else 0,
        usecols=chosen,
        ndmin=2,
        comments=None,
        quotechar='"',
        encoding="utf-8-sig",
    )


def _reason(error: str, names: Sequence[str]) -> str:
    """What NumPy says of a table, with the line and the column that a person sees."""
    found = NO_NUMBER.match(error)
    if found is None:
        what = error.split(";")[0].rstrip(".")
        return f"{what}; repair that row or choose other columns"
    text, row, column = found[1], int(found[2]), int(found[3]) - 1
    name = printable(names[column], 60) if column < len(names) else str(column)
    where = f"in column '{name}', line {row + 1 + bool(names):,}"
    if not text.strip():
        return f"a value is missing {where}; repair that row or choose other columns"
    what = f"could not convert string '{printable(text, 60)}' {where}"
    if DECIMAL_COMMA.fullmatch(text):
        return f"{what}; write numbers with a decimal point"
    return f"{what}; repair that row or choose other columns"


def _has_rows(path: Path) -> bool:
    """Whether any line after the first holds something."""
    with path.open("rb") as file:
        file.readline()
        return any(line.strip() for line in file)


def _header(path: Path) -> tuple[list[str], str]:
    with path.open("rb") as file:
        line = file.readline(MAX_LINE_BYTES + 1)
    delimiter = max(DELIMITERS, key=lambda mark: line.count(mark.encode()))
    limit_columns(str(path), line.count(delimiter.encode()) + 1)
    if len(line) > MAX_LINE_BYTES:
        raise FallowError(
            f"the first line of {path} is longer than {MAX_LINE_BYTES:,} bytes; it "
            "must name the columns"
        )
    try:
        text = line.decode("utf-8-sig")
        names = next(csv.reader([text], delimiter=delimiter))
    except (UnicodeDecodeError, csv.Error) as error:
        raise FallowError(
            f"the first line of {path} cannot be read: {error}; write the names of the "
            "columns in UTF-8"
        ) from None
    if not any(name.strip() for name in names):
        raise FallowError(
            f"the first line of {path} must name the columns; it is empty"
        )
    return [name.strip() for name in names], delimiter


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


READER = Reader("csv", "tables with a header, a row for each time", matches, read)
