"""Progress of what takes longer than a second: a bar, or lines in a pipe."""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

PATIENCE_S = 1.0
"""After which a bar appears."""
LINE_S = 30.0
"""Longest time without a line where there is no terminal."""


class Lines:
    """Decides when a view prints its next line of progress where it has no bar."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._last_s = time.monotonic()

    def due(self, has_news: bool = False) -> bool:
        """Whether to print now: a line without news, at most every `LINE_S`."""
        now_s = time.monotonic()
        is_due = has_news or (self._wanted and now_s - self._last_s >= LINE_S)
        if is_due:
            self._last_s = now_s
        return is_due


@contextmanager
def progress(total: int, what: str) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each of `total` steps.

    The bar appears on the error stream after a second, on a terminal only, and goes.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    bar = _Bar(total, what)
    timer = threading.Timer(PATIENCE_S, bar.show)
    timer.daemon = True
    timer.start()
    try:
        yield bar.step
    finally:
        timer.cancel()
        timer.join()
        bar.hide()


def track(items: Sequence[Any], what: str) -> Iterator[Any]:
    """Yield items, with a bar that moves after each."""
    with progress(len(items), what) as tick:
        for item in items:
            yield item
            tick()


class _Bar:
    """Counts from the start, and appears after a second."""

    def __init__(self, total: int, what: str) -> None:
        self._total, self._what, self._done = total, what, 0
        self._drawn: Any = None

    def show(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        drawn = Progress(console=Console(stderr=True), transient=True)
        drawn.add_task(self._what, total=self._total, completed=self._done)
        drawn.start()
        self._drawn = drawn

    def step(self) -> None:
        self._done += 1
        if self._drawn is not None:
            self._drawn.update(self._drawn.task_ids[0], completed=self._done)

    def hide(self) -> None:
        if self._drawn is not None:
            self._drawn.stop()
