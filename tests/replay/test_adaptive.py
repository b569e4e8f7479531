"""The rule `adaptive`: its law, its labels, and that threads decide nothing."""

import copy
import pickle

import numpy as np
import pytest

from fallow.core.errors import FallowError
from fallow.replay import Buffer, Field
from fallow.replay.composition import known_regimes
from fallow.replay.device_buffer import DeviceBuffer
from fallow.replay.labeler import EFFECT_STEPS, Tracked, true_mismatches
from fallow.replay.ledger import Ledger
from fallow.replay.rules import Adaptive

N = 3
FIELDS = {"observation": Field((N + 1,)), "action": Field((N,))}
TRACKED = Tracked(f"observation[1:{N + 1}]")
STEPS = 80


def ledger_of(*episodes: tuple[int, int]) -> Ledger:
    """Episodes of (length, label) of one world, all finished."""
    ledger = Ledger(1, 100_000)
    for length, label in episodes:
        for step in range(length):
            ledger.advance(0, step == 0, ledger.now + step, None)
        ledger.now += length
        ledger.present_regime = label
        ledger.end_episode(0)
    ledger.set_labels(range(len(episodes)), np.array([label for _, label in episodes]))
    return ledger


def weights(rule: Adaptive, ledger: Ledger) -> list[float]:
    (spans,) = rule.parts(ledger)
    return spans.weight.tolist()


def test_a_steps_weight_is_kappa_over_kappa_and_n() -> None:
    """m = 0.5: kappa = 1500 / 0.25 = 6000, and 2,000 steps weigh 0.75."""
    ledger = ledger_of((1000, 0), (1000, 0), (500, 1))
    half = np.array([[0, 0.5], [0.5, 0]])
    ledger.set_beliefs([0.0, 1.0], half)
    assert weights(Adaptive(), ledger) == pytest.approx([0.75, 0.75, 1.0])
    ledger.set_beliefs([1.0, 0.0], half)  # 6000 / 6500
    assert weights(Adaptive(), ledger) == pytest.approx([1.0, 1.0, 12 / 13])
    ledger.set_beliefs([0.5, 0.5], half)
    expected = [0.875, 0.875, (1 + 12 / 13) / 2]
    assert weights(Adaptive(), ledger) == pytest.approx(expected)


def test_limits_of_the_law() -> None:
    ledger = ledger_of((1000, 0), (500, 1))
    ledger.set_beliefs([0.0, 1.0], np.zeros((2, 2)))  # no mismatch: all is kept
    assert weights(Adaptive(), ledger) == pytest.approx([1.0, 1.0])
    ledger.set_beliefs([0.0, 1.0], np.array([[0, 1e6], [1e6, 0]]))  # huge: reset
    assert weights(Adaptive(), ledger)[0] < 1e-9
    ledger.set_beliefs([0.0, 1.0], np.full((2, 2), -1.0))  # unexplained: a fixed m
    kappa = 1500 / 0.5**2
    assert weights(Adaptive(), ledger)[0] == pytest.approx(kappa / (kappa + 1000))
    ledger = ledger_of((1000, 0), (500, 0))  # one regime: as passive
    (spans,) = Adaptive().parts(ledger)
    assert spans.weight is None and spans.n_steps == 1500


def test_the_stale_share_is_that_of_the_papers_optimum() -> None:
    """Eq. (4) with two regimes: beta* S = kappa S / (kappa + S)."""
    ledger = ledger_of((4000, 0), (1000, 1))
    ledger.set_beliefs([0.0, 1.0], np.array([[0, 0.5], [0.5, 0]]))
    (spans,) = Adaptive().parts(ledger)
    mass = spans.weight * spans.length
    assert mass[0] / mass.sum() == pytest.approx(2400 / (2400 + 1000))


def test_true_labels_need_no_tracker() -> None:
    rule = "adaptive:labels=true"
    buffer = Buffer({"x": Field(())}, rule=rule)
    for regime in (0, 1):
        buffer.add_episode(regime=regime, x=np.zeros(500, np.float32))
    assert buffer.sampler.labeler is None
    share = buffer.composition().stale_share
    weight = 6000 / 6500  # the fixed mismatch, since no gains are known
    assert share == pytest.approx(weight / (1 + weight))
    gains = np.array([[1.0, 1.0], [1.0, 0.0]])
    assert true_mismatches(gains)[0, 1] == pytest.approx(np.sqrt(0.5))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Buffer(FIELDS, rule="adaptive"), "name their fields"),
        (lambda: Adaptive(labels="x"), "choose tracker or true"),
        (lambda: Adaptive(kappa_transitions=0), "kappa_transitions is 0"),
        (lambda: Tracked("speed").places(FIELDS), "unknown field of velocity"),
        (lambda: Tracked("observation[9:]").places(FIELDS), "which has 4 columns"),
        (lambda: Tracked("observation[2:9]").places(FIELDS), "which has 4 columns"),
        (lambda: Tracked(None).places(FIELDS), "velocity is None; it must be a text"),
        (lambda: Tracked("observation[0,1]").places(FIELDS), "2 velocities"),
    ],
)
def test_bad_input_is_named(make, words: str) -> None:
    with pytest.raises(FallowError, match=words):
        make()


