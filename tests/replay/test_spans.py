"""Sampling from spans: every step equally often, whatever the spans."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fallow.core.errors import FallowError
from fallow.replay.spans import Spans, _walk, overlaps, sample


@st.composite
def some_spans(sample_from, weighted: bool = False) -> Spans:
    """Sorted spans of one to three worlds; neighbours may touch."""
    rows, serial = [], 0
    for world in range(sample_from(st.integers(1, 3))):
        serial = 0
        for _ in range(sample_from(st.integers(1, 4))):
            serial += sample_from(st.integers(0, 5))
            length = sample_from(st.integers(1, 9))
            rows.append((world, serial, serial + length))
            serial += length
    world, start, stop = np.array(rows).T
    weight = None
    if weighted:
        weight = np.array([sample_from(st.sampled_from([0.5, 1, 3])) for _ in rows])
    return Spans(world, start, stop, weight)


def steps_of(spans: Spans) -> list[tuple[int, int]]:
    return [
        (int(w), s)
        for w, a, b in zip(spans.world, spans.start, spans.stop, strict=True)
        for s in range(a, b)
    ]


@given(some_spans(), st.integers(1, 40))
def test_over_all_starts_every_step_is_sampled_equally_often(spans, length) -> None:
    """The law behind `passive`: N starts of L steps cover each step exactly L times."""
    steps = steps_of(spans)
    span = np.repeat(np.arange(len(spans.world)), spans.length)
    serial = np.array([s for _, s in steps])
    pieces = _walk(spans, span, serial, length)
    counts = dict.fromkeys(steps, 0)
    for world, start, taken in zip(
        pieces.world, pieces.serial, pieces.length, strict=True
    ):
        for step in range(start, start + taken):
            counts[int(world), step] += 1
    assert set(counts.values()) == {length}


@given(some_spans(weighted=True), st.integers(1, 30), st.integers(0, 1000))
def test_sequences_are_whole_and_never_masked(spans, length, seed) -> None:
    allowed = set(steps_of(spans))
    pieces = sample(spans, 5, length, np.random.default_rng(seed))
    for sequence in range(5):
        mine = pieces.sequence == sequence
        assert pieces.length[mine].sum() == length
        assert pieces.at[mine].tolist() == [
            0,
            *np.cumsum(pieces.length[mine])[:-1].tolist(),
        ]
        for world, start, taken in zip(
            pieces.world[mine], pieces.serial[mine], pieces.length[mine], strict=True
        ):
            assert {(int(world), s) for s in range(start, start + taken)} <= allowed


def test_starts_follow_the_weights() -> None:
    spans = Spans(
        np.array([0, 0, 1]),
        np.array([0, 10, 0]),
        np.array([10, 20, 30]),
        np.array([1.0, 3.0, 0.5]),
    )
    pieces = sample(spans, 60_000, 1, np.random.default_rng(0))
    first = (pieces.world == 0) & (pieces.serial < 10)
    second = (pieces.world == 0) & (pieces.serial >= 10)
    shares = [first.mean(), second.mean(), (pieces.world == 1).mean()]
    np.testing.assert_allclose(shares, np.array([10, 30, 15]) / 55, atol=0.01)
    inside = np.bincount(pieces.serial[second] - 10, minlength=10)
    np.testing.assert_allclose(inside / inside.sum(), 0.1, atol=0.01)


@pytest.mark.parametrize("length", [1, 10, 64, 65, 200])
def test_closed_spans_are_never_left_before_their_end(length: int) -> None:
    start = np.array([0, 128, 640])
    spans = Spans(np.zeros(3, int), start, start + 64, is_closed=True)
    pieces = sample(spans, 500, length, np.random.default_rng(0))
    for sequence in range(500):
        mine = pieces.sequence == sequence
        chunks = pieces.serial[mine] // 64
        ends = (pieces.serial + pieces.length - 1)[mine] // 64
        assert (chunks == ends).all()
        if length <= 64:
            assert len(set(chunks)) == 1
        if length == 64:
            assert mine.sum() == 1 and pieces.serial[mine][0] % 64 == 0
    counts = np.zeros(704)
    for begin, taken in zip(pieces.serial, pieces.length, strict=True):
        counts[begin : begin + taken] += 1
    kept = counts[np.concatenate([np.arange(s, s + 64) for s in start])]
    if length < 64:  # flat inside a chunk as well
        assert kept.min() > 0.5 * kept.mean() - 5


@given(some_spans(), some_spans())
@settings(max_examples=50)
def test_overlaps_equal_brute_force(spans: Spans, others: Spans) -> None:
    source, target = overlaps(spans, others)
    found = set(zip(source.tolist(), target.tolist(), strict=True))
    expected = {
        (i, j)
        for i in range(len(spans.world))
        for j in range(len(others.world))
        if spans.world[i] == others.world[j]
        and max(spans.start[i], others.start[j]) < min(spans.stop[i], others.stop[j])
    }
    assert found == expected


def test_nothing_to_sample_is_said() -> None:
    none = np.zeros(0, int)
    with pytest.raises(FallowError, match="nothing can be sampled"):
        sample(Spans(none, none, none), 1, 1, np.random.default_rng(0))
