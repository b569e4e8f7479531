"""LeRobot v3 data sets: parquet files of rows, and `meta/info.json` that names them.

data/chunk-000/file-000.parquet   action, observation.state, episode_index, …
meta/info.json                    fps, features.<name>.names
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fallow.core.errors import FallowError
from fallow.logs.columns import Columns
from fallow.logs.limits import Budget
from fallow.logs.readers import columnar, parquet_footer
from fallow.logs.readers.arrays import Declared, NamedArrays, table_of_arrays
from fallow.logs.readers.reader import Reader, read_json
from fallow.logs.table import Array, LogTable

INFO = Path("meta") / "info.json"


def matches(path: Path, head: bytes) -> bool:
    """A data set's folder, or one parquet file."""
    if path.is_dir():
        return (path / INFO).is_file()
    return head.startswith(parquet_footer.MAGIC)


def read(path: Path, columns: Columns, budget: Budget) -> LogTable:
    """Columns of numbers and of lists of equally many numbers; others are left."""
    files = sorted((path / "data").rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise FallowError(f"{path} has no data/*/*.parquet; download the data as well")
    info = _info(path)
    parts = [columnar.declared(file) for file in files]

    def load(name: str) -> np.ndarray:
        return np.concatenate([columnar.load(file, name, budget) for file in files])

    table = table_of_arrays(
        NamedArrays(_together(parts), load, budget),
        columns,
        source=str(path),
        format="lerobot",
        control_step_s=_step_s(info),
    )
    arrays = {name: _named(name, array, info) for name, array in table.arrays.items()}
    return replace(table, arrays=arrays)


def _together(parts: list[dict[str, Declared]]) -> dict[str, Declared]:
    """The columns that all files have with the same width, rows added up."""
    found = {}
    for name, first in parts[0].items():
        every = [part[name] for part in parts if name in part]
        if len({d.shape[1:] for d in every}) == 1 and len(every) == len(parts):
            n_rows = sum(d.shape[0] for d in every)
            found[name] = Declared((n_rows, *first.shape[1:]), first.dtype)
    return found


def _info(path: Path) -> dict[str, Any]:
    """The data set's own description; empty for a single file outside of one."""
    roots = [path] if path.is_dir() else list(path.absolute().parents)[:3]
    for root in roots:
        if (root / INFO).is_file():
            content = read_json(root / INFO)
            return content if isinstance(content, dict) else {}
    return {}


def _step_s(info: dict[str, Any]) -> float | None:
    fps = info.get("fps")
    return 1 / fps if isinstance(fps, int | float) and fps > 0 else None


def _named(name: str, array: Array, info: dict[str, Any]) -> Array:
    """The array with the names that the description gives its columns."""
    features = info.get("features")
    feature = features.get(name) if isinstance(features, dict) else None
    labels = _flat_names(feature.get("names")) if isinstance(feature, dict) else []
    if len(labels) != len(array.columns) or len(labels) < 2:
        return array
    return replace(array, columns=tuple(f"{name}.{x}" for x in labels), named=True)


def _flat_names(names: Any) -> list[str]:
    """LeRobot writes names as a list, or as a list below one more name."""
    if isinstance(names, dict):
        names = next(iter(names.values()), [])
    return [str(name) for name in names] if isinstance(names, list) else []


READER = Reader("lerobot", "LeRobot v3 data sets (parquet)", matches, read)
