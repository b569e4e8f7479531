"""The time that a fleet spends on each kind of work."""

import contextlib
import time
from collections.abc import Iterator, Mapping

WAITING, PHYSICS, EVALUATING, SAVING = "waiting", "physics", "evaluating", "saving"
"""For the device; in the worlds; evaluating; writing checkpoints."""
ACTING, STORING = "starting acts", "storing"
SAMPLING, LEARNING = "sampling", "starting updates"
TRACKING = "waiting for trackers"
"""A part of storing."""
CONCURRENT = (SAMPLING, LEARNING)
"""Done by a second thread while the first one waits or simulates."""


class Clock:
    """Seconds by what they were spent on.

    What is not named here is Python in between. While a fleet waits the device learns,
    so a fleet that mostly waits is as fast as its device.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def on(self, what: str) -> Iterator[None]:
        """Count the time of a block; blocks of one thread must not be nested."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - begin
            self.seconds[what] = self.seconds.get(what, 0.0) + spent


def shares(seconds: Mapping[str, float], total_s: float) -> dict[str, float]:
    """Shares of learner, physics, evaluating, saving, trackers, other work; sum 1."""
    named = {
        "learner": seconds.get(WAITING, 0.0),
        "physics": seconds.get(PHYSICS, 0.0),
        "evaluating": seconds.get(EVALUATING, 0.0),
        "saving": seconds.get(SAVING, 0.0),
        "trackers": seconds.get(TRACKING, 0.0),
    }
    named["host"] = max(total_s - sum(named.values()), 0.0)
    total = max(sum(named.values()), 1e-9)
    return {name: spent / total for name, spent in named.items()}
