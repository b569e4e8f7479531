"""Files that are written completely or not at all."""

import contextlib
import errno
import itertools
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

from fallow.core.errors import FallowError

PART = re.compile(r"\.part-(?P<host>[^/]*)-(?P<pid>\d+)-\d+$")
"""How the name of an unfinished file ends: host, process, and a count."""
_COUNT = itertools.count()


@contextlib.contextmanager
def write_atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path; it replaces `path` when the block ends without an error.

    The file at `path` stays until then, and for good if the block fails. Two processes
    may write the same file at once: the last one to finish wins. Temporary files of
    killed processes of this host are removed.
    """
    path = Path(path)
    if path.is_dir():  # said now, before the work and by its own name
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path.parent, path.name)
    part = path.with_name(f"{path.name}{_suffix()}")
    try:
        yield part
        os.replace(part, path)
    except OSError as error:
        if str(error.filename) == str(part):  # whose name nobody gave
            error.filename = str(path)
        raise
    finally:
        part.unlink(missing_ok=True)


def require_place(path: str | Path, flag: str) -> None:
    """Raise if a file cannot be written there, before the work that fills it.

    Raises:
        FallowError: a folder is there already.
        PermissionError: the folder around it cannot be written to.
    """
    if Path(path).is_dir():
        raise FallowError(f"{flag} is {path}, which is a folder; name a file in it")
    around = next(folder for folder in Path(path).absolute().parents if folder.exists())
    if not os.access(around, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def write_text(path: str | Path, text: str) -> None:
    """Replace the text of a file atomically."""
    with write_atomic(path) as part:
        part.write_text(text, encoding="utf-8")


def set_aside(path: Path) -> Path:
    """Rename a damaged file or folder to `NAME.damaged-N`; returns the new path."""
    number = 0
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    os.replace(path, aside)
    return aside


def is_leftover(path: Path) -> bool:
    """Whether a path has the name of an unfinished file."""
    return PART.search(path.name) is not None


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Remove unfinished files, of `name` if given, whose process was killed."""
    for path in folder.glob(f"{_literal(name)}*.part-*"):
        found = PART.search(path.name)
        if found and found["host"] == _host() and not _is_alive(int(found["pid"])):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def _literal(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


def _suffix() -> str:
    return f".part-{_host()}-{os.getpid()}-{next(_COUNT)}"


def _host() -> str:
    return re.sub(r"[^\w.]", "_", socket.gethostname())


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
