"""Files that are there whole or not at all."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """A place to write a file at, which becomes `path` when the block is done.

    What was at `path` stays until then, and for good if the block fails. Two processes
    may write the same file at once: the later one's stays.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part-{os.getpid()}")
    part.unlink(missing_ok=True)
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
