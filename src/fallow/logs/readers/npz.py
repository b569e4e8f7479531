"""NumPy archives: arrays by name, flat with episode marks or (episodes, steps, …)."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from fallow.core.errors import FallowError
from fallow.logs.columns import Columns
from fallow.logs.readers.flat import episode_lengths, episode_regime, episode_steps_s
from fallow.logs.readers.reader import Reader
from fallow.logs.table import Array, Table, of_array

STEP_NAMES = ("control_step_s", "dt")


def matches(path: Path, head: bytes) -> bool:
    """Whether the file is a zip archive."""
    return head.startswith(b"PK\x03\x04")


def read(path: Path, columns: Columns) -> Table:
    """All arrays; those of another number of rows than the actions are left aside."""
    _refuse_pickles(path)
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    _refuse_mixed_steps(path, arrays)
    scalars = {name: a for name, a in arrays.items() if a.size == 1}
    rows = {name: a for name, a in arrays.items() if a.ndim >= 1 and a.size > 1}
    cubes = {name: a for name, a in rows.items() if a.ndim == 3}
    common: dict[str, Any] = {
        "source": str(path),
        "format": "npz",
        "control_step_s": next(
            (float(scalars[name].flat[0]) for name in STEP_NAMES if name in scalars),
            None,
        ),
    }
    if cubes and columns.episode_steps is None:
        regime = rows.get("regime")
        n_episodes = len(next(iter(cubes.values())))
        known = regime is not None and regime.shape == (n_episodes,)
        return Table(
            arrays={name: _of_cube(name, cube) for name, cube in cubes.items()},
            regime=regime.astype(np.int64) if known and regime is not None else None,
            **common,
        )
    return Table(**_flat(str(path), rows, columns), **common)


def _flat(source: str, rows: dict[str, np.ndarray], columns: Columns) -> dict[str, Any]:
    """Arrays of equal length, one row for each time."""
    tables = {name: a for name, a in rows.items() if a.ndim <= 2}
    if not tables:
        raise FallowError(f"{source} holds no array with rows; it is not a log")
    n_rows = max(len(a) for a in tables.values())
    marks = {n: a for n, a in tables.items() if a.ndim == 1 and len(a) == n_rows}
    lengths = episode_lengths(source, marks, marks.__getitem__, n_rows, columns)
    kept = int(lengths.sum())
    for name, values in tables.items():
        if values.ndim == 2 and len(values) != n_rows:
            raise FallowError(
                f"{source}: '{name}' has {len(values)} rows and others {n_rows}; "
                "record every array in every row"
            )
    whole = {name: a for name, a in tables.items() if len(a) == n_rows}
    return {
        "arrays": {
            name: of_array(name, a[:kept], lengths) for name, a in whole.items()
        },
        "step_s": episode_steps_s(marks, marks.__getitem__, lengths, columns),
        "regime": episode_regime(marks, marks.__getitem__, lengths),
    }


def _of_cube(name: str, cube: np.ndarray) -> Array:
    n_episodes, n_steps, width = cube.shape
    lengths = np.full(n_episodes, n_steps)
    return of_array(name, cube.reshape(n_episodes * n_steps, width), lengths)


def _refuse_pickles(path: Path) -> None:
    """Look at the types only: an array of objects would be a pickle."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if any(name.endswith(".pkl") for name in names):
            _refuse(path, "a pickle")
        for name in (name for name in names if name.endswith(".npy")):
            with archive.open(name) as member:
                version = np.lib.format.read_magic(member)
                head = (
                    np.lib.format.read_array_header_1_0
                    if version == (1, 0)
                    else np.lib.format.read_array_header_2_0
                )
                if head(member)[2].hasobject:
                    _refuse(path, f"a pickle in '{name[:-4]}'")


def _refuse(path: Path, what: str) -> None:
    raise FallowError(
        f"{path} holds {what}, which could run any program, and is not opened; write "
        "plain arrays with numpy.savez"
    )


def _refuse_mixed_steps(path: Path, arrays: dict[str, np.ndarray]) -> None:
    for name in STEP_NAMES:
        steps = arrays.get(name)
        if steps is not None and steps.size > 1 and steps.min() != steps.max():
            raise FallowError(
                f"{path} mixes control steps: '{name}' goes from {steps.min():g} to "
                f"{steps.max():g} s, and the response depends on the step; diagnose "
                "them apart"
            )


READER = Reader("npz", "NumPy archives of named arrays", matches, read)
