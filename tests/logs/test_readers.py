"""Every format gives the same log back, whatever wrote it."""

import gzip
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import log_files
import numpy as np
import pytest

from fallow.core.errors import FallowError
from fallow.diagnosis import Example, decide, example
from fallow.logs import HistoryWriter, read_history
from fallow.logs.following import Following
from fallow.logs.log import Log
from fallow.logs.readers import READERS, Columns, logs_in, read_log

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
TRUTH = Example(n_episodes=24, change_points=(12,), n_steps=40)


@pytest.fixture(scope="module")
def log() -> Log:
    return example(TRUTH)


def assert_same_log(found: Log, log: Log) -> None:
    np.testing.assert_allclose(found.velocity, log.velocity, rtol=1e-12)
    np.testing.assert_allclose(found.action, log.action, rtol=1e-12)
    np.testing.assert_array_equal(found.n_transitions, log.n_transitions)
    np.testing.assert_array_equal(found.start_step, log.start_step)


@pytest.mark.parametrize("name", log_files.WRITERS)
def test_every_format_gives_the_log_back(name: str, log: Log, tmp_path: Path) -> None:
    found = read_log(log_files.write(name, log, tmp_path))
    assert found.format == log_files.WRITERS[name][0]
    assert_same_log(found, log)
    if name not in ("minari", "minari-arrow", "d4rl"):  # which keep no time
        assert found.control_step_s == pytest.approx(log_files.STEP_S, rel=1e-4)
    decision = decide(found)
    assert decision.change_points == (12,) and decision.discard


def test_every_reader_is_tried() -> None:
    assert {reader for reader, _, _ in log_files.WRITERS.values()} == set(READERS)


def test_what_is_guessed_is_noted_and_what_is_known_is_not(
    log: Log, tmp_path: Path
) -> None:
    notes = {
        name: " ".join(read_log(log_files.write(name, log, tmp_path / name)).notes)
        for name in ("history", "d4rl", "minari", "lerobot", "csv")
        if not (tmp_path / name).mkdir()
    }
    assert notes["history"] == ""
    assert "velocities of hopper_medium-v2: infos/qvel[3:6]" in notes["d4rl"]
    assert "velocities of Hopper-v5: observations[8:11]" in notes["minari"]
    assert "observation.state.joint_0.vel" in notes["lerobot"]
    assert "actions: 0_cmd, 1_cmd, 2_cmd" in notes["csv"]


@pytest.mark.parametrize(
    ("velocity", "action"),
    [
        ("observations[8:11]", "actions"),
        ("8:11", "0:3"),
        ("infos/qvel[3:6]", "actions[0:3]"),
        ("infos/qvel[-3:]", "actions[:]"),
        ("observations[8],observations[9:11]", "actions[0], actions[1:3]"),
        ("observations[-3],observations[-2:]", "actions[-3],actions[-2:]"),
    ],
)
def test_columns_by_name_and_by_slice(
    velocity: str, action: str, log: Log, tmp_path: Path
) -> None:
    path = log_files.write("d4rl", log, tmp_path)
    found = read_log(path, Columns(velocity=velocity, action=action))
    np.testing.assert_allclose(found.velocity, log.velocity, rtol=1e-6)
    np.testing.assert_allclose(found.action, log.action)
    assert found.notes == ()


def test_columns_come_in_the_order_asked_for(log: Log, tmp_path: Path) -> None:
    path = log_files.write("csv", log, tmp_path)
    found = read_log(path, Columns(velocity="2_vel,0_vel", action="2_cmd,0_cmd"))
    np.testing.assert_allclose(found.velocity, log.velocity[:, [2, 0]])
    assert found.actuators == ("2_cmd", "0_cmd")


def test_a_history_knows_the_velocity_of_each_action(log: Log, tmp_path: Path) -> None:
    path = log_files.write("history", log, tmp_path)
    found = read_log(path, Columns(action="joint 2,joint 0"))
    np.testing.assert_allclose(found.velocity, log.velocity[:, [2, 0]])
    np.testing.assert_allclose(found.action, log.action[:, [2, 0]])
    assert found.notes == ()


