"""Histories: what is written comes back, and damage is noticed, never guessed over."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import roll
from hypothesis import given, settings
from hypothesis import strategies as st

from fallow.core.errors import FallowError
from fallow.core.records import Episode
from fallow.dynamics import Worlds
from fallow.logs import Header, HistoryWriter, Recorder, read_history, resimulate

HEADER = Header(
    columns=("position [m]", "velocity [m/s]"),
    actuators=("motor",),
    actuator_velocity=(1,),
    control_step_s=0.05,
)


def episode(seed: int = 0, length: int = 20, **extra) -> Episode:
    random = np.random.default_rng(seed)
    return Episode(
        observation=random.normal(size=(length + 1, 2)).astype(np.float32),
        action=random.uniform(-1, 1, (length, 1)).astype(np.float32),
        reward=random.random(length).astype(np.float32),
        world=seed % 3,
        start_frame=40 * seed,
        **extra,
    )


def write(path: Path, n_episodes: int, header: Header = HEADER) -> list[Episode]:
    episodes = [episode(seed) for seed in range(n_episodes)]
    with HistoryWriter(path, header) as writer:
        for one in episodes:
            writer.add(one)
    return episodes


def assert_equal(one: Episode, other: Episode) -> None:
    for name, values in vars(one).items():
        np.testing.assert_array_equal(values, getattr(other, name), name)


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "run.fallow"
    written = write(path, 3)
    full = episode(
        9,
        regime=np.zeros(20, np.int16),
        policy_mean=np.ones((20, 1)),
        policy_std=np.full((20, 1), 0.5),
        start_state=np.arange(7.0),
    )
    with HistoryWriter(path, HEADER) as writer:  # an existing file is continued
        assert writer.n_episodes == 3
        writer.add(full)
    history = read_history(path)
    assert history.header == HEADER and history.damage == ""
    for one, other in zip([*written, full], history.episodes, strict=True):
        assert_equal(one, other)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.booleans())
@settings(max_examples=20, deadline=None)
def test_any_lengths_come_back_as_rows(tmp_path_factory, lengths, with_regime) -> None:
    path = tmp_path_factory.mktemp("history") / "run.fallow"
    with HistoryWriter(path, HEADER) as writer:
        for index, length in enumerate(lengths):
            regime = np.full(length, index, np.int16) if with_regime else None
            writer.add(episode(index, length, regime=regime))
    history = read_history(path)
    rows = history.rows()
    assert len(rows["reward"]) == history.n_transitions == sum(lengths)
    assert rows["episode"].tolist() == np.repeat(range(len(lengths)), lengths).tolist()
    assert rows["step"].max() == max(lengths) - 1
    assert ("regime" in rows) == with_regime
    if with_regime:
        np.testing.assert_array_equal(rows["regime"], rows["episode"])
    inside = rows["step"][1:] > 0
    np.testing.assert_array_equal(
        rows["next_observation"][:-1][inside], rows["observation"][1:][inside]
    )


def test_half_precision_halves_the_observations_alone(tmp_path: Path) -> None:
    half = Header(**{**vars(HEADER), "observation_type": "float16"})
    write(tmp_path / "half.fallow", 2, half)
    write(tmp_path / "single.fallow", 2)
    read = read_history(tmp_path / "half.fallow").episodes[1]
    assert read.observation.dtype == np.float16 and read.action.dtype == np.float32
    np.testing.assert_allclose(read.observation, episode(1).observation, rtol=1e-3)
    np.testing.assert_array_equal(read.action, episode(1).action)
    sizes = [(tmp_path / f"{n}.fallow").stat().st_size for n in ("half", "single")]
    assert sizes[0] < sizes[1]


@given(st.integers(0, 10**6), st.integers(1, 255))
@settings(max_examples=60, deadline=None)
def test_any_flipped_byte_is_noticed(tmp_path_factory, place: int, flip: int) -> None:
    """Every episode before the damage is read, none after it, and it is said."""
    path = tmp_path_factory.mktemp("history") / "run.fallow"
    written = write(path, 4)
    content = bytearray(path.read_bytes())
    place %= len(content)
    content[place] ^= flip
    path.write_bytes(content)
    try:
        history = read_history(path)
    except FallowError:
        assert place < 600  # the magic or the header
        return
    assert history.damage and "are good and were read" in history.damage
    assert len(history.episodes) < 4
    for one, other in zip(written, history.episodes, strict=False):
        assert_equal(one, other)


def test_a_missing_or_exchanged_block_is_noticed(tmp_path: Path) -> None:
    """The checksum of a block covers those before it."""
    from fallow.logs import blocks
    from fallow.logs.history import MAGIC

    path = tmp_path / "run.fallow"
    write(path, 3)
    scan, ends = blocks.Scan(), []
    for _ in blocks.read(path, MAGIC, scan):
        ends.append(scan.good_bytes)
    content = path.read_bytes()
    first, second = content[ends[0] : ends[1]], content[ends[1] : ends[2]]
    path.write_bytes(content[: ends[0]] + second + content[ends[2] :])
    assert read_history(path).episodes == ()
    path.write_bytes(content[: ends[0]] + second + first + content[ends[2] :])
    assert read_history(path).episodes == ()


@pytest.mark.parametrize("kept", [0.5, 0.9, 0.999])
def test_a_file_cut_short_is_read_up_to_there_and_continued(
    tmp_path: Path, kept: float
) -> None:
    path = tmp_path / "run.fallow"
    written = write(path, 4)
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    history = read_history(path)
    n_good = len(history.episodes)
    assert 1 <= n_good < 4 and f"first {n_good} episodes" in history.damage
    with HistoryWriter(path, HEADER) as writer:
        assert writer.n_episodes == n_good
        for one in written[n_good:]:
            writer.add(one)
    assert path.read_bytes() == content


def test_an_edited_file_is_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "run.fallow"
    write(path, 4)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(FallowError, match="damaged"):
        HistoryWriter(path, HEADER)
    assert path.read_bytes() == content


def test_going_on_from_an_earlier_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "run.fallow"
    written = write(path, 4)
    content = path.read_bytes()
    with HistoryWriter(path, HEADER, keep_episodes=2) as writer:
        for one in written[2:]:
            writer.add(one)
    assert path.read_bytes() == content
    with pytest.raises(FallowError, match="4 good episodes, fewer than the 9"):
        HistoryWriter(path, HEADER, keep_episodes=9)


WRITER = """
import sys
from conftest import *
from test_history import HEADER, episode
from fallow.logs import HistoryWriter
with HistoryWriter(sys.argv[1], HEADER) as writer:
    for seed in range(10**9):
        writer.add(episode(seed, length=500))
        print(seed, flush=True)
