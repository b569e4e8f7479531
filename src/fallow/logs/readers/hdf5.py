"""What the two HDF5 formats share: opening, and looking without reading."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fallow.logs.readers.reader import needs

MAGIC = b"\x89HDF\r\n\x1a\n"


def open_file(path: Path) -> Any:
    """An open `h5py.File`, to be used as a context."""
    return needs("h5py", "logs").File(path, "r")


def datasets(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every array below a group with its path, in the file's order."""
    for name, item in group.items():
        if hasattr(item, "shape"):
            yield f"{prefix}{name}", item
        else:
            yield from datasets(item, f"{prefix}{name}/")
