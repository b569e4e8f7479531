"""Ctrl-C and its like, held back while something must not be left half done."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

ENDING = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if hasattr(signal, name)
)
"""Ctrl-C, `kill`, and a terminal or connection that is gone."""


@contextlib.contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Hold signals that end a program back until the block is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        came.append(number)

    with _handled_by(note, *ENDING):
        yield
    for number in came[:1]:
        signal.raise_signal(number)


@contextlib.contextmanager
def ended_like_ctrl_c() -> Iterator[None]:
    """Let `kill` and a lost connection raise KeyboardInterrupt, as Ctrl-C does.

    Signals that are ignored, as under nohup, stay ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    others = [
        number
        for number in ENDING
        if number != signal.SIGINT and signal.getsignal(number) == signal.SIG_DFL
    ]
    with _handled_by(signal.default_int_handler, *others):
        yield


@contextlib.contextmanager
def _handled_by(handler: "signal._HANDLER", *numbers: int) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, signal.SIG_DFL if old is None else old)
