"""The buffer: what goes in comes out in order, and bad input changes nothing."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fallow.core import arrayfile
from fallow.core.errors import FallowError
from fallow.replay import RULES, Buffer, Field

SMALL = {"world": Field((), "int32"), "serial": Field((), "int64"), "x": Field((2,))}
OPTIONS = {
    "adaptive": "adaptive:labels=true",
    "recency": "recency:window_transitions=300",
    "reservoir": "reservoir:budget_transitions=256",
    "wmar": "wmar:short_transitions=200,long_transitions=256",
}
EVERY_RULE = [
    *(OPTIONS.get(name, name) for name in RULES),
    "reservoir:unit=chunk,budget_transitions=256",
    "reservoir:unit=chunk,budget_transitions=384,stretch_transitions=192",
]

CHUNKS = "reservoir:unit=chunk"


def step(n_worlds: int, serial: int) -> dict[str, np.ndarray]:
    x = np.stack([np.arange(n_worlds), np.full(n_worlds, serial)], axis=1)
    return {
        "world": np.arange(n_worlds, dtype=np.int32),
        "serial": np.full(n_worlds, serial),
        "x": x.astype(np.float32),
    }


def filled(
    n_steps: int, n_worlds: int = 2, episode: int = 50, begin: int = 0, **arguments
) -> Buffer:
    buffer = Buffer(SMALL, n_worlds, **{"capacity_transitions": 1000, **arguments})
    fill(buffer, n_steps, episode, begin)
    return buffer


def fill(buffer: Buffer, n_steps: int, episode: int = 50, begin: int = 0) -> None:
    n_worlds = buffer.ledger.n_worlds
    for serial in range(begin, begin + n_steps):
        first = np.full(n_worlds, serial % episode == 0)
        regime = (serial // 200) % 2
        buffer.add(is_first=first, regime=regime, **step(n_worlds, serial))
        if serial and serial % 200 == 0:
            buffer.note_change()


def assert_contiguous(batch: dict[str, np.ndarray]) -> None:
    """Between two first steps, a world's serials follow each other."""
    follows = ~batch["is_first"][:, 1:]
    assert batch["is_first"][:, 0].all()
    assert (np.diff(batch["serial"], axis=1)[follows] == 1).all()
    assert (np.diff(batch["world"], axis=1)[follows] == 0).all()
    np.testing.assert_array_equal(batch["x"][..., 1], batch["serial"])
    np.testing.assert_array_equal(batch["x"][..., 0], batch["world"])


@pytest.mark.parametrize("rule", EVERY_RULE)
@pytest.mark.parametrize("length", [1, 16, 64, 100])
def test_sequences_hold_together_under_every_rule(rule: str, length: int) -> None:
    buffer = filled(1300, rule=rule)  # twice around
    for _ in range(30):
        batch = buffer.sample(8, length)
        assert batch["serial"].shape == (8, length)
        assert_contiguous(batch)


@given(
    st.integers(1, 3),
    st.integers(1, 900),
    st.integers(1, 130),
    st.integers(1, 90),
    st.integers(64, 400),
    st.sampled_from(["curious", "passive", "graded", "matched", "reset"]),
)
@settings(max_examples=60, deadline=None)
def test_contiguity_at_any_wrap(worlds, n, episode, length, capacity, rule) -> None:
    n += rule == "reset" and n % 200 == 1  # a step since the change, or all is masked
    buffer = filled(n, worlds, episode, capacity_transitions=capacity, rule=rule)
    if length <= len(buffer):
        assert_contiguous(buffer.sample(6, length))


@given(st.integers(1, 3), st.integers(1, 1500), st.integers(1, 700))
@settings(max_examples=40, deadline=None)
def test_capacity_keeps_at_least_the_newest(worlds: int, n: int, capacity: int) -> None:
    buffer = Buffer({"serial": Field((), "int64")}, worlds, capacity)
    for serial in range(n):
        buffer.add(
            is_first=np.full(worlds, serial == 0), serial=np.full(worlds, serial)
        )
    assert min(n * worlds, capacity) <= len(buffer)
    assert len(buffer) < min(n * worlds, capacity) + 128 * worlds
    seen = {int(s) for _ in range(40) for s in buffer.sample(16, 1)["serial"].flat}
    assert min(seen) >= n - len(buffer) / worlds


@given(
    st.integers(1, 5),
    st.integers(1, 600),
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 200)), max_size=14),
    st.sampled_from(["passive", "recency:window_transitions=1", "graded"]),
)
@settings(max_examples=60, deadline=None)
@example(5, 268, [(2, 106), (4, 57), (4, 122), (0, 92), (3, 137), (3, 57), (0, 186),
                  (0, 157), (1, 196), (0, 163), (4, 19)], "passive")  # fmt: skip
