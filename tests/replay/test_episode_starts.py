"""Sequences within finished episodes: all of them, equally often, and no others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow.core.errors import FallowError
from fallow.replay import Buffer, Field
from fallow.replay.device_buffer import DeviceBuffer
from fallow.replay.episode_starts import starts
from fallow.replay.spans import Spans

FIELDS = {"serial": Field((), "int32"), "episode": Field((), "int32")}
RULES = [
    "passive",
    "recency:window_transitions=120",
    "reservoir:budget_transitions=128",
    "reservoir:unit=chunk,budget_transitions=128",
    "reset:change_step=150",
    "graded",
    "wmar:short_transitions=100,long_transitions=128",
    "matched",
]


@st.composite
def ranges(sample_from, gap: int) -> list[tuple[int, int, int]]:
    """Ranges (world, start, stop) of one or two worlds; neighbours may touch."""
    rows = []
    for world in range(sample_from(st.integers(1, 2))):
        serial = 0
        for _ in range(sample_from(st.integers(1, 5))):
            serial += sample_from(st.integers(0, gap))
            length = sample_from(st.integers(1, 9))
            rows.append((world, serial, serial + length))
            serial += length
    return rows


@given(ranges(gap=4), ranges(gap=0), st.integers(1, 6), st.booleans())
def test_starts_equal_brute_force(some, episodes, length, is_closed) -> None:
    spans = Spans(*np.array(some).T, is_closed=is_closed)
    found = starts(spans, Spans(*np.array(episodes).T), length)
    ours = [
        (int(w), s)
        for w, a, b in zip(found.world, found.start, found.stop, strict=True)
        for s in range(a, b)
    ]
    which = {(w, s): i for i, (w, a, b) in enumerate(some) for s in range(a, b)}
    episode = {(w, s): i for i, (w, a, b) in enumerate(episodes) for s in range(a, b)}

    def is_start(w: int, s: int) -> bool:
        steps = [(w, s + k) for k in range(length)]
        return (
            all(step in which and step in episode for step in steps)
            and len({episode[step] for step in steps}) == 1
            and (not is_closed or len({which[step] for step in steps}) == 1)
        )

    assert ours == sorted(ours) and len(set(ours)) == len(ours)
    assert set(ours) == {step for step in which if is_start(*step)}


def filled(n_steps: int, rule: str, capacity: int = 400, episode: int = 37) -> Buffer:
    buffer = Buffer(FIELDS, capacity_transitions=capacity, rule=rule, seed=1)
    add(buffer, 0, n_steps, episode)
    return buffer


def add(buffer: Buffer, begin: int, end: int, episode: int = 37) -> None:
    for t in range(begin, end):
        first = np.array([t % episode == 0])
        step = {"serial": np.int32([t]), "episode": np.int32([t // episode])}
        buffer.add(is_first=first, regime=t // 200, **step)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n_steps", [330, 900])
def test_no_sequence_leaves_a_finished_episode(rule: str, n_steps: int) -> None:
    """Also after the ring has gone round; 900 is 12 steps into an episode."""
    buffer = filled(n_steps, rule)
    for more in range(n_steps, n_steps + 30):
        add(buffer, more, more + 1)
        batch = buffer.sample(64, 4, within_episodes=True)
        assert (np.diff(batch["serial"]) == 1).all()
        assert (np.diff(batch["episode"]) == 0).all()
        assert batch["episode"].max() < more // 37  # ends when the next one begins
        assert not batch["is_first"][:, 1:].any()
        allowed = {
            s
            for part in buffer.sampler.parts()
            for a, b in zip(part.start, part.stop, strict=True)
            for s in range(a, b)
        }
        assert set(batch["serial"].ravel().tolist()) <= allowed


@pytest.mark.parametrize("n_steps", [300, 900])
def test_every_sequence_that_exists_is_sampled_equally_often(n_steps: int) -> None:
    buffer = filled(n_steps, "passive")
    oldest = int(buffer.ledger.stored().start[0])
    last = n_steps // 37 * 37
    expected = [s for s in range(oldest, last) if s // 37 == (s + 3) // 37]
    sampled = buffer.sample(200_000, 4, within_episodes=True)["serial"][:, 0]
    found, counts = np.unique(sampled, return_counts=True)
    assert found.tolist() == expected
    mean = len(sampled) / len(expected)
    chi_square = ((counts - mean) ** 2 / mean).sum()
    free = len(expected) - 1
    assert abs(chi_square - free) < 4 * np.sqrt(2 * free)


def test_starts_keep_the_weights_of_a_rule() -> None:
    spans = Spans(
        np.zeros(2, int), np.array([0, 10]), np.array([10, 20]), np.array([1.0, 3.0])
    )
    found = starts(spans, Spans(*np.array([[0, 0, 20]]).T), 4)
    assert found.start.tolist() == [0, 10] and found.stop.tolist() == [10, 17]
    assert found.weight.tolist() == [1.0, 3.0]


def test_a_fleet_samples_what_single_buffers_sample() -> None:
    rules = ["passive", "recency:window_transitions=120"]
    fleet = DeviceBuffer(FIELDS, rules, [1, 1], 1, 400)
    singles = [filled(500, rule) for rule in rules]
    for t in range(500):
        first = np.full((2, 1), t % 37 == 0)
        both = np.ones((2, 1), np.int32)
        step = {"serial": t * both, "episode": t // 37 * both}
        fleet.add(is_first=first, regimes=[t // 200] * 2, **step)
    indices = fleet.sample(3, 8, 4, within_episodes=True)
    for update in range(3):
        batch = fleet.batch(indices, update)
        for branch, single in enumerate(singles):
            expected = single.sample(8, 4, within_episodes=True)
            np.testing.assert_array_equal(batch["serial"][branch], expected["serial"])


def test_waiting_for_a_finished_episode() -> None:
    """After a reset there is none until the next one has ended."""
    buffer = filled(160, "reset:change_step=150")
    assert not buffer.sampler.can_sample(4, within_episodes=True)
    assert buffer.sampler.can_sample(4) and not buffer.sampler.can_sample(161)
    with pytest.raises(FallowError, match="no finished episode of 4 steps"):
        buffer.sample(2, 4, within_episodes=True)
    add(buffer, 160, 186)
    assert buffer.sampler.can_sample(4, within_episodes=True)
    batch = buffer.sample(500, 4, within_episodes=True)
    assert batch["serial"].min() == 150 and batch["serial"].max() == 184


def test_other_samples_are_as_before() -> None:
    """Asking in one way does not change what the other gives, but for the numbers."""
    one, two = filled(300, "passive"), filled(300, "passive")
    np.testing.assert_array_equal(
        one.sample(8, 16)["serial"], two.sample(8, 16)["serial"]
    )
    one.sampler.can_sample(4, within_episodes=True)
    np.testing.assert_array_equal(
        one.sample(8, 16)["serial"], two.sample(8, 16)["serial"]
    )
