"""The table of results: one row for each evaluation of a branch, as csv.

Everything that is shown of a study is a function of this table and of the histories.
"""

import csv
import dataclasses
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fallow.core import files
from fallow.core.errors import FallowError
from fallow.core.legacy import ALGORITHM


@dataclass(frozen=True)
class Label:
    """The columns that name a branch in all its rows."""

    task: str
    agent: str
    preset: str
    condition: str
    """As the plan names it, frames counted from the branch point."""
    rule: str
    seed: int
    trunk: str
    """Id of the run that the branch continues; empty if there was none."""
    trunk_fingerprint: str
    """Of that run as it was trained: two trainings of one recipe differ. Empty: there
    was none, or it is not known."""


@dataclass(frozen=True)
class ResultRow(Label):
    """One evaluation of one branch: a row of the table."""

    frame: int
    """Of the agent's clock, trunk included."""
    branch_frame: int
    """Since the branch point."""
    regime: int
    """In force at the evaluation."""
    updates: int
    mean_return: float
    returns: tuple[float, ...]
    """Of each episode."""
    auc: float | None = None
    """Age–staleness AUC of the full history; None where one kind is missing."""
    stale_share: float | None = None
    """Of the transitions sampled since the last evaluation; None if there were none."""
    wall_s: float | None = None
    """Seconds of the fleet's work since its beginning, pauses left out."""
    algorithm: int = ALGORITHM
    """Version of what `condition` and `rule` mean; see `core.legacy`."""


COLUMNS = tuple(field.name for field in dataclasses.fields(ResultRow))
INTEGERS = ("seed", "frame", "branch_frame", "regime", "updates", "algorithm")
PERHAPS = ("auc", "stale_share", "wall_s")
LATER = {"trunk_fingerprint": 2, "algorithm": 3}
"""Columns that earlier tables do not have, and the algorithm that they came with."""


def read_results(path: str | Path, unfinished: bool = False) -> list[ResultRow]:
    """The rows of a table; without a last line that has no end, if `unfinished`.

    Raises:
        FallowError: there is no table, or its columns or a value are not of this kind.
    """
    path = Path(path)
    if not path.is_file():
        raise FallowError(f"there is no table of results at {path}")
    try:
        text = path.read_bytes().decode("utf-8")
        if unfinished:
            text = text[: text.rfind("\n") + 1]
        reader = csv.DictReader(io.StringIO(text, newline=""))
        _check_columns(path, reader.fieldnames or ())
        return [_row(path, reader.line_num, row) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise FallowError(f"{path} is damaged: {error}") from None


def _check_columns(path: Path, names: Sequence[str]) -> None:
    missing = ", ".join(sorted(set(COLUMNS) - set(names) - set(LATER)))
    strange = ", ".join(sorted(set(names) - set(COLUMNS)))
    if missing or strange:
        raise FallowError(
            f"{path} is not a table of results: missing columns {missing or 'none'}; "
            f"unknown columns {strange or 'none'}"
        )


def write_results(path: str | Path, rows: Iterable[ResultRow]) -> Path:
    """Replace a table atomically."""
    with (
        files.write_atomic(path) as part,
        part.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(_texts(row) for row in rows)
    return Path(path)


def _texts(row: ResultRow) -> list[str]:
    values = dataclasses.asdict(row)
    values["returns"] = " ".join(f"{value:.2f}" for value in row.returns)
    for name in ("mean_return", *PERHAPS):
        value = values[name]
        values[name] = "" if value is None else f"{value:.6g}"
    return [str(values[name]) for name in COLUMNS]


def _row(path: Path, line: int, texts: dict[str, Any]) -> ResultRow:
    missing = [algorithm for name, algorithm in LATER.items() if name not in texts]
    before = {"trunk_fingerprint": "", "algorithm": min(missing, default=0) - 1}
    values: dict[str, Any] = before | texts
    try:
        values |= {name: int(values[name]) for name in INTEGERS}
        values["mean_return"] = float(texts["mean_return"])
        values["returns"] = tuple(float(one) for one in texts["returns"].split())
        for name in PERHAPS:
            values[name] = float(texts[name]) if texts[name] else None
    except (ValueError, TypeError, AttributeError) as error:
        raise FallowError(f"{path}, line {line}: {error}") from None
    return ResultRow(**values)
