"""One process at a time in a folder; the system releases the lock when it dies."""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import filelock

from fallow.core.errors import FallowError

HOLDER = ".holder"
"""Suffix of the file that names the process that holds a lock."""
PATIENCE_S = 0.3
"""How long to wait for a lock: `is_held` takes one for a moment."""


class Locked(FallowError):
    """Another process holds the lock."""


@contextlib.contextmanager
def lock(path: str | Path) -> Iterator[None]:
    """Hold a lock file; the lock of a process that died is free.

    Raises:
        Locked: another process holds it; the message names the process.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    holder = path.with_name(path.name + HOLDER)
    held = filelock.FileLock(path, timeout=PATIENCE_S)
    try:
        held.acquire()
    except filelock.Timeout:
        raise Locked(
            f"{path.parent} is in use by process {_read(holder)}; wait until it is "
            "done, stop it, or choose another folder"
        ) from None
    try:
        holder.write_text(f"{os.getpid()} on {socket.gethostname()}", encoding="utf-8")
        yield
    finally:
        held.release()


def is_held(path: str | Path) -> bool:
    """Whether a running process holds a lock file; False where that cannot be known."""
    path = Path(path)
    if not path.exists():
        return False
    probe = filelock.FileLock(path, timeout=0)
    try:
        with probe:
            return False
    except filelock.Timeout:
        return True
    except OSError:  # a folder that may only be read
        return False


def is_lock(path: Path) -> bool:
    """Whether a path has the name of a lock file or of its holder."""
    return path.name.removesuffix(HOLDER).endswith("lock")


def _read(holder: Path) -> str:
    try:
        return holder.read_text(encoding="utf-8").strip() or "unknown"
    except OSError:
        return "unknown"