def episodes(n: int, gain: float, seed: int) -> list[dict[str, np.ndarray]]:
    """Rows of a body whose velocity answers commands with a gain, and leaks."""
    random, found = np.random.default_rng(seed), []
    for _ in range(n):
        velocity, rows = np.zeros(N), []
        for step in range(STEPS):
            action = random.uniform(-1, 1, N) if step else np.zeros(N)
            noise = random.normal(0, 0.02, N)
            velocity = 0.9 * velocity + gain * action * 0.5 + noise
            rows.append((np.r_[0.0, velocity].astype(np.float32),
                         action.astype(np.float32)))  # fmt: skip
        observation, action = (np.stack(each) for each in zip(*rows, strict=True))
        found.append({"observation": observation, "action": action})
    return found


LIFE = [(30, 1.0), (20, 0.4), (20, 1.0)]


def rows_of_life() -> list[tuple[bool, dict[str, np.ndarray]]]:
    rows = []
    for seed, (n, gain) in enumerate(LIFE):
        for episode in episodes(n, gain, seed):
            for step in range(STEPS):
                row = {name: values[step][None] for name, values in episode.items()}
                rows.append((step == 0, row))
    return rows


@pytest.fixture(scope="module")
def life() -> list[tuple[bool, dict[str, np.ndarray]]]:
    return rows_of_life()


def filled(life, buffer: Buffer, start: int = 0, stop: int | None = None) -> Buffer:
    for first, row in life[start:stop]:
        buffer.add(is_first=np.array([first]), **row)
    return buffer


def new_buffer(rule: str = "adaptive") -> Buffer:
    return Buffer(FIELDS, rule=rule, tracked=TRACKED, capacity_transitions=20_000)


@pytest.fixture(scope="module")
def whole(life) -> Buffer:
    return filled(life, new_buffer())


def test_it_adapts_without_a_word(whole: Buffer) -> None:
    """A change and a return, from rows alone."""
    labels = whole.ledger.episode_labels()
    assert set(labels[:30]) == {0} and set(labels[33:50]) == {1}
    assert set(labels[54:]) == {0}
    assert whole.ledger.label_mismatch[0, 1] == pytest.approx(0.6, abs=0.15)
    (spans,) = whole.sampler.parts()
    old, now = spans.weight[labels == 1], spans.weight[labels == 0]
    assert (now == 1).all() and (old < 1).all()


def test_a_body_that_is_never_reset_is_followed(life, monkeypatch) -> None:
    """One episode without an end: every 80 steps of it get a label."""
    monkeypatch.setattr("fallow.replay.labeler.LONGEST_STEPS", STEPS)
    buffer = new_buffer()
    for t, (_, row) in enumerate(life):
        buffer.add(is_first=np.array([t == 0]), **row)
    labels = buffer.ledger.episode_labels()
    assert len(labels) == len(life) // STEPS
    assert set(labels[:30]) == {0} and set(labels[33:50]) == {1}
    assert set(labels[54:]) == {0}
    assert buffer.sample(64, 200)["is_first"].sum() < 64 * 2  # no seams between them


def test_episodes_that_no_tracker_can_use_are_said_once() -> None:
    buffer = Buffer(FIELDS, rule="adaptive", tracked=TRACKED)
    rows = episodes(1, 1.0, 0)[0]
    short = {name: values[:12] for name, values in rows.items()}
    with pytest.warns(UserWarning, match="11 steps, fewer than 20") as warned:
        for _ in range(45):
            buffer.add_episode(**short)
    assert len(warned) == 1 and "all data is kept" in str(warned[0].message)


