"""One reader a format, and `read_log`, which knows them all.

A reader opens the file itself with a small library; the library that wrote the log is
never needed. Nothing is ever unpickled.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from fallow.core.errors import FallowError
from fallow.core.registry import Registry
from fallow.core.text import printable
from fallow.logs.assemble import assemble
from fallow.logs.columns import Columns
from fallow.logs.limits import Budget, require_regular
from fallow.logs.log import Log
from fallow.logs.readers import csv, d4rl, history, lerobot, mcap, minari, npz, ros
from fallow.logs.readers.reader import PICKLES, Reader, head_of, reason_of

PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf")
"""How archives begin: gzip, bzip2, xz, zstd, 7z."""
JSON_LINES = (".jsonl", ".ndjson")

READERS: Registry[Reader] = Registry("log format")
for _module in (history, npz, minari, d4rl, lerobot, mcap, ros, csv):
    READERS.add(_module.READER.name, _module.READER)


def read_log(path: str | Path, columns: Columns | None = None) -> Log:
    """Read a log of any known format: a file, a folder or the id of a Minari data set.

    With FALLOW_DEBUG=1 in the environment, what a library raises is not turned into a
    sentence.

    Args:
        path: where the log is.
        columns: which columns hold what; guessed, and noted, unless given.

    Returns:
        Actions and velocities of all its episodes.

    Raises:
        FallowError: one sentence on what is wrong with the file or the choice.
    """
    path, columns = resolved(Path(path)), columns or Columns()
    budget = Budget(str(path), columns.max_memory_bytes)
    with one_sentence(path):
        reader = reader_of(path)
        return assemble(reader.read(path, columns, budget), columns, budget)


@contextlib.contextmanager
def one_sentence(path: Path) -> Iterator[None]:
    """Turn whatever is raised inside into one printable sentence about the log."""
    try:
        yield
    except FallowError as error:
        named = str(error) if str(path) in str(error) else f"{path}: {error}"
        error.args = (printable(named),)
        raise
    except MemoryError:
        raise FallowError(
            f"{printable(str(path))} does not fit into memory; diagnose a part of it"
        ) from None
    except Exception as error:  # a parser may raise anything on a broken file
        if os.environ.get("FALLOW_DEBUG"):
            raise
        raise FallowError(
            f"{printable(str(path))} cannot be read: {reason_of(error)}; it may be cut "
            "short or damaged"
        ) from error


def resolved(path: Path) -> Path:
    """The path, or the folder of the Minari data set with that id."""
    if path.exists() or path.is_absolute():
        return path
    data_set = minari.data_sets_folder() / path
    return data_set if data_set.is_dir() else path


def reader_of(path: Path) -> Reader:
    """The reader of a file, by its content rather than its name."""
    if not path.is_dir():
        require_regular(path)
    head = head_of(path)
    if head.startswith(PICKLES) or path.suffix in (".pkl", ".pickle", ".pt", ".pth"):
        raise FallowError(
            f"{path} holds a pickle, which could run any program, and is not opened; "
            "write its arrays with numpy.savez"
        )
    for reader in READERS.values():
        if _matches(reader, path, head):
            return reader
    if path.is_file() and path.stat().st_size == 0:
        raise FallowError(f"{path} is empty; record something first")
    if path.is_file() and not os.access(path, os.R_OK):
        raise FallowError(f"{path} cannot be read: permission denied")
    raise FallowError(
        f"{path} is not a log of a known format; known: {', '.join(READERS)}; "
        f"{_remedy(path, head)}"
    )


def _remedy(path: Path, head: bytes) -> str:
    """What to do with a file of a format that is common and not read."""
    if head.startswith(PACKED):
        return "unpack it first"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "it looks like UTF-16: save it as UTF-8"
    if path.suffix.lower() in JSON_LINES:
        return "fallow track reads JSON lines"
    if path.suffix.lower() == ".json":
        return "write one JSON object a line, as .jsonl, which fallow track reads"
    return "write its columns as CSV or npz"


def logs_in(paths: tuple[Path, ...]) -> list[Path]:
    """The logs below some paths: files and data sets as they are, folders searched.

    A folder that is itself a data set (LeRobot, Minari, recordings) is one log. Pipes,
    sockets and devices in a folder are skipped.
    """
    found: list[Path] = []
    for path in map(resolved, paths):
        if not path.is_dir() or is_log(path):
            found.append(path)
            continue
        inside = [p for p in sorted(path.iterdir()) if is_log(p)]
        if not inside:
            raise FallowError(
                f"{printable(str(path))} holds no log of a known format; known: "
                f"{', '.join(READERS)}"
            )
        found += inside
    return found


def is_log(path: Path) -> bool:
    """Whether a path is a log of a known format."""
    head = head_of(path)
    return any(_matches(reader, path, head) for reader in READERS.values())


def _matches(reader: Reader, path: Path, head: bytes) -> bool:
    """Whether a reader recognises a path; what it cannot look into it does not."""
    try:
        return reader.matches(path, head)
    except Exception:  # a library may raise anything on a broken file
        return False


__all__ = ["READERS", "Columns", "Log", "Reader", "logs_in", "read_log"]
