"""One thread adds while another samples or saves."""

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from fallow.replay import Buffer, Field

WMAR = "wmar:short_transitions=100,long_transitions=500"


@pytest.fixture(autouse=True)
def _frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def store(buffer: Buffer, start: int, stop: int) -> None:
    for t in range(start, stop):
        buffer.add(is_first=np.array([t % 10 == 0]), t=np.array([t]))


def check(batch: dict[str, np.ndarray]) -> None:
    """Sequences hold together: a next step, or `is_first`."""
    follows = np.diff(batch["t"], axis=1) == 1
    assert (follows | batch["is_first"][:, 1:]).all()


def while_storing(buffer: Buffer, work: Callable[[], None]) -> None:
    """Repeat some work until another thread has stored 4,000 steps."""
    store(buffer, 0, 300)
    thread = threading.Thread(target=store, args=(buffer, 300, 4300))
    thread.start()
    try:
        while thread.is_alive():
            work()
    finally:
        thread.join()


@pytest.mark.parametrize("rule", [WMAR, "reservoir:budget_transitions=500"])
def test_sampling(rule: str) -> None:
    buffer = Buffer({"t": Field((), "int64")}, 1, 2000, rule)
    while_storing(buffer, lambda: check(buffer.sample(32, 5)))
    assert buffer.sampled().n_steps > 0


def test_saving(tmp_path: Path) -> None:
    path = tmp_path / "replay"
    buffer, copy = (Buffer({"t": Field((), "int64")}, 1, 2000, WMAR) for _ in range(2))

    def save_and_load() -> None:
        buffer.save(path)
        copy.load(path)
        check(copy.sample(200, 5))

    while_storing(buffer, save_and_load)
