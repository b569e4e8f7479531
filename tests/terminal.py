"""Commands in a real terminal: a pseudo-terminal of some width."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")


class Ended(NamedTuple):
    """How a command ended in a terminal."""

    code: int
    raw: str
    """All that it wrote, with escape codes."""

    @property
    def text(self) -> str:
        """What a person reads."""
        return ESCAPES.sub("", self.raw).replace("\r", "")


def in_terminal(
    *arguments: object,
    folder: Path | None = None,
    columns: int = 100,
    interrupt: Callable[[str], bool] = lambda seen: False,
    timeout_s: float = 180,
) -> Ended:
    """Run `fallow` in a terminal; press Ctrl-C once when `interrupt` says so."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color"}
    for name in ("COLUMNS", "LINES", "NO_COLOR", "CI"):
        environment.pop(name, None)
    process = subprocess.Popen(
        [sys.executable, "-m", "fallow.cli", *(str(each) for each in arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    seen, pressed = "", False
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        ready, _, _ = select.select([ours], [], [], 0.2)
        if ready:
            try:
                content = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not content:
                break
            seen += content.decode("utf-8", "replace")
        if not pressed and interrupt(seen):
            pressed = True
            process.send_signal(signal.SIGINT)
    else:
        process.kill()
    os.close(ours)
    return Ended(process.wait(), seen)
