"""One reader a format, and `read_log`, which knows them all.

A reader opens the file itself with a small library; the library that wrote the log is
never needed. Nothing is ever unpickled.
"""

from pathlib import Path

from fallow.core.errors import FallowError
from fallow.core.registry import Registry
from fallow.logs.assemble import assemble
from fallow.logs.columns import Columns
from fallow.logs.log import Log
from fallow.logs.readers import csv, d4rl, history, lerobot, mcap, minari, npz
from fallow.logs.readers.reader import PICKLES, Reader, head_of

READERS: Registry[Reader] = Registry("log format")
for _module in (history, npz, minari, d4rl, lerobot, mcap, csv):
    READERS.add(_module.READER.name, _module.READER)


def read_log(path: str | Path, columns: Columns | None = None) -> Log:
    """Read a log of any known format.

    Raises:
        FallowError: one sentence on what is wrong with the file or the choice.
    """
    path = Path(path)
    reader = reader_of(path)
    columns = columns or Columns()
    try:
        return assemble(reader.read(path, columns), columns)
    except FallowError:
        raise
    except MemoryError:
        raise FallowError(
            f"{path} does not fit into memory; diagnose a part of it"
        ) from None
    except Exception as error:  # a parser may raise anything on a broken file
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FallowError(
            f"{path} cannot be read as {reader.name}: {reason.rstrip('.')}; it may be "
            "cut short or damaged"
        ) from error


def reader_of(path: Path) -> Reader:
    """The reader of a file, by its content rather than its name."""
    if not path.exists():
        raise FallowError(f"there is no file or folder at {path}")
    head = head_of(path)
    if head.startswith(PICKLES) or path.suffix in (".pkl", ".pickle", ".pt", ".pth"):
        raise FallowError(
            f"{path} holds a pickle, which could run any program, and is not opened; "
            "write its arrays with numpy.savez"
        )
    for reader in READERS.values():
        if reader.matches(path, head):
            return reader
    if path.is_file() and path.stat().st_size == 0:
        raise FallowError(f"{path} is empty; record something first")
    raise FallowError(
        f"{path} is not a log of a known format; known: {', '.join(READERS)}"
    )


def logs_in(paths: tuple[Path, ...]) -> list[Path]:
    """The logs below some paths: files and data sets as they are, folders searched.

    A folder that is itself a data set (LeRobot, Minari, MCAP recordings) is one log.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir() or any(r.matches(path, b"") for r in READERS.values()):
            found.append(path)
            continue
        inside = [p for p in sorted(path.iterdir()) if _is_log(p)]
        if not inside:
            raise FallowError(
                f"{path} holds no log of a known format; known: {', '.join(READERS)}"
            )
        found += inside
    return found


def _is_log(path: Path) -> bool:
    head = head_of(path)
    return any(reader.matches(path, head) for reader in READERS.values())


__all__ = ["READERS", "Columns", "Log", "Reader", "logs_in", "read_log"]
