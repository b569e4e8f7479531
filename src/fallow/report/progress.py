"""A progress bar for what takes longer than a second."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_S = 1.0


@contextmanager
def progress(total: int, what: str) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each of `total` steps.

    The bar appears on the error stream after a second, on a terminal only, and goes.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    bar = Progress(console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task(what, total=total)
    timer = threading.Timer(PATIENCE_S, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda: bar.advance(task)
    finally:
        timer.cancel()
        timer.join()
        if bar.live.is_started:
            bar.stop()
