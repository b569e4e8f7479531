"""`fallow simulate`: every task, reproducible, and what is recorded is found again."""

from pathlib import Path

import numpy as np
import pytest
from conftest import diagnosis

from fallow.dynamics import TASKS, Worlds
from fallow.dynamics.scripted import Scripted
from fallow.logs import read_history
from fallow.logs.readers import read_log
from fallow.logs.simulate import simulate

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("task", "condition", "expected"),
    [
        pytest.param("walker-walk", "none", [], marks=SLOW),
        pytest.param("walker-walk", "gain:shift_frame=15000", [15], marks=SLOW),
        ("walker-walk", "recurring:shift_frame=10000,period_frames=10000", [10, 20]),
        ("cheetah-run", "damage:shift_frame=15000", [15]),
    ],
)
def test_simulated_bodies(
    run, task: str, condition: str, expected: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "h.fallow"
    code, out, error = run(
        *("simulate", task, "--condition", condition),
        *("--episodes", 30, "-o", path),
    )
    assert code == 0, error
    assert f"30 episodes of {task} under" in out
    found = diagnosis(run, path)
    assert found["truth"]["change_points"] == expected
    assert len(found["change_points"]) == len(expected)
    for at, true in zip(found["change_points"], expected, strict=True):
        assert abs(at - true) <= 2


@pytest.mark.parametrize("task", TASKS)
def test_every_task_can_be_simulated(task: str, tmp_path: Path) -> None:
    simulate(task, "none", 1, 3, tmp_path / "a.fallow")
    episode = read_history(tmp_path / "a.fallow").episodes[0]
    moved = episode.observation[:, list(Worlds(task).task.body.actuator_velocity)]
    assert episode.n_transitions == 500
    assert (episode.action.std(axis=0) > 0.1).all()
    assert (moved.std(axis=0) > 1e-3).all()


def test_simulating_follows_from_the_seed(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        simulate("pendulum-swingup", "gain", 2, seed, tmp_path / name)
    contents = [(tmp_path / name).read_bytes() for name in "abc"]
    assert contents[0] == contents[1] != contents[2]
    assert not list(tmp_path.glob("*.part*"))


def test_the_scripted_amplitude_drifts() -> None:
    policy = Scripted(6, 0.05, seed=2)
    sizes = [policy.actions(e, 500).std() for e in range(0, 160, 10)]
    assert max(sizes) > 1.8 * min(sizes)
    assert np.abs(policy.actions(0, 500)).max() <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("walker-wlk", "-o", "a"), "did you mean 'walker-walk'"),
        (("walker-walk", "--condition", "gian", "-o", "a"), "did you mean 'gain'"),
        (("walker-walk", "--episodes", "0", "-o", "a"), "1 or more"),
        (("walker-walk", "--seed", "-1", "-o", "a"), "0 or more"),
        (("walker-walk", "-o", "there"), "exists already"),
    ],
)
def test_bad_simulations(
    run, arguments: tuple, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").write_text("mine")
    code, _, error = run("simulate", *arguments)
    assert code == 2 and message in error
    assert Path("there").read_text() == "mine" and not Path("a").exists()


def test_the_truth_of_a_history_follows_its_condition(tmp_path: Path) -> None:
    simulate("walker-walk", "damage:shift_frame=1000", 2, 0, tmp_path / "a.fallow")
    log = read_log(tmp_path / "a.fallow")
    assert log.regime.tolist() == [0, 1]
    assert log.gain.tolist() == [[1] * 6, [0, 1, 1, 1, 1, 1]]
