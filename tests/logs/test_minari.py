"""Data sets by Minari's own writer: Ant, HalfCheetah and Hopper that lose half a gain.

`tests/data/make_minari_mujoco.py` made them.
"""

import shutil
import tarfile
from pathlib import Path

import log_files
import numpy as np
import pytest
from conftest import diagnosis

from fallow.core.errors import FallowError
from fallow.diagnosis import decide
from fallow.logs import Columns, logs_in, read_log
from fallow.logs.log import Log

PACKED = Path(__file__).parents[1] / "data" / "minari-mujoco.tar.xz"
CHANGE = 6
"""First episode at half the gain."""
EXPECTED = {
    "ant": (4.42, 2.60, "Ant-v5: observations[25], observations[26], observations[19]"),
    "halfcheetah": (7.70, 3.78, "HalfCheetah-v5: observations[11:17]"),
    "hopper": (1.21, 0.63, "Hopper-v5: observations[8:11]"),
}
"""K before and after the change, and the note."""


@pytest.fixture(scope="module")
def data_sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("minari")
    with tarfile.open(PACKED) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("name", EXPECTED)
def test_half_the_gain_is_found(name: str, data_sets: Path) -> None:
    log = read_log(data_sets / name / "test-v0")
    before, after, note = EXPECTED[name]
    assert log.format == "minari" and log.n_transitions.tolist() == [40] * 12
    assert note in log.notes[1]
    decision = decide(log)
    assert decision.change_points == (CHANGE,) and decision.discard
    response = decision.response.mean
    assert np.median(response[:CHANGE]) == pytest.approx(before, rel=0.01)
    assert np.median(response[CHANGE:]) == pytest.approx(after, rel=0.01)
    assert decision.magnitude.value == pytest.approx(0.5, abs=0.1)


def test_an_id_is_found_where_minari_keeps_it(
    run, data_sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FallowError, match="no file or folder at ant/test-v0"):
        read_log("ant/test-v0")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(data_sets))
    assert logs_in((Path("ant/test-v0"),)) == [data_sets / "ant" / "test-v0"]
    assert diagnosis(run, "hopper/test-v0")["change_points"] == [CHANGE]
    monkeypatch.delenv("MINARI_DATASETS_PATH")
    home = tmp_path / "home" / ".minari" / "datasets"
    shutil.copytree(data_sets / "hopper", home / "hopper")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert read_log("hopper/test-v0").n_episodes == 12
    (tmp_path / "hopper").mkdir()  # what is here comes first
    shutil.copytree(data_sets / "halfcheetah" / "test-v0", tmp_path / "hopper/test-v0")
    assert len(read_log("hopper/test-v0").actuators) == 6


def test_the_file_alone_finds_its_description_beside_it(data_sets: Path) -> None:
    log = read_log(data_sets / "ant" / "test-v0" / "data" / "main_data.hdf5")
    assert "Ant-v5" in log.notes[1]


@pytest.mark.parametrize("data_format", ["arrow", "parquet"])
def test_observations_in_a_structure(
    data_format: str, small_log: Log, tmp_path: Path
) -> None:
    log_files.write_minari_columnar(small_log, tmp_path, data_format)
    log = read_log(tmp_path)
    np.testing.assert_array_equal(log.velocity, small_log.velocity)
    np.testing.assert_array_equal(log.action, small_log.action)
    some = Columns(velocity="observations/goal", action="actions[0:2]")
    assert read_log(tmp_path, some).velocity.shape[1] == 2
