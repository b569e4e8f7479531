"""Ctrl-C at any moment, also while modules are imported."""

import os
import signal
import threading
from types import FrameType

SOON_S, AGAIN_S = 0.05, 3.0
"""Until an interrupt that came during an import is raised; and until one that a library
swallowed is raised again."""


def raise_safely() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt, but never inside an import.

    Extension modules turn an interrupt of their import into other errors, or lose it.
    """
    signal.signal(signal.SIGINT, _handle)


def _handle(_: int, frame: FrameType | None) -> None:
    is_importing = _is_importing(frame)
    timer = threading.Timer(SOON_S if is_importing else AGAIN_S, _interrupt)
    timer.daemon = True
    timer.start()
    if not is_importing:
        raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)
