"""The buffer: what goes in comes out in order, and bad input changes nothing."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fallow.core import arrayfile
from fallow.core.errors import FallowError
from fallow.replay import RULES, Buffer, Field
from fallow.replay.labeler import Tracked

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


def test_a_file_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    """Its rule needs what this buffer lacks, or its tracker read another body."""
    fields = {"x": Field((2,)), "action": Field((2,))}
    one, both = Tracked("x[0]", "action[0]"), Tracked("x", "action")
    saved = Buffer(fields, rule="adaptive", tracked=one)
    x = np.zeros((9, 2), np.float32)
    saved.add_episode(x=x, action=x)
    saved.save(tmp_path / "saved")
    for tracked, message in [
        (None, "rule 'adaptive' reads velocities"),
        (both, "n_actuators 1 and this buffer's 2; give the same Tracked"),
        (replace(one, control_step_s=0.1), "control_step_s 0.05 and this buffer's 0.1"),
    ]:
        buffer = Buffer(fields, tracked=tracked)
        buffer.add_episode(x=x[:4] + 1, action=x[:4])
        with pytest.raises(FallowError, match=message):
            buffer.load(tmp_path / "saved")
        assert len(buffer) == 4 and buffer.sample(8, 2)["x"].min() == 1
        buffer.add_episode(x=x[:4] + 1, action=x[:4])
        assert str(buffer.rule) == "passive" and len(buffer) == 8


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
