"""`fallow train`: results, histories, Ctrl-C and resuming."""

import dataclasses
import itertools
import os
import re
import shutil
import signal
import time

import numpy as np
import pytest
from small_dreamer import MICRO
from test_fleet import TASK

from fallow.agents import runs, training
from fallow.agents.dreamer.config import PRESETS
from fallow.agents.fleet import Fleet, build_agent
from fallow.agents.learners import Learners
from fallow.agents.progress import EvaluationResult, Progress
from fallow.cli import main
from fallow.console.training import TrainingBar
from fallow.core.lock import lock
from fallow.core.records import Branch
from fallow.core.results import read_results
from fallow.logs import read_history

MICRO = dataclasses.replace(MICRO, train_ratio=2)  # an update in four steps
if "micro" not in PRESETS:
    PRESETS.add("micro", MICRO)

FRAMES = 2400  # 600 steps of two worlds, so that every world finishes an episode


def arguments(folder, *more: str) -> list[str]:
    fixed = ["train", "--task", TASK, "--preset", "micro", "--frames", str(FRAMES)]
    fixed += ["--evaluate-frames", "800", "--episodes", "2", "--save-frames", "1000"]
    rules = ["--rule", "passive", "recency:window_transitions=100"]
    return [*fixed, *rules, "--out", str(folder), *more]


