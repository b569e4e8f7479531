"""What the tracker's benchmark counts, by hand and on logs with known truth."""

import sys
from pathlib import Path

import numpy as np
import pytest

from fallow.diagnosis import Example, example

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import tracker as benchmark


@pytest.mark.parametrize(("n_before", "first"), [(0, 0), (5, 9), (14, 0), (99, 0)])
def test_a_short_log_is_the_end_of_the_whole_one(n_before: int, first: int) -> None:
    log = example(Example((1.0, 0.5), (14,), n_episodes=20))
    short = benchmark.shortened(log, n_before)
    assert short.regime.tolist() == log.regime.tolist()[first:]
    whole = list(benchmark.in_pieces(log, 1))[first:]
    for (v, a), (v_short, a_short) in zip(
        whole, benchmark.in_pieces(short, 1), strict=True
    ):
        np.testing.assert_array_equal(v, v_short)
        np.testing.assert_array_equal(a, a_short)


def test_a_log_without_a_change_is_not_cut() -> None:
    log = example(Example((1.0,), (), n_episodes=8))
    assert benchmark.shortened(log, 3) is log


def test_pieces_of_an_episode_join_to_it() -> None:
    log = example(Example((1.0,), (), n_episodes=3))
    for (v, a), *pieces in zip(
        benchmark.in_pieces(log, 1),
        *[iter(benchmark.in_pieces(log, 2))] * 2,
        strict=True,
    ):
        np.testing.assert_array_equal(a, np.concatenate([p[1] for p in pieces]))
        np.testing.assert_array_equal(v[-1], pieces[1][0][-1])
        np.testing.assert_array_equal(pieces[0][0][-1], pieces[1][0][0])


def test_alarms_are_counted_by_hand() -> None:
    """Switches at 5 and 12: found two late, and missed; 3 and 16 are false."""
    truth = np.array([0] * 5 + [1] * 7 + [0] * 8)
    found = benchmark.Outcome("log", "method", [3, 7, 16], truth, 0.0)
    assert found.switches == [5, 12]
    assert found.delays() == [2, None]
    assert found.n_false() == 2
    assert found.n_unchanged() == 20 - 2 * 4