def test_velocities_are_matched_to_actions_by_joint(tmp_path: Path) -> None:
    path = tmp_path / "joints.csv"
    header = "episode,base_vel,hip_vel,knee_vel,knee_cmd,hip_cmd"
    lines = [f"{i // 4},9,1,2,20,10" for i in range(12)]
    path.write_text("\n".join([header, *lines]))
    found = read_log(path)
    assert found.actuators == ("knee_cmd", "hip_cmd")
    np.testing.assert_array_equal(found.velocity[0], [2, 1])


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_dialects(delimiter: str, log: Log, tmp_path: Path) -> None:
    log_files.write_csv(log, tmp_path / "a.csv", delimiter)
    assert_same_log(read_log(tmp_path / "a.csv"), log)


def test_csv_without_names_is_chosen_by_place(log: Log, tmp_path: Path) -> None:
    content = log_files.rows(log)
    table = np.column_stack([content["velocity"], content["action"]])
    np.savetxt(tmp_path / "a.csv", table, delimiter=",", fmt="%.17g")
    columns = Columns(velocity="0:3", action="3:6", episode_steps=41)
    assert_same_log(read_log(tmp_path / "a.csv", columns), log)


def test_a_recording_is_cut_into_pieces_and_the_rest_left(
    log: Log, tmp_path: Path
) -> None:
    path = log_files.write("npz", log, tmp_path)
    found = read_log(path, Columns(episode_steps=50))
    assert set(found.n_transitions) == {49}
    assert found.n_episodes == len(log.velocity) // 50


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        ("history", {"episode": "trial"}),
        ("history", {"episode_steps": 20}),
        ("minari", {"time": "when"}),
        ("npz-cube", {"episode": "trial"}),
        ("mcap", {"episode": "trial"}),
        ("csv", {"lag_ms": 5}),
    ],
)
def test_a_choice_without_effect_is_refused(
    name: str, choice: dict, log: Log, tmp_path: Path
) -> None:
    path = log_files.write(name, log, tmp_path)
    (field,) = choice
    flag = f"--{field.replace('_', '-')} has no effect on .*leave it out"
    with pytest.raises(FallowError, match=flag):
        read_log(path, Columns(**choice))
    with pytest.raises(FallowError, match=flag):
        list(Following((path,), Columns(**choice)))


def test_an_unknown_column_is_answered_with_those_that_have_names(
    log: Log, tmp_path: Path
) -> None:
    path = log_files.write("mcap", log, tmp_path)
    column = r"known: .*/joint_states\.velocity, .*/joint_states\.velocity\[joint 0\]"
    with pytest.raises(FallowError, match=column):
        read_log(path, Columns(velocity="joint 0"))


def test_a_table_may_begin_with_a_column_of_texts(log: Log, tmp_path: Path) -> None:
    path = log_files.write("csv", log, tmp_path)
    first, *lines = path.read_text().splitlines()
    dated = (f"2026-05-01 12:00:00,{line}" for line in lines)
    path.write_text("\n".join((f"date,{first}", *dated)))
    assert read_log(path, Columns(episode_steps=41)).n_episodes == log.n_episodes


def test_regimes_are_read_where_they_are(log: Log, tmp_path: Path) -> None:
    content = log_files.rows(log)
    regime = np.repeat(TRUTH.regime, TRUTH.n_steps + 1)
    np.savez(tmp_path / "a.npz", regime=regime, **content)
    np.testing.assert_array_equal(read_log(tmp_path / "a.npz").regime, TRUTH.regime)


def test_concurrent_worlds_keep_their_clock(log: Log, tmp_path: Path) -> None:
    from fallow.dynamics import Worlds
    from fallow.logs import Recorder

    worlds = Worlds("pendulum-swingup", seeds=[[0, 1]])
    random = np.random.default_rng(0)
    with Recorder(worlds, tmp_path / "a.fallow") as recorder:
        for _ in range(1000):
            actions = random.uniform(-1, 1, (1, 2, 1)).astype(np.float32)
            recorder.add(actions, worlds.step(actions))
    found = read_log(tmp_path / "a.fallow")
    assert found.start_step.tolist() == [0, 0, 500, 500]
    assert found.end_step.tolist() == [500, 500, 1000, 1000]