def test_its_labels_are_reported_where_none_are_given(life) -> None:
    """Of what can be sampled, and of what was, by the labels of the time."""
    buffer, given = new_buffer(), new_buffer()
    changes = np.cumsum([n * STEPS for n, _ in LIFE])
    for t, (first, row) in enumerate(life):
        regime = int(changes[0] <= t < changes[1])
        buffer.add(is_first=np.array([first]), **row)
        given.add(is_first=np.array([first]), regime=regime, **row)
        if t >= 36 * STEPS:  # the change is known
            buffer.sample(1, 1)
            given.sample(1, 1)
        if t == 40 * STEPS:
            assert buffer.tracker is not None and buffer.tracker.present == 1
            for one, other in [
                (buffer.composition(), given.composition()),
                (buffer.sampled(), given.sampled()),
            ]:
                assert one.stale_share == pytest.approx(other.stale_share, abs=0.02)
                assert set(one.share_by_regime) == {0, 1}
    assert buffer.sampled().stale_share == pytest.approx(
        given.sampled().stale_share, abs=0.1
    )
    buffer.rule = "passive"  # which has no tracker
    assert buffer.tracker is None and buffer.composition().stale_share is None
    buffer.rule = "adaptive"  # reads what is stored
    assert buffer.composition().stale_share == pytest.approx(
        given.composition().stale_share, abs=0.02
    )


def test_a_suspicion_is_not_reported_as_a_regime() -> None:
    ledger = ledger_of((50, 0), (50, 1), (50, 1))
    ledger.present_regime = -1
    ledger.set_beliefs([0.0, 0.1, 0.9], np.full((3, 3), 0.5))  # 2 would be a new one
    regimes, present = known_regimes(ledger)
    assert regimes.tolist() == [0, 1, 1] and present == 1
    ledger.advance(0, True, ledger.now, None)  # of which nothing is known yet
    assert known_regimes(ledger)[0].tolist() == [0, 1, 1, 1]


def test_labels_take_effect_at_a_fixed_step(life) -> None:
    buffer = filled(life, new_buffer(), 0, 10 * STEPS + 1)  # an episode has just ended
    assert buffer.ledger.episodes["label"][9] == -1
    last = 10 * STEPS + EFFECT_STEPS - 1
    filled(life, buffer, 10 * STEPS + 1, last)
    assert buffer.ledger.episodes["label"][9] == -1
    filled(life, buffer, last, last + 1)
    assert buffer.ledger.episodes["label"][9] == 0


@pytest.mark.parametrize("how", ["file", "pickle", "deepcopy"])
def test_a_copy_continues_to_the_bit(life, whole, how, tmp_path) -> None:
    at = 33 * STEPS + 20  # an answer is due
    buffer = filled(life, new_buffer(), 0, at)
    if how == "file":
        buffer.save(tmp_path / "b")
        other = new_buffer()
        other.load(tmp_path / "b")
    else:
        other = pickle.loads(pickle.dumps(buffer)) if how == "pickle" else None
        other = other or copy.deepcopy(buffer)
    filled(life, other, at)
    np.testing.assert_array_equal(
        other.ledger.episode_labels(), whole.ledger.episode_labels()
    )
    np.testing.assert_array_equal(
        other.ledger.label_mismatch, whole.ledger.label_mismatch
    )
    assert other.sampler.labeler.log == whole.sampler.labeler.log


def test_threads_change_nothing(life) -> None:
    """A device buffer's trackers work on threads; it samples the same rows."""
    device = DeviceBuffer(
        FIELDS, ["adaptive", "passive"], [0, 0], capacity_transitions=20_000,
        tracked=TRACKED,
    )  # fmt: skip
    life = life[: 36 * STEPS]  # the change is known
    for first, row in life:
        both = {name: np.stack([value, value]) for name, value in row.items()}
        device.add(is_first=np.full((2, 1), first), **both)
    labels = device.ledgers[0].episode_labels()
    assert set(labels[33:]) == {1}
    rows = device.sample(1, 8, 16).rows[0]
    twin = filled(life, new_buffer())
    np.testing.assert_array_equal(labels, twin.ledger.episode_labels())
    pieces = twin.sampler.sample(8, 16)
    np.testing.assert_array_equal(rows[0], twin.sampler.rows(pieces, 8, 16))
    plain = filled(life, Buffer(FIELDS, capacity_transitions=20_000))
    pieces = plain.sampler.sample(8, 16)
    np.testing.assert_array_equal(rows[1], plain.sampler.rows(pieces, 8, 16))


def test_at_a_branch_point_the_past_is_read_first(life, whole, tmp_path) -> None:
    """A trunk was stored under another rule; its branches know its regimes."""
    at = 45 * STEPS
    trunk = filled(life, new_buffer("passive"), 0, at)
    trunk.rule = "adaptive"
    labels = trunk.ledger.episode_labels()
    assert set(labels[:30]) == {0} and set(labels[33:]) == {1}
    filled(life, trunk, at)
    assert set(trunk.ledger.episode_labels()[54:]) == {0}
