import pytest

from fallow.agents import clock
from fallow.agents.clock import Clock, shares


@pytest.fixture
def time(monkeypatch) -> list[float]:
    """What the clock reads; append to it to let time pass."""
    now = [0.0]
    monkeypatch.setattr(clock.time, "perf_counter", lambda: now[-1])
    return now


def test_times_add_up_even_where_something_fails(time) -> None:
    clock = Clock()
    for until in (3.0, 5.0):
        with clock.on("physics"):
            time.append(until)
    with pytest.raises(ValueError, match="bad"), clock.on("storing"):
        time.append(9.0)
        raise ValueError("bad")
    assert clock.seconds == {"physics": 5.0, "storing": 4.0}


def test_shares_sum_to_one() -> None:
    spent = {"waiting": 6.0, "physics": 1.0, "saving": 0.5, "starting acts": 0.5}
    spent |= {"sampling": 3.0}  # beside: it took no time of its own
    spent |= {"storing": 1.0, "waiting for trackers": 0.2}
    found = shares(spent, total_s=10.0)
    assert found == pytest.approx(
        {
            "learner": 0.6,
            "physics": 0.1,
            "evaluating": 0,
            "saving": 0.05,
            "trackers": 0.02,
            "host": 0.23,
        }
    )
    assert sum(found.values()) == pytest.approx(1)


def test_nothing_spent_is_no_error() -> None:
    assert shares({}, 0.0)["host"] == 0
