"""What does not fit a buffer is named and changes nothing."""

from pathlib import Path

import numpy as np
import pytest
from test_buffer import CHUNKS, SMALL, filled, step

from fallow.core.errors import FallowError
from fallow.replay import Buffer, Field

BAD_STEPS = [
    ({"x": np.zeros((2, 3), np.float32)}, r"x is float32 of shape \(2, 3\)"),
    ({"x": np.zeros((2, 2))}, r"add .astype\('float32'\), or .* the type 'float64'"),
    ({"x": np.full((2, 2), np.nan, np.float32)}, "x holds NaN"),
    ({"x": np.array([[0, np.inf], [0, 0]], np.float32)}, "x holds NaN or infinity"),
    ({"serial": np.zeros(1, np.int64)}, "serial is int64"),
    ({"is_first": np.zeros(3, bool)}, "is_first is bool of shape"),
    ({"y": np.zeros(2)}, "this buffer stores world, serial, x"),
    ({"x": None}, "x is object"),
]


@pytest.mark.parametrize(("changes", "message"), BAD_STEPS)
def test_a_bad_step_is_named_and_changes_nothing(changes: dict, message: str) -> None:
    buffer, twin = filled(100), filled(100)
    good = {"is_first": np.zeros(2, bool), **step(2, 100)}
    with pytest.raises(FallowError, match=message):
        buffer.add(**{**good, **changes})
    missing = {k: v for k, v in good.items() if k != "x"}
    with pytest.raises(FallowError, match="this buffer stores"):
        buffer.add(**missing)
    for one in (buffer, twin):
        one.add(**good)
    for _ in range(20):
        np.testing.assert_array_equal(
            buffer.sample(4, 16)["x"], twin.sample(4, 16)["x"]
        )


