"""What the two HDF5 formats share: looking without reading, then reading one array.

A link to another file, or an array whose data lie in one, could read any file of this
machine, so both are refused.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fallow.core.errors import FallowError
from fallow.core.text import printable
from fallow.logs.limits import Budget, require_regular
from fallow.logs.readers.arrays import Declared
from fallow.logs.readers.reader import needs

MAGIC = b"\x89HDF\r\n\x1a\n"
MAX_DEPTH = 20
"""Groups inside each other; more is a loop of links."""
ENVIRONMENT_NAMES = ("env_spec", "env_id", "env_name", "environment")
"""Attributes that name the environment."""


def open_file(path: Path) -> Any:
    """An open `h5py.File`, to be used as a context."""
    return needs("h5py", "logs").File(require_regular(path), "r")


def datasets(group: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Every array below a group with its path, in the file's order.

    Raises:
        FallowError: a link leads to another file or around in a circle.
    """
    if depth > MAX_DEPTH:
        raise FallowError(
            f"{group.file.filename} has groups inside each other more than {MAX_DEPTH} "
            "deep; its links may lead around in a circle"
        )
    h5py = needs("h5py", "logs")
    for name in group:
        link = group.get(name, getlink=True)
        path = f"{prefix}{name}"
        if isinstance(link, h5py.ExternalLink):
            _refuse(group, path, f"leads to another file ({link.filename})")
        if not isinstance(link, h5py.HardLink):
            continue  # what a soft link names is found where it lies
        item = group[name]
        if isinstance(item, h5py.Group):
            yield from datasets(item, f"{path}/", depth + 1)
        elif isinstance(item, h5py.Dataset) and item.shape is not None:
            yield path, item


def declared(dataset: Any) -> Declared:
    """The shape and type of an array.

    Raises:
        FallowError: its data lie in another file.
    """
    if dataset.is_virtual or dataset.external:
        _refuse(dataset, dataset.name, "keeps its data in another file")
    return Declared(tuple(dataset.shape), dataset.dtype)


def load(path: Path, name: str, budget: Budget) -> np.ndarray:
    """All numbers of one array; the caller has taken its memory from the budget."""
    with open_file(path) as file:
        return values_of(file[name], budget)


def values_of(dataset: Any, budget: Budget) -> np.ndarray:
    """All numbers of an open array; a compressed block must fit the budget as well."""
    if dataset.chunks is not None:
        block = Declared(dataset.chunks, dataset.dtype)
        budget.check(block.n_bytes, f"one block of '{printable(dataset.name, 60)}'")
    return np.asarray(dataset[()])


def environment_of(attributes: Mapping[str, Any]) -> str:
    """The id of the environment in some attributes; empty without one."""
    for name in ENVIRONMENT_NAMES:
        if isinstance(value := attributes.get(name), bytes | str):
            text = value.decode(errors="replace") if isinstance(value, bytes) else value
            return environment_id(text)
    return ""


def environment_id(text: str) -> str:
    """The id in an environment's name or in its specification as JSON.

    Empty if the specification changes the observations: the layout is not known then.
    """
    if not text.lstrip().startswith("{"):
        return text
    try:
        spec = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    changes = json.dumps([spec.get("additional_wrappers"), spec.get("kwargs")])
    changed = "Observation" in changes or '"xml_file"' in changes
    return "" if changed else str(spec.get("id", ""))


def _refuse(item: Any, path: str, why: str) -> None:
    raise FallowError(
        f"{item.file.filename}: '{printable(path, 60)}' {printable(why, 100)}, and "
        "only data in the file itself are read; copy them into it"
    )
