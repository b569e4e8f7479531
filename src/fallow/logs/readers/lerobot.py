"""LeRobot v3 data sets: parquet files of rows, and `meta/info.json` that names them.

data/chunk-000/file-000.parquet   action, observation.state, episode_index, …
meta/info.json                    fps, features.<name>.names
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fallow.core.errors import FallowError
from fallow.logs.columns import Columns
from fallow.logs.readers.flat import episode_lengths, episode_regime, episode_steps_s
from fallow.logs.readers.reader import Reader, needs
from fallow.logs.table import Array, Table, limit_columns

MAGIC = b"PAR1"
INFO = Path("meta") / "info.json"


def matches(path: Path, head: bytes) -> bool:
    """A data set's folder, or one parquet file."""
    return (path / INFO).is_file() if path.is_dir() else head.startswith(MAGIC)


def read(path: Path, columns: Columns) -> Table:
    """Columns of numbers and of lists of numbers; others are left aside."""
    files = sorted((path / "data").rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise FallowError(f"{path} has no data/*/*.parquet; download the data as well")
    info = _info(path)
    parquet = needs("pyarrow.parquet", "logs")
    schemas = [parquet.read_schema(file) for file in files]
    names = [n for n in schemas[0].names if _is_numeric(schemas[0].field(n).type)]

    def load(name: str) -> np.ndarray:
        parts = [_matrix(parquet.read_table(f, columns=[name])[name]) for f in files]
        return np.concatenate(parts)

    def column(name: str) -> np.ndarray:
        return load(name)[:, 0]

    n_rows = sum(parquet.read_metadata(file).num_rows for file in files)
    lengths = episode_lengths(str(path), names, column, n_rows, columns)
    step_s = 1 / float(info["fps"]) if info.get("fps") else None
    return Table(
        source=str(path),
        format="lerobot",
        arrays={name: _array(name, load, lengths, info) for name in names},
        control_step_s=step_s,
        step_s=episode_steps_s(names, column, lengths, columns),
        regime=episode_regime(names, column, lengths),
    )


def _info(path: Path) -> dict[str, Any]:
    """The data set's own description; empty for a single file outside of one."""
    roots = [path] if path.is_dir() else list(path.parents)[:3]
    for root in roots:
        if (root / INFO).is_file():
            content = json.loads((root / INFO).read_text())
            if isinstance(content, dict):
                return content
    return {}


def _is_numeric(kind: Any) -> bool:
    types = needs("pyarrow", "logs").types
    if (
        types.is_list(kind)
        or types.is_fixed_size_list(kind)
        or types.is_large_list(kind)
    ):
        kind = kind.value_type
    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    )


def _matrix(column: Any) -> np.ndarray:
    """(rows, width) of a parquet column of numbers or of equally long lists."""
    n_rows = len(column)
    flat = column.combine_chunks()
    while hasattr(flat, "flatten") and hasattr(flat.type, "value_type"):
        flat = flat.flatten()
    values = flat.to_numpy(zero_copy_only=False)
    if n_rows == 0 or len(values) % n_rows:
        raise FallowError(
            "a column of lists has lists of different lengths or is empty; choose "
            "columns with as many numbers in every row"
        )
    return values.reshape(n_rows, -1)


def _array(name: str, load: Any, lengths: np.ndarray, info: dict[str, Any]) -> Array:
    feature = info.get("features", {}).get(name, {})
    labels = _flat_names(feature.get("names"))
    width = int(np.prod(feature.get("shape") or [0])) or load(name).shape[1]
    limit_columns(name, width)
    kept = int(lengths.sum())

    def chosen(columns: Sequence[int]) -> np.ndarray:
        return load(name)[:kept, list(columns)]

    if len(labels) == width and width > 1:
        return Array(tuple(f"{name}.{x}" for x in labels), lengths, chosen, named=True)
    plain = (name,) if width == 1 else tuple(f"{name}[{i}]" for i in range(width))
    return Array(plain, lengths, chosen)


def _flat_names(names: Any) -> list[str]:
    """LeRobot writes names as a list, or as a list below one more name."""
    if isinstance(names, dict):
        names = next(iter(names.values()), [])
    return [str(name) for name in names] if isinstance(names, list) else []


READER = Reader("lerobot", "LeRobot v3 data sets (parquet)", matches, read)