def test_a_clock_that_stood_still_is_not_believed(log: Log, tmp_path: Path) -> None:
    """Else all episodes would be of one age, and the AUC one half."""
    path, still = log_files.write("history", log, tmp_path), tmp_path / "still.fallow"
    history = read_history(path)
    with HistoryWriter(still, history.header) as writer:
        for episode in history.episodes:
            writer.add(replace(episode, start_frame=0))
    found = read_log(still)
    assert found.notes == (
        "the clock stood still: episodes are taken one after another",
    )
    np.testing.assert_array_equal(found.start_step, log.start_step)


def test_a_history_cut_short_is_read_as_far_as_it_goes(
    log: Log, tmp_path: Path
) -> None:
    path = log_files.write("history", log, tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    found = read_log(path)
    assert found.n_episodes == 23
    assert "the first 23 episodes" in found.notes[0]


def test_logs_below_a_folder(log: Log, tmp_path: Path) -> None:
    for name in ("history", "csv", "lerobot", "mcap-json"):
        log_files.write(name, log, tmp_path)
    (tmp_path / "README.md").write_text("not a log")
    found = logs_in((tmp_path,))
    assert [p.name for p in found] == ["run", "run.csv", "run.fallow", "takes"]
    assert logs_in((tmp_path / "run.csv",)) == [tmp_path / "run.csv"]


def test_velocity_changes_never_cross_episodes() -> None:
    velocity = np.array([[0.0], [1], [3], [100], [101], [105]])
    log = Log(
        source="hand",
        format="hand",
        actuators=("a",),
        velocity=velocity,
        action=np.ones((4, 1)),
        n_transitions=np.array([2, 2]),
        start_step=np.array([0, 2]),
    )
    assert log.velocity_change().ravel().tolist() == [1, 2, 1, 4]


def test_a_missing_library_is_named_with_the_command(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = {
        "h5py": log_files.write("d4rl", log, tmp_path),
        "pyarrow": log_files.write("lerobot", log, tmp_path),
        "mcap": log_files.write("mcap", log, tmp_path),
        "rosbags": log_files.write("ros1", log, tmp_path),
    }
    for module, path in paths.items():
        for name in [n for n in sys.modules if n.split(".")[0] == module]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(FallowError, match=rf"install .*'{module}[<>=]"):
            read_log(path)


def test_reading_imports_only_what_the_format_needs(log: Log, tmp_path: Path) -> None:
    path = log_files.write("history", log, tmp_path)
    code = (
        "import sys; from fallow.diagnosis.pipeline import diagnose;"
        f"diagnose({str(path)!r});"
        "heavy = {'jax', 'torch', 'mujoco', 'matplotlib', 'h5py', 'pyarrow', 'mcap',"
        " 'rosbags', 'pandas'};"
        "print(heavy & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_a_file_by_minari_itself(tmp_path: Path) -> None:
    """Written by minari 0.5.4; tests/data/make_minari.py says how."""
    packed = Path(__file__).parents[1] / "data" / "minari-0.5.4.hdf5.gz"
    path = tmp_path / "main_data.hdf5"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    with pytest.raises(FallowError, match=r"--velocity .* among .*observations\[0:6\]"):
        read_log(path)  # an environment that nobody knows
    found = read_log(path, Columns(velocity="observations[3:6]"))
    assert found.format == "minari"
    assert found.n_transitions.tolist() == [20] * 20
    decision = decide(found)
    assert decision.change_points == (10,) and decision.discard
    assert decision.magnitude.value == pytest.approx(0.5, abs=0.05)


def test_minari_observations_may_be_a_group(log: Log, tmp_path: Path) -> None:
    path = tmp_path / "main_data.hdf5"
    with h5py.File(path, "w") as file:
        for index, (velocity, action) in enumerate(log_files.episodes(log)):
            file[f"episode_{index}/observations/joint_vel"] = velocity
            file[f"episode_{index}/observations/camera"] = np.zeros((41, 2, 2))
            file[f"episode_{index}/actions"] = action
    found = read_log(path)
    assert found.format == "minari"
    assert_same_log(found, log)


def test_a_log_says_which_value_is_not_finite(log: Log) -> None:
    velocity = log.velocity.copy()
    velocity[41 * 3 + 5, 1] = np.inf
    with pytest.raises(
        FallowError, match="velocity driven by 'joint 1' is inf in episode 3"
    ):
        replace(log, velocity=velocity)