"""


def test_kill_minus_nine_loses_no_finished_episode(tmp_path: Path) -> None:
    path = tmp_path / "run.fallow"
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    reported = [int(process.stdout.readline()) for _ in range(20)]
    time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    history = read_history(path)
    assert len(history.episodes) > reported[-1]
    for seed, one in enumerate(history.episodes):
        assert_equal(one, episode(seed, length=500))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a Fallow history"),
        (b"\x80\x04pickle", "not a Fallow history"),
        (b"FALLOWH1", "no readable header"),
        (b"FALLOWH1" + b"\xff" * 40, "no readable header"),
    ],
)
def test_what_is_no_history_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "other.bin"
    path.write_bytes(content)
    with pytest.raises(FallowError, match=message):
        read_history(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FallowError, match=r"no history at .*gone"):
        read_history(tmp_path / "gone")


def test_another_runs_file_is_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "run.fallow"
    write(path, 1)
    other = Header(**{**vars(HEADER), "control_step_s": 0.1})
    with pytest.raises(FallowError, match="another header"):
        HistoryWriter(path, other)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observation": np.zeros((20, 2))}, r"observation .* \(21, 2\)"),
        ({"action": np.zeros((0, 1)), "reward": np.zeros(0)}, "no transitions"),
        ({"reward": np.zeros(3)}, r"reward .* \(20,\)"),
        ({"regime": np.zeros(3)}, r"regime .* \(20,\)"),
        ({"observation": np.full((21, 2), 1e300)}, "1e.300 does not fit float32"),
    ],
)
def test_an_episode_that_does_not_fit_is_refused(
    tmp_path: Path, changes: dict, message: str
) -> None:
    with HistoryWriter(tmp_path / "run.fallow", HEADER) as writer:
        with pytest.raises(FallowError, match=message):
            writer.add(Episode(**{**vars(episode()), **changes}))
        writer.add(episode())
    assert len(read_history(tmp_path / "run.fallow").episodes) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observation_type": "int8"}, "int8"),
        ({"actuator_velocity": (1, 0)}, "2 velocities for 1 actuators"),
        ({"actuator_velocity": (2,)}, "column 2 is outside the 2"),
    ],
)
def test_an_impossible_header_is_refused(changes: dict, message: str) -> None:
    with pytest.raises(FallowError, match=message):
        Header(**{**vars(HEADER), **changes})


def record(path: Path, worlds: Worlds, n_steps: int, recorder=None) -> Recorder:
    recorder = recorder or Recorder(worlds, path)
    random = np.random.default_rng(int(worlds.clock_frames[0]))
    for _ in range(n_steps):
        shape = (worlds.n_agents, worlds.n_worlds, worlds.n_actuators)
        actions = random.uniform(-1, 1, shape).astype(np.float32)
        recorder.add(actions, worlds.step(actions))
    return recorder


def test_worlds_record_while_they_run(tmp_path: Path) -> None:
    worlds = Worlds("walker-walk", "gain:shift_frame=1000", [[1, 2]])
    first = worlds.observation
    record(tmp_path / "run.fallow", worlds, 1010).close()
    history = read_history(tmp_path / "run.fallow")
    assert [e.world for e in history.episodes] == [0, 1, 0, 1]
    assert [e.start_frame for e in history.episodes] == [0, 0, 2000, 2000]
    assert {e.n_transitions for e in history.episodes} == {500}
    assert history.episodes[0].regime.tolist() == [0] * 250 + [1] * 250
    np.testing.assert_array_equal(
        history.episodes[1].observation[0], first[0, 1].astype(np.float32)
    )
    header = history.header
    assert header.actuators[1] == "right_knee" and header.control_step_s == 0.05
    assert header.columns[header.actuator_velocity[1]] == "right_knee [rad/s]"
    assert header.about["condition"] == "gain:shift_frame=1000"


def test_conditions_without_regimes_record_none(tmp_path: Path) -> None:
    worlds = Worlds("pendulum-swingup", "damping", [[1]])
    record(tmp_path / "run.fallow", worlds, 500).close()
    assert read_history(tmp_path / "run.fallow").episodes[0].regime is None


@pytest.mark.parametrize(
    ("task", "condition"),
    [
        ("walker-walk", "recurring:shift_frame=300,period_frames=500"),
        ("cheetah-run", "friction:shift_frame=300,draw_frames=200,std=0.1"),
        ("hopper-hop", "damage:shift_frame=1500"),
    ],
)
def test_an_episode_can_be_simulated_again_exactly(
    tmp_path: Path, task: str, condition: str
) -> None:
    """Also where the body changed in its middle, and in the second episode."""
    worlds = Worlds(task, condition, [[1, 2]])
    recorder = Recorder(worlds, tmp_path / "run.fallow", observation_type="float64")
    record(tmp_path / "run.fallow", worlds, 1000, recorder).close()
    history = read_history(tmp_path / "run.fallow")
    for index in (1, 2):
        again = [w.observation[0, 0] for w in resimulate(history, index)]
        recorded = history.episodes[index].observation
        np.testing.assert_array_equal(np.array(again), recorded)
    with pytest.raises(FallowError, match="no episode 4; the history has 0 to 3"):
        next(resimulate(history, 4))


def test_a_recording_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    """Killed between checkpoints, the file ends as if nothing had happened."""
    paths = [tmp_path / "whole.fallow", tmp_path / "resumed.fallow"]
    worlds = Worlds("pendulum-swingup", "gain", [[1, 2]])
    recorder = record(paths[0], worlds, 700)
    recorder = record(paths[0], worlds, 900, recorder)
    recorder.close()

    worlds = Worlds("pendulum-swingup", "gain", [[1, 2]])
    recorder = record(paths[1], worlds, 700)
    checkpoint = worlds.save(), recorder.save(), recorder.writer.n_episodes
    record(paths[1], worlds, 500, recorder).close()  # lost with the process

    worlds = Worlds("pendulum-swingup", "gain", [[1, 2]])
    worlds.restore(checkpoint[0])
    recorder = Recorder(worlds, paths[1], keep_episodes=checkpoint[2])
    recorder.restore(checkpoint[1])
    record(paths[1], worlds, 900, recorder).close()
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_rolls_and_recordings_agree(tmp_path: Path, random) -> None:
    """The recorder changes nothing about the run."""
    recorded, plain = (Worlds("pendulum-swingup", "gain", [[1]]) for _ in range(2))
    record(tmp_path / "run.fallow", recorded, 10).close()
    record(tmp_path / "other.fallow", plain, 10).close()
    last, other = roll(recorded, 1, random), roll(plain, 1, np.random.default_rng(0))
    np.testing.assert_array_equal(last[0].observation, other[0].observation)
