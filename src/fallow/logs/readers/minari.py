"""Minari data sets: one group an episode, with one observation more than actions.

In HDF5, data/main_data.hdf5:

    episode_0/observations (T + 1, n)   or a group of arrays
    episode_0/actions      (T, d)
    episode_0/infos/…      (T + 1, …)

In Arrow or parquet, data/0/part-0.arrow: T + 1 rows, the last action a filler.
Both have data/metadata.json, with the specification of the environment.
"""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from fallow.core.errors import FallowError
from fallow.logs.columns import Columns, refuse
from fallow.logs.limits import Budget
from fallow.logs.readers import columnar, hdf5
from fallow.logs.readers.episodes import arrays_of_episodes
from fallow.logs.readers.reader import Reader, read_json
from fallow.logs.table import LogTable

DATA_FILE = Path("data") / "main_data.hdf5"
METADATA = Path("data") / "metadata.json"
EPISODE = re.compile(r"episode_(\d{1,18})")
SUFFIXES = (".arrow", ".parquet")


def data_sets_folder() -> Path:
    """Where Minari keeps data sets by their ids, such as `D4RL/door/human-v2`."""
    given = os.environ.get("MINARI_DATASETS_PATH")
    return Path(given) if given else Path.home() / ".minari" / "datasets"


def matches(path: Path, head: bytes) -> bool:
    """A data set's folder, or an HDF5 file of episodes."""
    if path.is_dir():
        return (path / DATA_FILE).is_file() or bool(_episode_files(path))
    if not head.startswith(hdf5.MAGIC):
        return False
    with hdf5.open_file(path) as file:
        return bool(_episode_names(file))


def read(path: Path, columns: Columns, budget: Budget) -> LogTable:
    """Arrays of one or two dimensions that every episode has."""
    refuse(columns, str(path), "episode", "time", "episode_steps", "lag_ms")
    if path.is_dir() and not (path / DATA_FILE).is_file():
        return _read_columnar(path, budget)
    data_path = path / DATA_FILE if path.is_dir() else path
    with hdf5.open_file(data_path) as file:
        names = _episode_names(file)
        episodes = [
            {array: hdf5.declared(d) for array, d in hdf5.datasets(file[name])}
            for name in names
        ]
        environment = hdf5.environment_of(file.attrs)

    def load(array: str) -> list[np.ndarray]:
        with hdf5.open_file(data_path) as file:
            return [hdf5.values_of(file[f"{name}/{array}"], budget) for name in names]

    return LogTable(
        source=str(path),
        format="minari",
        arrays=arrays_of_episodes(episodes, load, budget),
        environment=environment or _environment(data_path.with_name(METADATA.name)),
    )


def _read_columnar(path: Path, budget: Budget) -> LogTable:
    files = _episode_files(path)
    episodes = [columnar.declared(file) for file in files]

    def load(array: str) -> list[np.ndarray]:
        return [columnar.load(file, array, budget) for file in files]

    return LogTable(
        source=str(path),
        format="minari",
        arrays=arrays_of_episodes(episodes, load, budget),
        environment=_environment(path / METADATA),
    )


def _episode_files(path: Path) -> list[Path]:
    """The file of each episode, in the order of their numbers."""
    folder = path / METADATA.parent
    if not (path / METADATA).is_file():
        return []
    numbered = [p for p in folder.iterdir() if p.name.isdecimal() and p.is_dir()]
    found = []
    for episode in sorted(numbered, key=lambda p: int(p.name)):
        parts = sorted(p for p in episode.iterdir() if p.suffix in SUFFIXES)
        if len(parts) > 1:
            raise FallowError(
                f"{episode} holds {len(parts)} files and Minari writes one an episode; "
                "remove those of another recording"
            )
        found += parts
    return found


def _environment(metadata: Path) -> str:
    if not metadata.is_file():
        return ""
    content = read_json(metadata)
    return hdf5.environment_of(content) if isinstance(content, dict) else ""


def _episode_names(file: Any) -> list[str]:
    """The groups of episodes, in order; a damaged name is not even text."""
    names = [n for n in file if isinstance(n, str) and EPISODE.fullmatch(n)]
    return sorted(names, key=lambda name: int(name.partition("_")[2]))


READER = Reader(
    "minari", "Minari data sets (HDF5 or Arrow) and their ids", matches, read
)