def test_types_of_fields_may_be_numpy_s(tmp_path: Path) -> None:
    path = tmp_path / "replay"
    given = Buffer({"x": Field([np.int64(2)], np.uint8)})
    given.add(is_first=np.ones(1, bool), x=np.full((1, 2), 7, np.uint8))
    given.save(path)
    named = Buffer({"x": Field((2,), "uint8")})
    named.load(path)
    np.testing.assert_array_equal(named.sample(1, 1)["x"], [[[7, 7]]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Buffer(SMALL, capacity_transitions=0), "capacity_transitions is 0"),
        (lambda: Buffer(SMALL, n_worlds=0), "n_worlds is 0"),
        (lambda: Buffer({"is_first": Field(())}), "is_first is stored by itself"),
        (lambda: Buffer({"x": Field((), "object")}), "x is of Python objects"),
        (lambda: Buffer({"x": Field((), "U3")}), "x is of type '<U3'; a buffer stores"),
        (lambda: Buffer(SMALL, folder=__file__), "cannot use .*; choose another path"),
        (lambda: Buffer({"regime": Field(())}), "regime is stored by itself"),
        (lambda: Buffer(["x"]), "give a Field by name"),
        (lambda: Buffer({1: Field(())}), "name of a field is 1"),
        (lambda: Buffer({"x": Field(3)}), r"shape 3; give .* Field\(\(3,\)\)"),
        (lambda: Buffer({"x": Field((-1,))}), "give whole numbers of 1 or more"),
        (lambda: Buffer({"x": Field((), "floaty")}), "floaty, which NumPy does not"),
        (lambda: Buffer(SMALL, seed="a"), "seed is a; it must be a whole number"),
        (lambda: Buffer(SMALL, tracked="x"), "tracked is x; name the fields"),
        (
            lambda: Buffer({"x": Field((2,))}).add(is_first=[True], x=[[1], [2, 3]]),
            "its rows differ in length",
        ),
        (lambda: Buffer(SMALL, rule="recancy"), "did you mean 'recency'"),
        (lambda: Buffer(SMALL, rule="recency:window=5"), "window_transitions"),
        (lambda: filled(9, rule="recency:window_transitions=0"), "is 0; .* 1 or more"),
        (lambda: filled(9, rule="recency:window_transitions=-3"), "is -3"),
        (lambda: filled(9, rule="recency:window_transitions=2000"), "2,000 .* 1,000"),
        (lambda: filled(9, rule="reservoir:budget_transitions=5000"), "5,000"),
        (lambda: filled(9, rule="reservoir:budget_transitions=0"), "is 0; .* 1 or"),
        (
            lambda: filled(70, rule="reservoir:budget_transitions=40").sample(4, 16),
            "is 40 and an episode has 49 steps, .* at least as many, or keep chunks: ",
        ),
        (lambda: filled(9, rule="reservoir:stretch_transitions=100"), "keep chunks"),
        (lambda: filled(9, rule=f"{CHUNKS},stretch_transitions=100"), "multiple"),
        (lambda: filled(9, rule=f"{CHUNKS},stretch_transitions=0"), "64 or more"),
        (
            lambda: filled(9, rule=f"{CHUNKS},budget_transitions=100"),
            "100; a stretch of 64 steps in each of 2 worlds takes 128",
        ),
        (
            lambda: filled(
                9, rule=f"{CHUNKS},budget_transitions=900,stretch_transitions=128"
            ),
            "can hold 872",
        ),
        (lambda: filled(9, rule="wmar"), "smaller one or a larger"),
        (lambda: filled(9, rule="graded:temperature=0"), "temperature is 0"),
        (lambda: filled(9, rule="matched:beta=-1"), "beta is -1"),
        (lambda: filled(9, rule="curious:eps=0"), "eps is 0"),
        (lambda: filled(9, rule="reset:change_step=-1"), "change_step is -1"),
        (lambda: filled(9).sample(0, 4), "batch is 0"),
        (lambda: filled(9).sample(4, 2.5), "length is 2.5; it must be a whole"),
        (lambda: Buffer({"x": 3}), r"x is 3; give its shape and type, e.g. Field"),
        (lambda: Buffer(SMALL, rule=3), "a rule is 3; write its name"),
        (lambda: filled(9).set_present_regime(0.5), "regime is 0.5; it must be a"),
        (lambda: filled(9).set_present_regime(40_000), "from -1 to 32,767"),
        (lambda: filled(9).set_present_regime(np.ones(2)), "regime is .*whole"),
        (lambda: filled(9).end_episode(2), "there is no world 2; there are 2"),
        (lambda: filled(9).end_episode(-1), "world is -1; it must be"),
        (lambda: filled(9).sample(4, 0), "length is 0"),
        (lambda: filled(9).sample(4, 19), "sequence of 19 steps .* and 18 are"),
        (lambda: filled(0).sample(4, 4), "buffer is empty"),
        (
            lambda: filled(900, 1, capacity_transitions=64).sample(4, 300),
            "sequence of 300 steps .* are stored",
        ),
    ],
)
def test_impossible_requests_are_named(make, message: str) -> None:
    with pytest.raises(FallowError, match=message):
        make()


def test_reset_with_nothing_stored_since_is_an_error_until_there_is() -> None:
    buffer = filled(100, rule="reset")
    assert len(buffer.sample(4, 8)["x"]) == 4
    buffer.note_change()
    with pytest.raises(FallowError, match="rule 'reset' masks all 200 stored steps"):
        buffer.sample(4, 8)
    buffer.add(is_first=np.zeros(2, bool), **step(2, 100))
    batch = buffer.sample(4, 8)  # two steps exist, joined at seams
    assert set(batch["serial"].flat) == {100} and batch["is_first"].sum() >= 28


def test_matched_without_labels_says_what_it_needs() -> None:
    buffer = Buffer({"serial": Field((), "int64")}, rule="matched")
    buffer.add(is_first=np.ones(1, bool), serial=np.zeros(1, np.int64))
    with pytest.raises(FallowError, match="needs the present regime"):
        buffer.sample(1, 1)


def test_changing_the_rule_keeps_the_old_one_if_the_new_one_is_impossible() -> None:
    buffer = filled(100)
    with pytest.raises(FallowError):
        buffer.rule = "recency:window_transitions=99999999"
    assert str(buffer.rule) == "passive"
    buffer.rule = "recency:window_transitions=20"
    assert buffer.sample(32, 4)["serial"].min() >= 90
    buffer.rule = "passive"  # what was masked comes back
    assert buffer.sample(64, 4)["serial"].min() < 50


