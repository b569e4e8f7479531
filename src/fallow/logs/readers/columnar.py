"""Arrow and parquet files: what they declare, then one column at a time.

A column holds a number or a list of equally many numbers in every row; a structure
counts as its columns, `infos/qvel`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fallow.core.errors import FallowError
from fallow.core.text import printable
from fallow.logs.limits import Budget, require_regular
from fallow.logs.readers import parquet_footer
from fallow.logs.readers.arrays import Declared
from fallow.logs.readers.reader import needs

BATCH_ROWS = 1 << 16
"""Rows that are decoded at a time."""


def declared(path: Path) -> dict[str, Declared]:
    """Shape and type of every column of numbers, without reading rows."""
    if _is_parquet(path):
        return _declared_parquet(path)
    n_rows = _dataset(path).count_rows()
    return {
        name: Declared((n_rows,) if width is None else (n_rows, width), dtype)
        for name, width, dtype in _leaves(_dataset(path).schema)
        if width != UNKNOWN_WIDTH
    }


def load(path: Path, name: str, budget: Budget) -> np.ndarray:
    """All rows (n,) or (n, width) of one column.

    Raises:
        FallowError: rows differ in their width, or hold more than the file declares.
    """
    n_bytes, parts = 0, []
    for batch in _batches(path, name):
        values = _matrix(path, name, batch)
        n_bytes += values.nbytes
        budget.check(n_bytes, f"'{printable(name, 60)}'")
        parts.append(values)
    if not parts:
        raise FallowError(f"{path} has no rows; record something first")
    if len({part.shape[1:] for part in parts}) > 1:
        _refuse_ragged(path, name)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


UNKNOWN_WIDTH = -1
"""Of lists of any length: the schema does not say it."""


def _leaves(schema: Any, prefix: str = "") -> Iterator[tuple[str, int | None, Any]]:
    """Name, width (None of plain numbers) and type of every column of numbers."""
    types = needs("pyarrow", "logs").types
    for field in schema:
        kind, width = field.type, None
        if types.is_struct(kind):
            yield from _leaves(kind, f"{prefix}{field.name}/")
            continue
        if types.is_fixed_size_list(kind):
            kind, width = kind.value_type, kind.list_size
        elif types.is_list(kind) or types.is_large_list(kind):
            kind, width = kind.value_type, UNKNOWN_WIDTH
        if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
            yield f"{prefix}{field.name}", width, np.dtype(kind.to_pandas_dtype())


def _declared_parquet(path: Path) -> dict[str, Declared]:
    """As `declared`; the width of lists follows from how many numbers there are."""
    n_values = {}
    for name, n in parquet_footer.n_values_of(path).items():
        inner = name.removesuffix(".element").removesuffix(".item")
        n_values[inner.removesuffix(".list").removesuffix(".bag")] = n
    found = {}
    with _parquet(path) as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
    for name, width, dtype in _leaves(schema):
        n = n_values.get(name.replace("/", "."), 0)
        if width == UNKNOWN_WIDTH:
            width, rest = divmod(n, n_rows or 1)
            if rest or not width:
                continue  # lists of different lengths
        if n > n_rows * (1 if width is None else width):
            raise FallowError(
                f"{path}: '{printable(name, 60)}' holds {n:,} values in {n_rows:,} "
                "rows; the file is damaged"
            )
        found[name] = Declared((n_rows,) if width is None else (n_rows, width), dtype)
    return found


def _batches(path: Path, name: str) -> Iterator[Any]:
    """The column in pieces, as Arrow arrays."""
    if _is_parquet(path):
        with _parquet(path) as file:
            for batch in file.iter_batches(
                BATCH_ROWS, columns=[name.replace("/", ".")], use_threads=False
            ):
                yield _column(batch, name)
        return
    top = name.partition("/")[0]
    yield from (
        _column(batch, name)
        for batch in _dataset(path).to_batches(columns=[top], use_threads=False)
    )


def _column(batch: Any, name: str) -> Any:
    batch.validate(full=True)  # damaged offsets would read memory of others
    first, *rest = name.split("/")
    column = batch.column(first)
    for part in rest:
        column = column.field(part)
    return column


def _matrix(path: Path, name: str, column: Any) -> np.ndarray:
    """(rows,) or (rows, width) of an Arrow array of numbers or of equal lists."""
    n_rows, is_list = len(column), hasattr(column.type, "value_type")
    if column.null_count:
        _refuse_ragged(path, name)
    flat = column.flatten() if is_list else column
    values = np.asarray(flat.to_numpy(zero_copy_only=False))
    if not is_list:
        return values
    if n_rows == 0 or len(values) % n_rows:
        _refuse_ragged(path, name)
    if not hasattr(column.type, "list_size"):
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        if lengths.min() != lengths.max():
            _refuse_ragged(path, name)
    return values.reshape(n_rows, -1)


def _refuse_ragged(path: Path, name: str) -> None:
    raise FallowError(
        f"{path}: rows of '{printable(name, 60)}' hold different numbers of values or "
        "none; choose columns with as many in every row"
    )


def _is_parquet(path: Path) -> bool:
    with require_regular(path).open("rb") as file:
        return file.read(len(parquet_footer.MAGIC)) == parquet_footer.MAGIC


def _parquet(path: Path) -> Any:
    return needs("pyarrow.parquet", "logs").ParquetFile(path)


def _dataset(path: Path) -> Any:
    return needs("pyarrow.dataset", "logs").dataset(str(path), format="ipc")
