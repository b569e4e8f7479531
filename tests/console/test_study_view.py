"""What a study shows while it runs: plain lines where there is no terminal."""

import io
import json
import re
import sys
import types

import numpy as np
import pytest
from rich.console import Console

from fallow.agents.progress import EvaluationResult, Progress
from fallow.console.scalars import writers
from fallow.console.study import StudyView, show_status
from fallow.console.training import TrainingBar
from fallow.core.errors import FallowError
from fallow.study import Cell, Plan
from fallow.study.estimate import duration_text
from fallow.study.runner import Event
from fallow.study.status import status_of
from fallow.study.store import open_study

PLAN = Plan(
    "shown",
    (Cell("cartpole-swingup", "dreamer", ("none",), ("passive", "recency")),),
    preset="tiny",
    seeds=(3, 4),
    trunk_frames=8_000,
    capacity_transitions=20_000,
)


@pytest.fixture
def study(tmp_path):
    return open_study(PLAN, tmp_path / "study")


def events(study) -> list[Event]:
    fleet = study.fleets[1]
    evaluation = EvaluationResult(13_000, np.array([[10.0, 30.0], [50.0, 70.0]]))
    path = study.fleet_folder(fleet) / "status.json"
    path.parent.mkdir(parents=True)
    written = {"stage": "branches", "frame": 13_000, "until_frame": 138_000, "time": 0}
    written |= {"n_updates": 3_000, "session_updates": 2_000, "session_s": 20}
    path.write_text(json.dumps(written))
    return [
        Event(fleet, "branches", Progress(12_000, 138_000, 2_900, 100.0)),
        Event(fleet, "branches", Progress(13_000, 138_000, 3_000, 100.0, evaluation)),
        Event(fleet, "branches", Progress(0, 0, 0, 0.0, message="000.agent is bad")),
    ]


def test_without_a_terminal_there_are_lines(study, capsys) -> None:
    with StudyView(study.folder) as view:
        for event in events(study):
            view(event)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert "cartpole-swingup seed 4" in lines[0]
    assert "13,000 of 138,000" in lines[0] and "mean return   40.0" in lines[0]
    assert re.search(r"100 updates/s, about \d+ \w+ left$", lines[0])
    assert lines[1] == "000.agent is bad"


def test_without_a_terminal_a_line_comes_every_half_minute(
    study, capsys, monkeypatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    event = events(study)[0]
    for view, shown in (
        (lambda: StudyView(study.folder), event),
        (TrainingBar, event.progress),
    ):
        with view() as show:
            for wait_s in (0, 20, 11, 29, 1):
                now[0] += wait_s
                show(shown)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 2  # after 31 s and 30 s later
        assert all("12,000 of 138,000" in line for line in lines)
        assert all("100 updates/s" in line and "return" not in line for line in lines)


def test_quiet_prints_nothing(study, capsys) -> None:
    with StudyView(study.folder, quiet=True) as view:
        for event in events(study):
            view(event)
    assert capsys.readouterr().out == ""


def test_a_status_for_programs(study, run) -> None:
    events(study)
    code, out, _ = run("status", study.folder, "--json")
    status = json.loads(out)
    assert code == 0 and status["study"] == "shown"
    assert sum(status["branches"].values()) == 4
    assert [fleet["state"] for fleet in status["fleets"]] == ["left", "stopped"]
    assert status["fleets"][1]["frame"] == 13_000


def test_on_a_terminal_there_are_bars_with_the_time_left(study, monkeypatch) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    monkeypatch.setattr("fallow.console.study.Console", lambda: console)
    with StudyView(study.folder) as view:
        for event in events(study):
            view(event)
        view._bars.refresh()  # else it is drawn ten times a second
    shown = screen.getvalue()
    assert "0 of 4 branches" in shown and "left" in shown
    assert "100 updates/s" in shown


class Kept(list):
    def write(self, numbers, frame) -> None:
        self.append((frame, numbers))

    def close(self) -> None:
        self.append("closed")


def test_scalars_are_named_by_branch(study) -> None:
    kept = Kept()
    with StudyView(study.folder, quiet=True, scalars=[kept]) as view:
        for event in events(study):
            view(event)
    (frame, numbers), closed = kept
    assert (frame, closed) == (13_000, "closed")
    assert sorted(numbers.values()) == [20.0, 60.0]
    names = [f"{b.condition}/{b.rule}/seed 4" for b in study.fleets[1].branches]
    assert sorted(numbers) == sorted(f"evaluation/return/{name}" for name in names)


def test_weights_and_biases_gets_frames_that_may_fall(monkeypatch, tmp_path) -> None:
    kept, given = Kept(), {}
    run = types.SimpleNamespace(
        define_metric=lambda name, step_metric: given.update({name: step_metric}),
        log=kept.append,
        finish=kept.close,
    )
    library = types.ModuleType("wandb")
    library.init = lambda **some: given.update(some) or run
    monkeypatch.setitem(sys.modules, "wandb", library)
    (wandb,) = writers(tmp_path / "run", tensorboard=False, wandb="robots")
    assert not given  # nothing before the first number
    wandb.write({"loss": 1.0}, 200)
    wandb.write({"loss": 2.0}, 100)
    wandb.close()
    assert given["project"] == "robots" and given["name"] == "run"
    assert given["*"] == "frame"
    assert kept == [{"frame": 200, "loss": 1.0}, {"frame": 100, "loss": 2.0}, "closed"]


def test_without_weights_and_biases_the_command_is_named(monkeypatch, tmp_path) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(FallowError, match="--wandb needs the library 'wandb'; install"):
        writers(tmp_path, tensorboard=False, wandb="robots")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(4, "4 s"), (89, "89 s"), (200, "3 min"), (7_300, "2 h"), (200_000, "2 days")],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration_text(seconds) == words


def test_a_status_breaks_between_words_on_a_narrow_terminal(study) -> None:
    shown, kept = io.StringIO(), io.StringIO()
    terminal = Console(file=shown, width=40, force_terminal=True, color_system=None)
    show_status(status_of(study), terminal)
    assert max(len(line.rstrip()) for line in shown.getvalue().splitlines()) <= 40
    show_status(status_of(study), Console(file=kept, width=40))
    assert "0 of 4 branches done, 0 running, 0 stopped, 4 left\n" in kept.getvalue()


def test_a_status_says_where_the_time_went(study, capsys) -> None:
    events(study)
    path = study.fleet_folder(study.fleets[1]) / "status.json"
    spent = {"total": 100.0, "waiting": 60.0, "physics": 20.0, "storing": 5.0}
    written = json.loads(path.read_text()) | {"spent_s": {"branches": spent}}
    path.write_text(json.dumps(written))
    show_status(status_of(study), Console(highlight=False))
    line = next(x for x in capsys.readouterr().out.splitlines() if "learner" in x)
    assert line == "    branches 2 min: learner 60%, physics 20%, host 20%"