@example(2, 66, [(0, 1), (0, 1), (0, 1), (1, 64), (0, 126)], "passive")
def test_capacity_is_kept_however_it_is_shared(worlds, capacity, lives, rule) -> None:
    """Episodes into any worlds: at least so many of the newest steps stay stored."""
    buffer = Buffer({"at": Field((), "int64")}, worlds, capacity, rule)
    stored: list[int] = []
    for world, length in lives:
        steps = np.arange(len(stored), len(stored) + length)
        buffer.add_episode(world % worlds, at=steps)
        stored += steps.tolist()
    assert len(buffer) >= min(len(stored), capacity)
    spans = buffer.ledger.stored()
    pairs = [
        (int(world), int(serial))
        for world, start, stop in zip(spans.world, spans.start, spans.stop, strict=True)
        for serial in range(start, stop)
    ]
    worlds_of, serials = np.array(pairs or np.zeros((0, 2), int)).T
    rows = buffer.ledger.rows(worlds_of, serials)
    assert set(stored[-capacity:]) <= set(buffer.storage.columns["at"][rows].tolist())


def test_one_of_eight_worlds_may_fill_the_buffer() -> None:
    buffer = Buffer({"at": Field((), "int64")}, 8, 10_000)
    for episode in range(100):
        buffer.add_episode(3, at=np.arange(100) + 100 * episode)
    assert len(buffer) == 10_000


@pytest.mark.parametrize("n_steps", [120, 400, 1300])
def test_passive_samples_edges_as_often_as_the_middle(n_steps: int) -> None:
    """Uniform over steps at the write head, at the oldest step, at the wrap."""
    buffer = filled(n_steps, n_worlds=2, episode=37)
    counts: dict[tuple[int, int], int] = {}
    n_samples = 60_000
    for _ in range(n_samples // (64 * 32)):
        batch = buffer.sample(64, 32)
        for key in zip(batch["world"].flat, batch["serial"].flat, strict=True):
            counts[key] = counts.get(key, 0) + 1
    assert len(counts) == len(buffer)
    values = np.array([counts[key] for key in sorted(counts)])
    n_sequences = values.sum() / 32
    share = 32 / len(buffer)
    sigma = np.sqrt(n_sequences * share * (1 - share))
    assert abs(values - values.mean()).max() < 5.5 * sigma


def test_is_first_comes_from_the_data_too() -> None:
    buffer = filled(500, n_worlds=1, episode=50)
    for _ in range(50):
        batch = buffer.sample(4, 64)
        begins = batch["serial"] % 50 == 0
        assert batch["is_first"][begins].all()


def test_running_episodes_are_left_out_on_request() -> None:
    sampled = {
        running: np.concatenate(
            [
                filled(475, n_worlds=1, sample_running=running)
                .sample(64, 4)["serial"]
                .ravel()
                for _ in range(3)
            ]
        )
        for running in (True, False)
    }
    assert sampled[True].max() >= 450 and sampled[False].max() < 450


def test_whole_episodes_and_steps_mix() -> None:
    """Episodes of any length, to any world, between steps of all worlds."""
    fields = {"serial": Field((), "int64")}
    buffer = Buffer(fields, n_worlds=2, capacity_transitions=1000)
    for index in range(6):
        world = index % 2
        begin = buffer.ledger.heads[world]
        serial = np.arange(begin, begin + 30 + index)
        buffer.add_episode(world, regime=index % 2, serial=serial)
        heads = np.array(buffer.ledger.heads)
        buffer.add(is_first=np.ones(2, bool), serial=heads)
    assert len(buffer) == sum(30 + index for index in range(6)) + 12
    assert buffer.ledger.now == len(buffer) - 6
    for _ in range(50):
        batch = buffer.sample(4, 20)
        follows = ~batch["is_first"][:, 1:]
        assert (np.diff(batch["serial"], axis=1)[follows] == 1).all()
    with pytest.raises(FallowError, match="no world 2"):
        buffer.add_episode(2, serial=np.arange(3))
    with pytest.raises(FallowError, match="1 or more"):
        buffer.add_episode(0, serial=np.arange(0))


def test_an_episode_ended_by_hand_keeps_the_regime_it_ended_in() -> None:
    buffer = Buffer({"t": Field((), "int64")}, rule="matched")
    for t in range(10):
        buffer.add(is_first=np.full(1, t == 0), regime=0, t=np.full(1, t))
    buffer.end_episode(0)
    buffer.set_present_regime(1)
    for t in range(10, 15):  # continues without a first step: an episode all the same
        buffer.add(is_first=np.zeros(1, bool), t=np.full(1, t))
    assert buffer.ledger.episode_regimes().tolist() == [0, 1]
    assert set(buffer.sample(50, 1)["t"].flat) == set(range(10, 15))


def test_half_precision_comes_back_in_the_fields_type() -> None:
    buffer = filled(200, half=True)
    batch = buffer.sample(4, 16)
    assert batch["x"].dtype == np.float32 and batch["serial"].dtype == np.int64
    assert "float16" in buffer.storage.groups
    assert_contiguous(batch)  # small whole numbers survive float16
    large = {**step(2, 200), "x": np.full((2, 2), 1e5, np.float32)}
    with pytest.raises(FallowError, match="x holds 100000, float16 ends at 65504"):
        buffer.add(is_first=np.zeros(2, bool), **large)
    assert len(buffer) == 400


def test_bytes_in_files(tmp_path: Path) -> None:
    one, other = filled(400, folder=tmp_path / "rows"), filled(400)
    assert isinstance(one.storage.groups["float32"], np.memmap)
    np.testing.assert_array_equal(one.sample(4, 16)["x"], other.sample(4, 16)["x"])
    with pytest.raises(FallowError, match="exists already"):
        Buffer(SMALL, folder=tmp_path / "rows")


BAD_STEPS = [
    ({"x": np.zeros((2, 3), np.float32)}, r"x is float32 of shape \(2, 3\)"),
    ({"x": np.zeros((2, 2))}, "x is float64"),
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


def test_errors_for_overwritten_chunks_are_left_alone() -> None:
    """A late answer cannot hit a slot that has been used again."""
    buffer = filled(600, n_worlds=1, capacity_transitions=300, rule="graded")
    tickets = [ticket for ticket, _ in buffer.sweep()]
    fill(buffer, 200, begin=600)
    late = sum(buffer.set_errors(t, np.ones(len(t.slots))) for t in tickets)
    assert 0 < late <= sum(len(t.slots) for t in tickets)
    known = np.isfinite(buffer.ledger.error).sum()
    assert known == sum(len(t.slots) for t in tickets) - late
    with pytest.raises(FallowError, match="model error of -1"):
        buffer.set_errors(tickets[0], np.full(len(tickets[0].slots), -1.0))


@pytest.mark.parametrize("rule", EVERY_RULE)
def test_a_thousand_batches_after_a_reload_are_the_same(
    rule: str, tmp_path: Path
) -> None:
    buffer = filled(900, rule=rule, seed=4)
    for ticket, sequences in buffer.sweep():
        buffer.set_errors(ticket, sequences["serial"][:, 0] % 7 + 1.0)
    buffer.sample(4, 16)
    buffer.save(tmp_path / "buffer")
    again = Buffer(SMALL, 2, 1000)
    again.load(tmp_path / "buffer")
    assert str(again.rule) == rule or rule.startswith(again.rule.name)
    for index in range(1000):
        if index % 50 == 0:
            for one in (buffer, again):
                fill(one, 1, begin=900 + index)
        one, other = buffer.sample(4, 16), again.sample(4, 16)
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])