@pytest.mark.parametrize(
    ("episodes", "regimes", "words"),
    [
        ([3], [1], r"episodes are \[3\]; give whole numbers from 0 to 2"),
        ([-1], [1], "episodes are"),
        ([0], [1.5], "regimes are"),
        ([0], [-2], "regimes are"),
        ([0, 1], [1, 2, 3], "3 regimes for 2 episodes"),
    ],
)
def test_labels_that_fit_no_episode_are_named(episodes, regimes, words: str) -> None:
    buffer = Buffer({"x": Field(())}, capacity_transitions=1000)
    for _ in range(3):
        buffer.add_episode(x=np.zeros(10, np.float32))
    buffer.set_regimes([0, 2], 1)
    before = buffer.ledger.episode_regimes().tolist()
    assert before == [1, -1, 1]
    with pytest.raises(FallowError, match=words):
        buffer.set_regimes(episodes, regimes)
    assert buffer.ledger.episode_regimes().tolist() == before


@pytest.mark.parametrize(
    ("x", "remedy"),
    [
        (0.5, r"np.asarray\(\[x\], 'float32'\)"),
        ([0.5], r"np.asarray\(x, 'float32'\)"),
        (np.zeros(1).view(np.recarray), r"np.asarray\(x, 'float32'\)"),
        (np.zeros(1), r"add .astype\('float32'\), or give its Field"),
    ],
)
def test_what_nearly_fits_a_step_is_said_how_to_give(x, remedy: str) -> None:
    buffer = Buffer({"x": Field(()), "y": Field((3,))})
    y = np.zeros((1, 3), np.float32)
    with pytest.raises(FallowError, match=remedy):
        buffer.add(is_first=[True], x=x, y=y)
    x = np.zeros(1, np.float32)
    with pytest.raises(FallowError, match=r"give y\[None\], with an axis of worlds"):
        buffer.add(is_first=[True], x=x, y=y[0])
    with pytest.raises(FallowError, match=r"np.asarray\(\[is_first\], 'bool'\)"):
        buffer.add(is_first=True, x=x, y=y)
    with pytest.raises(FallowError, match=r"add .astype\('bool'\)$"):
        buffer.add(is_first=np.ones(1, int), x=x, y=y)
    assert len(buffer) == 0


@pytest.mark.parametrize("regime", ["a", 0.5, np.zeros(2, int), 40_000, -2])
def test_a_regime_that_is_no_label_stores_nothing(regime) -> None:
    buffer, x = Buffer({"x": Field(())}), np.zeros(1, np.float32)
    with pytest.raises(FallowError, match=r"regime is .* it must be a whole number"):
        buffer.add(is_first=np.zeros(1, bool), regime=regime, x=x)
    with pytest.raises(FallowError, match="regime is"):
        buffer.add_episode(0, regime, x=x)
    assert len(buffer) == 0
    buffer.add(is_first=np.zeros(1, bool), regime=np.int64(3), x=x)
    assert buffer.ledger.present_regime == 3


def test_a_running_episode_is_not_labelled() -> None:
    """It would get the regime in force when it ends, and the label be lost."""
    buffer = Buffer({"x": Field(())}, n_worlds=2)
    for _ in range(5):
        buffer.add(is_first=np.zeros(2, bool), x=np.zeros(2, np.float32))
    with pytest.raises(FallowError, match=r"episode 1 is still running .* end_episode"):
        buffer.set_regimes([1], [3])
    buffer.end_episode(np.int64(1))
    buffer.set_regimes([1], [3])
    assert buffer.ledger.episode_regimes().tolist() == [-1, 3]


def test_several_episodes_are_not_stored_as_one() -> None:
    buffer, x = Buffer({"x": Field(())}), np.zeros(6, np.float32)
    with pytest.raises(FallowError, match="is_first is set at row 2, where another"):
        buffer.add_episode(is_first=np.array([1, 0, 1, 0, 1, 0], bool), x=x)
    assert len(buffer) == 0
    buffer.add_episode(is_first=np.arange(6) == 0, x=x)
    assert buffer.ledger.episodes.n == 1


def test_whether_it_can_sample_is_known_before() -> None:
    buffer = Buffer({"x": Field(())}, rule="reset")
    assert not buffer.can_sample(1)
    buffer.add_episode(x=np.zeros(6, np.float32))
    assert buffer.can_sample(6, within_episodes=True) and not buffer.can_sample(7)
    buffer.note_change()
    assert not buffer.can_sample(1)
