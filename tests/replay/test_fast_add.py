"""The fast path stores what the checked one does, and refuses what that refuses."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fallow.core.errors import FallowError
from fallow.replay import Buffer, Field, ledger_state
from fallow.replay.fast_add import FastAdd

FIELDS = {
    "x": Field((3,)),
    "image": Field((2, 2), "uint8"),
    "precise": Field((), "float64"),
    "count": Field((), "int32"),
    "touches": Field((2,), "bool"),
}


def step(t: int, is_first: bool = False) -> dict[str, np.ndarray]:
    return {
        "is_first": np.array([is_first]),
        "x": np.array([[t, -t, 1e12 * t]], np.float32),
        "image": np.full((1, 2, 2), t % 256, np.uint8),
        "precise": np.array([t / 3]),
        "count": np.array([-t], np.int32),
        "touches": np.array([[t % 2 == 0, t % 3 == 0]]),
    }


def pair(**arguments) -> tuple[Buffer, Buffer]:
    """A buffer, and one that has to go the long way."""
    short, long = (Buffer(FIELDS, 1, 300, **arguments) for _ in range(2))
    assert short._fast_add is not None
    long._fast_add = None
    return short, long


def assert_same(one: Buffer, other: Buffer) -> None:
    stored = np.arange(one.storage.n_rows)[
        np.isin(one.ledger.chunk, -1).repeat(64) == 0
    ]
    for name, column in one.storage.columns.items():
        np.testing.assert_array_equal(
            column[stored], other.storage.columns[name][stored]
        )
    mine, others = ledger_state.save(one.ledger), ledger_state.save(other.ledger)
    assert mine[1] == others[1]
    for name, values in mine[0].items():
        np.testing.assert_array_equal(values, others[0][name])


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("steps"), st.integers(1, 150)),
        st.tuples(st.just("first"), st.just(0)),
        st.tuples(st.just("end"), st.just(0)),
        st.tuples(st.just("episode"), st.integers(1, 90)),
        st.tuples(st.just("regime"), st.integers(0, 3)),
        st.tuples(st.just("bad"), st.just(0)),
    ),
    max_size=12,
)


def happen(buffer: Buffer, event: str, n: int) -> None:
    t = buffer.ledger.now
    if event == "steps":
        for later in range(n):
            buffer.add(**step(t + later))
    elif event == "first":
        buffer.add(**step(t, is_first=True))
    elif event == "end":
        buffer.end_episode(0)
    elif event == "episode":
        rows = [step(t + later) for later in range(n)]
        content = {k: np.concatenate([r[k] for r in rows]) for k in FIELDS}
        buffer.add_episode(**content)
    elif event == "regime":
        buffer.add(regime=n, **step(t))
    else:
        with pytest.raises(FallowError, match="x holds NaN"):
            buffer.add(**{**step(t), "x": np.full((1, 3), np.nan, np.float32)})


RULES = ["passive", "reservoir:budget_transitions=128"]


@given(EVENTS, st.sampled_from([*RULES, "reservoir:unit=chunk,budget_transitions=128"]))
@settings(max_examples=60, deadline=None)
def test_both_ways_store_the_same(events: list[tuple[str, int]], rule: str) -> None:
    short, long = pair(rule=rule)
    for event, n in events:
        for buffer in (short, long):
            happen(buffer, event, n)
    assert_same(short, long)


def test_it_goes_on_after_a_reload(tmp_path: Path) -> None:
    short, long = pair()
    for buffer in (short, long):
        happen(buffer, "steps", 100)
        buffer.save(tmp_path / "replay")
        happen(buffer, "steps", 70)  # rows that the reload must not be misled by
        buffer.end_episode(0)
        buffer.load(tmp_path / "replay")
        happen(buffer, "steps", 400)
    assert_same(short, long)


def test_plain_steps_go_the_short_way_and_are_copied() -> None:
    buffer = Buffer(FIELDS, 1, 300)
    buffer._add_checked = None  # would be called
    content = step(7, is_first=True)
    buffer.add(**content)
    content["x"][:] = 0
    buffer.add(**step(8))
    assert buffer.storage.columns["x"][:2, 0].tolist() == [7, 8]
    assert buffer.storage.columns["is_first"][:3].tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.zeros(3, np.float32)}, r"x is float32 of shape \(3,\)"),
        ({"x": np.zeros((3, 1), np.float32)}, r"x is float32 of shape \(3, 1\)"),
        ({"x": np.zeros((1, 3))}, "x is float64"),
        ({"x": np.zeros((1, 3), ">f4")}, "x is >f4"),
        ({"x": np.zeros((1, 3), np.int32)}, "x is int32"),
        ({"x": np.ma.masked_all((1, 3), np.float32)}, "x is"),
        ({"x": [[0.0, 0.0, 0.0]]}, "x is float64"),
        ({"x": np.array([[0, 0, np.inf]], np.float32)}, "x holds NaN or infinity"),
        ({"x": np.array([[-np.inf, 0, 0]], np.float32)}, "x holds NaN or infinity"),
        ({"x": np.array([[0, -np.nan, 0]], np.float32)}, "x holds NaN or infinity"),
        ({"precise": np.array([np.nan])}, "precise holds NaN"),
        ({"precise": np.array([-np.inf])}, "precise holds NaN"),
        ({"count": np.zeros(1, np.uint32)}, "count is uint32"),
        ({"image": np.zeros((1, 4), np.uint8)}, r"image is uint8 of shape \(1, 4\)"),
        ({"touches": np.zeros((1, 2), np.uint8)}, "touches is uint8"),
        ({"is_first": np.zeros(1, np.uint8)}, "is_first is uint8"),
        ({"is_first": np.zeros((1, 1), bool)}, r"is_first is bool of shape \(1, 1\)"),
        ({"is_first": None}, "is_first is object"),
        ({"more": np.zeros(1)}, "this buffer stores x, image"),
    ],
)
@pytest.mark.parametrize("n_before", [0, 30, 64])
def test_a_bad_step_changes_nothing(changes: dict, message: str, n_before: int) -> None:
    buffer, twin = pair()
    for one in (buffer, twin):
        happen(one, "steps", n_before)
    before = buffer.storage.rows.copy()
    with pytest.raises(FallowError, match=message):
        buffer.add(**{**step(30), **changes})
    with pytest.raises(FallowError, match="this buffer stores x, image"):
        renamed = step(30)
        renamed["y"] = renamed.pop("x")
        buffer.add(**renamed)
    np.testing.assert_array_equal(buffer.storage.rows, before)
    assert_same(buffer, twin)


@pytest.mark.filterwarnings("ignore:overflow")
def test_what_is_unusual_but_right_is_stored() -> None:
    """The largest floats, arrays that are not contiguous, other names of a type."""
    short, long = pair()
    wide = np.arange(6, dtype=np.float32).reshape(1, 6)
    largest = np.array([[3.4e38, -3.4e38, 0]], np.float32)
    for buffer in (short, long):
        for changes in (
            {"x": wide[:, ::2]},
            {"x": largest, "precise": np.array([1e308])},
            {"is_first": [True]},
            {"count": np.zeros(1, np.intc)},
        ):
            buffer.add(**{**step(1), **changes})
    assert_same(short, long)
    np.testing.assert_array_equal(
        short.storage.columns["x"][:2], [wide[0, ::2], *largest]
    )


@pytest.mark.parametrize(
    ("fields", "n_worlds", "half"),
    [
        ({"x": Field((3,))}, 2, False),
        ({"x": Field((3,))}, 1, True),
        ({"x": Field((3,), ">f4")}, 1, False),
        ({"x": Field((3,), "float16")}, 1, False),
        ({"x": Field((3,), "longdouble")}, 1, False),
        ({"x": Field((3,), "complex64")}, 1, False),
    ],
)
def test_other_rows_go_the_long_way(fields: dict, n_worlds: int, half: bool) -> None:
    buffer = Buffer(fields, n_worlds, 300, half=half)
    assert buffer._fast_add is None
    x = np.arange(3 * n_worlds).reshape(n_worlds, 3).astype(fields["x"].dtype)
    buffer.add(is_first=np.ones(n_worlds, bool), x=x)
    sampled = buffer.sample(8, 1)["x"][:, 0]
    assert all((x == row).all(axis=1).any() for row in sampled)


def test_rows_in_files_take_it_too(tmp_path: Path) -> None:
    one, other = (
        Buffer(FIELDS, 1, 300, folder=tmp_path / "rows"),
        Buffer(FIELDS, 1, 300),
    )
    for buffer in (one, other):
        happen(buffer, "steps", 500)
    assert isinstance(one._fast_add, FastAdd)
    assert_same(one, other)