def rows_but_time(path) -> list:
    return [dataclasses.replace(row, wall_s=None) for row in read_results(path)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that was never stopped."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert main(arguments(folder, "--tensorboard")) == 0
    return folder


def test_a_table_of_evaluations(whole) -> None:
    rows = read_results(whole / "results.csv")
    assert [row.frame for row in rows] == [800, 800, 1600, 1600, 2400, 2400]
    assert {row.rule for row in rows} == {
        "passive",
        "recency:window_transitions=100",
    }
    for row in rows:
        assert len(row.returns) == 2
        assert row.mean_return == pytest.approx(sum(row.returns) / 2, abs=0.02)
        assert row.branch_frame == row.frame and row.trunk == ""
        assert row.auc is None  # nothing is stale
        assert row.stale_share == 0
        assert row.wall_s > 0


@pytest.mark.slow
def test_a_preset_with_sizes_changed(tmp_path) -> None:
    """It learns with them, and its name says so everywhere."""
    preset = "micro:pretrain_updates=2,prefill_transitions=90"
    run = runs.Run(TASK, "dreamer", preset, (Branch(0),), 240, 240, 1)
    table = runs.train(run, tmp_path / "run")
    rows = read_results(table)
    assert {row.preset for row in rows} == {preset}
    assert rows[-1].updates >= 2
    assert runs.Run.read(tmp_path / "run") == run
    agent = build_agent(TASK, preset=preset)
    changes = {"pretrain_updates": 2, "prefill_transitions": 90}
    assert agent.config == dataclasses.replace(MICRO, **changes)
    assert agent.schedule.pretrain_updates == 2


@pytest.mark.slow
def test_a_rate_is_since_the_evaluation_before(tmp_path) -> None:
    """Not of the moment, in which nothing but the evaluation was done."""
    run = runs.Run(TASK, "dreamer", "micro", (Branch(0), Branch(1)), FRAMES, 800, 2)
    reported: list[tuple[float, Progress]] = []

    def watch(progress: Progress) -> None:
        if progress.evaluation is not None:
            reported.append((time.perf_counter(), progress))

    runs.train(run, tmp_path / "run", watch)
    assert len(reported) == 3
    for (before, first), (after, then) in itertools.pairwise(reported):
        made = 2 * (then.n_updates - first.n_updates)
        assert then.updates_per_s == pytest.approx(made / (after - before), rel=0.1)


def test_histories_and_events_are_written(whole) -> None:
    for name in ("000.fallow", "001.fallow"):
        history = read_history(whole / "fleet-0" / "histories" / name)
        assert len(history.episodes) == MICRO.n_worlds
        assert history.episodes[0].policy_std is not None
    assert list((whole / "events").iterdir())


@pytest.mark.parametrize("beside", [False, True])
def test_ctrl_c_saves_and_resuming_ends_the_same(
    beside: bool, whole, tmp_path, monkeypatch, capsys
) -> None:
    """Whether training waits for evaluations or not."""
    monkeypatch.setattr(training, "on_processor", lambda: not beside)
    folder = tmp_path / "stopped"
    step = Fleet.step

    def interrupted(fleet: Fleet):
        if fleet.n_steps == 333:
            os.kill(os.getpid(), signal.SIGINT)
        return step(fleet)

    with monkeypatch.context() as patched:
        patched.setattr(Fleet, "step", interrupted)
        assert main(arguments(folder)) == 130
    printed, said = capsys.readouterr()
    assert "stopped at frame 1,336" in said and f"--resume {folder}" in said
    assert "stopping after this step" in printed
    assert main(["train", "--resume", str(folder)]) == 0
    one, other = (rows_but_time(path / "results.csv") for path in (whole, folder))
    assert one == other
    histories = [p / "fleet-0" / "histories" / "001.fallow" for p in (whole, folder)]
    assert histories[0].read_bytes() == histories[1].read_bytes()


def test_ctrl_c_in_the_last_step_is_not_lost(tmp_path, monkeypatch, capsys) -> None:
    """A study would else begin its next phase."""
    step = Fleet.step

    def interrupted(fleet: Fleet):
        if fleet.frame + fleet.frames_per_step == FRAMES:
            os.kill(os.getpid(), signal.SIGINT)
        return step(fleet)

    monkeypatch.setattr(Fleet, "step", interrupted)
    assert main(arguments(tmp_path / "last")) == 130
    assert f"stopped at frame {FRAMES:,}" in capsys.readouterr().err


def test_nan_losses_are_reported_without_a_traceback(
    tmp_path, monkeypatch, capsys
) -> None:
    class Broken(Learners):
        @property
        def metrics(self):
            return {"model/reward": np.array([1.0, np.nan])}

    monkeypatch.setattr("fallow.agents.fleet.Learners", Broken)
    assert main(arguments(tmp_path / "broken")) == 1
    said = capsys.readouterr().err
    assert "model/reward of branch 1" in said and "--resume" in said


def test_a_folder_of_another_run_is_refused(whole, capsys) -> None:
    assert main(arguments(whole, "--seeds", "5")) == 2
    assert "holds another run" in capsys.readouterr().err
    assert main(["train", "--resume", str(whole / "nothing")]) == 2
    assert "it has no run.json" in capsys.readouterr().err


def test_one_process_at_a_time(whole, capsys) -> None:
    """A second one would write the same files."""
    with lock(whole / "lock"):
        assert main(["train", "--resume", str(whole)]) == 2
    assert f"is in use by process {os.getpid()}" in capsys.readouterr().err
    assert main(["train", "--resume", str(whole)]) == 0


def test_a_start_leaves_the_file_of_a_run_alone(whole) -> None:
    """So that a kill there cannot damage it."""
    before = (whole / "run.json").stat()
    assert main(arguments(whole)) == 0
    assert (whole / "run.json").stat().st_ino == before.st_ino


@pytest.mark.parametrize("damage", [b"", b'{"task": "pend', b"[]", b"\xff"])
def test_a_damaged_file_of_a_run_is_made_again(damage, whole, tmp_path, capsys) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(whole, folder)
    (folder / "run.json").write_bytes(damage)
    assert main(["train", "--resume", str(folder)]) == 2
    said = capsys.readouterr().err
    assert str(folder / "run.json") in said and f"--out {folder}" in said
    assert main(arguments(folder)) == 0
    assert runs.Run.read(folder) == runs.Run.read(whole)
    assert (folder / "run.json.damaged-0").read_bytes() == damage


def test_a_resumed_run_keeps_its_choices(whole, capsys) -> None:
    table = (whole / "results.csv").read_bytes()
    given = ["--frames", "900000", "--rule", "reset"]
    assert main(["train", "--resume", str(whole), *given]) == 2
    assert "leave out --rule, --frames" in capsys.readouterr().err
    assert (whole / "results.csv").read_bytes() == table


def test_a_run_is_no_study(whole, capsys) -> None:
    assert main(["report", str(whole)]) == 2
    assert "is of fallow train" in capsys.readouterr().err
    assert not (whole / "report.html").exists()


@pytest.mark.parametrize(
    ("n", "words"), [(1, "   3.0  9"), (2, "   3.0 (sd   0.0: 3 3)  9")]
)
def test_a_spread_is_of_several(n: int, words: str, capsys) -> None:
    with TrainingBar() as bar:
        bar(Progress(10, 20, 5, 9.0, EvaluationResult(8, np.full((n, 2), 3.0))))
    assert f"return {words} updates/s" in capsys.readouterr().out


def test_a_line_in_a_pipe_is_one_line(capsys) -> None:
    returns = np.full((12, 2), 300.0)
    with TrainingBar() as bar:
        bar(Progress(10, 20, 5, 9.0, EvaluationResult(8, returns)))
    (line,) = capsys.readouterr().out.splitlines()
    assert len(line) > 80


@pytest.mark.parametrize(
    "command", [["train"], ["study", "table1", "--dry-run"], ["demo"]]
)
def test_without_jax_it_is_one_sentence(command, monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(command) == 2
    assert re.search(r"pip install .*'jax[<>=]", capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["checkpoint/001.replay", "results.csv"])
def test_what_is_damaged_is_named(name, whole, tmp_path, capsys) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(whole, folder)
    path = folder / "fleet-0" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 40] = b"x" * 40
    path.write_bytes(content)
    assert main(["train", "--resume", str(folder)]) == 2
    assert str(path) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--preset", "hug", "unknown preset of dreamer 'hug'"),
        ("--preset", "lean:hrizon=9", "did you mean 'horizon'"),
        ("--preset", "lean:horizon=1", "horizon is 1"),
        ("--preset", "lean:batch=2.5", "batch is 2.5; it must be a whole number"),
        (
            "--preset",
            "lean:actor_rate=0",
            "actor_rate is 0; it must be a number, above",
        ),
        ("--preset", "lean:compute=float16", "unknown compute of dreamer 'float16'"),
        ("--preset", "lean:n_starts=2000", "n_starts is 2000 and a batch has 1024"),
        ("--task", "walker-wlk", "did you mean 'walker-walk'"),
        ("--rule", "recncy", "did you mean 'recency'"),
        ("--rule", "recency:window_transitions=900000", "buffer can hold 200,000"),
        ("--condition", "damage:actuator=9", "actuator is 9; the body has actuators"),
        ("--condition", "gian", "did you mean 'gain'"),
        ("--seeds", "4-0", "cannot read seeds '4-0'"),
        ("--seeds", "0-2147483646", "are more than 10,000; give fewer"),
        ("--frames", "0", "--frames is 0; it must be a whole number, 1 or more"),
        ("--episodes", "-1", "--episodes is -1"),
    ],
)
def test_bad_choices(option, value, words, tmp_path, capsys) -> None:
    assert main(["train", option, value, "--out", str(tmp_path / "x")]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
