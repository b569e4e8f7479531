"""Limits for files from outside: memory is checked before use, and no read blocks."""

import os
import stat
from pathlib import Path

from fallow.core.errors import FallowError
from fallow.core.sizes import machine_memory, size_text

SHARE = 4
"""One part in so many of the machine's memory is the limit unless it is given."""
KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class Budget:
    """Memory for one log; sizes that a file declares are taken before it is loaded."""

    def __init__(self, source: str, limit_bytes: int | None = None) -> None:
        self.source = source
        self.limit_bytes = limit_bytes or machine_memory() // SHARE
        self._taken = 0

    @property
    def block_bytes(self) -> int:
        """What one compressed block may hold; unpacking takes twice as much."""
        return self.limit_bytes // 4

    def take(self, n_bytes: int, what: str) -> None:
        """Count memory that stays in use until the log is read.

        Raises:
            FallowError: this and what was taken before exceed the limit.
        """
        self.check(self._taken + n_bytes, what)
        self._taken += n_bytes

    def check(self, n_bytes: int, what: str) -> None:
        """Raise where `n_bytes` alone exceed the limit."""
        if n_bytes > self.limit_bytes:
            raise FallowError(
                f"{self.source} needs {size_text(n_bytes)} of memory for {what}, and "
                f"{size_text(self.limit_bytes)} is the limit; raise it with "
                "--max-memory, or diagnose a part of the log"
            )


def is_regular(path: Path) -> bool:
    """Whether a path is a file with contents: no pipe, socket or device."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def require_regular(path: Path) -> Path:
    """The path of a file that can be read without waiting for anybody.

    Raises:
        FallowError: the file is missing, or it is a pipe, a socket or a device.
    """
    if not path.exists():
        raise FallowError(f"there is no file or folder at {path}")
    mode = path.stat().st_mode
    for matches, kind in KINDS:
        if matches(mode):
            raise FallowError(f"{path} is {kind}, not a file; copy its contents first")
    return path