def test_files_that_cannot_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "buffer"
    buffer = filled(300)
    buffer.save(path)
    good = path.read_bytes()
    fresh = Buffer(SMALL, 2, 1000)
    for content, message in [
        (good[:-100], "cannot be read"),
        (good[:-9] + bytes([good[-9] ^ 1]) + good[-8:], "edited or damaged"),
        (b"no such thing", "cannot be read"),
    ]:
        path.write_bytes(content)
        with pytest.raises(FallowError, match=message):
            fresh.load(path)
    path.write_bytes(good)
    with pytest.raises(FallowError, match="no replay buffer at"):
        fresh.load(tmp_path / "gone")
    with pytest.raises(FallowError, match="capacity_transitions 1,000"):
        Buffer(SMALL, 2, 2000).load(path)
    with pytest.raises(FallowError, match="make it with the same fields"):
        Buffer({"serial": Field(())}, 2, 1000).load(path)
    with pytest.raises(IsADirectoryError, match=str(tmp_path)) as caught:
        fresh.save(tmp_path)
    assert caught.value.filename == str(tmp_path)
    assert len(fresh) == 0
    fresh.load(path)
    assert len(fresh) == 600


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch) -> None:
    import errno

    from safetensors import SafetensorError

    path = tmp_path / "buffer"
    filled(300).save(path)
    good = path.read_bytes()

    def no_space(arrays, part, metadata) -> None:
        Path(part).write_bytes(b"half")
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(arrayfile, "save_file", no_space)
    with pytest.raises(OSError, match="No space") as raised:
        filled(400).save(path)
    assert raised.value.errno == errno.ENOSPC
    assert path.read_bytes() == good and list(tmp_path.iterdir()) == [path]


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
