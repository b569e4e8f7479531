"""One process at a time in a folder. The system lets go when that process dies."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from fallow.core.errors import FallowError


class Locked(FallowError):
    """Another process is at work here."""


@contextlib.contextmanager
def lock(path: str | Path) -> Iterator[None]:
    """Hold a lock file; that of a process that died is taken over.

    Raises:
        Locked: a living process holds it; the message names it.
    """
    import fcntl

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise Locked(
                f"{path.parent} is in use by process {holder}; wait until it is done, "
                "stop it, or choose another folder"
            ) from None
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()} on {os.uname().nodename}")
        file.flush()
        yield


def is_held(path: str | Path) -> bool:
    """Whether a living process holds a lock file."""
    import fcntl

    path = Path(path)
    if not path.exists():
        return False
    with path.open("a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False
