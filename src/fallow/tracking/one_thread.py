"""One BLAS thread while a tracker works.

A tracker multiplies small matrices, which several threads make slower, many times so on
a busy machine. With one thread results also do not depend on the number of cores.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_inside: list[object] = []  # the limiter, once for every tracker at work


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread; the old limits return when the last tracker is done."""
    with _lock:
        first = (
            _inside[0] if _inside else _controller().limit(limits=1, user_api="blas")
        )
        _inside.append(first)
    try:
        yield
    finally:
        with _lock:
            limiter = _inside.pop()
            if not _inside:
                limiter.restore_original_limits()  # type: ignore[attr-defined]


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
