"""The command line: fast, light, and clear about what is wrong."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Run

from fallow import cli
from fallow.cli.commands import _command
from fallow.cli.study import OF_A_START as STUDY_STARTS
from fallow.cli.train import OF_A_START as TRAIN_STARTS
from fallow.cli.training import resume_command
from fallow.core import extras
from fallow.core.errors import FallowError

ROOT = Path(__file__).parents[2]

HEAVY = ("jax", "torch", "mujoco", "matplotlib", "dm_control", "gymnasium")

HELP = f"""
import sys, time
sys.argv = ["fallow", "--help"]
try:
    from fallow.cli import main
    main()
except SystemExit as end:
    assert end.code == 0
loaded = [name for name in {HEAVY} if name in sys.modules]
print("LOADED", loaded, "CPU", time.process_time())
"""


def fallow(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "fallow.cli", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "120"},
    )


def test_help_is_quick_and_imports_nothing_heavy() -> None:
    best = 10.0
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", HELP], capture_output=True, text=True, check=True
        )
        last = done.stdout.splitlines()[-1]
        assert "LOADED []" in last
        best = min(best, float(last.split()[-1]))
    commands = "demo diagnose list report simulate status study track train"
    for command in commands.split():
        assert command in done.stdout
    assert best < 0.5


def test_list_as_json(capsys: pytest.CaptureFixture) -> None:
    assert cli.main(["list", "--json"]) == 0
    names = json.loads(capsys.readouterr().out)
    assert names["tasks"] == [
        "walker-stand",
        "walker-walk",
        "walker-run",
        "cheetah-run",
        "cartpole-swingup",
        "pendulum-swingup",
        "hopper-hop",
    ]
    assert names["conditions"] == [
        "gain",
        "damage",
        "recurring",
        "reversal",
        "damping",
        "friction",
        "none",
    ]
    assert names["rules"] == [
        "passive",
        "recency",
        "graded",
        "wmar",
        "reservoir",
        "reset",
        "curious",
        "matched",
        "adaptive",
    ]
    assert names["studies"] == [
        "table1",
        "table2",
        "table3",
        "recurrence",
        "magnitude",
        "window",
        "selector",
        "online",
        "demo",
    ]
    assert names["formats"] == [
        "history",
        "npz",
        "minari",
        "d4rl",
        "lerobot",
        "mcap",
        "ros",
        "csv",
    ]


def test_list_for_people(capsys: pytest.CaptureFixture) -> None:
    assert cli.main(["list"]) == 0
    shown = capsys.readouterr().out
    for name in ("walker-walk", "recurring", "saw_wave", "lerobot"):
        assert name in shown


def test_list_does_not_import_mujoco() -> None:
    code = (
        "import sys; from fallow.cli import main; main(['list']);"
        "sys.exit('mujoco' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_version() -> None:
    from fallow import __version__

    assert fallow("--version").stdout.strip() == f"fallow {__version__}"


def test_no_command_says_what_to_try_first(run: Run) -> None:
    code, out, _ = run()
    assert code == 0
    commands = re.findall(r"^  (fallow .*?)  ", out, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        _command(command.split()[1:])  # each is known


def test_an_unknown_command_says_what_there_is(run: Run) -> None:
    code, _, error = run("stduy", "table1")
    assert code == 2 and len(error.splitlines()) == 1
    assert "unknown command 'stduy': did you mean 'study'? known: demo" in error


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("report", "a", "--until", "x"), "it is 'x'; give a whole number"),
        (("study", "a", "--seeds-per-fleet", "1.5"), "it is '1.5'; give a whole"),
        (("track", "a", "--idle-s", "soon"), "it is 'soon'; give a number"),
    ],
)
def test_a_text_that_is_no_number_is_named(
    words: tuple[str, ...], what: str, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(list(words))
    assert end.value.code == 2 and what in capsys.readouterr().err


def test_what_the_system_refuses_is_a_sentence_with_a_remedy(
    tmp_path: Path, run: Run
) -> None:
    (tmp_path / "taken").write_text("a file")
    code, _, error = run("simulate", "cartpole-swingup", "-o", tmp_path / "taken" / "h")
    assert code == 2 and "Errno" not in error and len(error.splitlines()) == 1
    assert f"cannot use {tmp_path / 'taken'}" in error and "; " in error


def test_ctrl_c_ends_without_unloading_libraries(tmp_path: Path) -> None:
    """One that was interrupted in its work can crash there, and hide the exit code."""
    script = tmp_path / "interrupted.py"
    script.write_text(
        "import os, sys\n"
        "class Crashing:\n"
        "    def __del__(self, end=os._exit): end(99)\n"
        "def interrupted(arguments=None):\n"
        "    sys.crashing = Crashing()\n"
        "    print('before')\n"
        "    raise KeyboardInterrupt\n"
        "from fallow import cli\n"
        "cli.main = interrupted\n"
        "cli.console()\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (130, "before\n")
    assert done.stderr == "fallow: interrupted\n"


def test_a_stopped_run_is_resumed_with_its_options() -> None:
    study = _command(
        ["study", "table1", "--seeds", "0", "--trunks", "my trunks", "--tensorboard"]
    )
    assert resume_command("study", Path("runs/a b"), study, STUDY_STARTS) == (
        "fallow study --resume 'runs/a b' --trunks 'my trunks' --tensorboard"
    )
    train = _command(["train", "--frames", "4000", "--wandb", "mine"])
    assert resume_command("train", Path("runs/t"), train, TRAIN_STARTS) == (
        "fallow train --resume runs/t --wandb mine"
    )


def test_what_a_resumed_study_cannot_change_is_refused(run: Run) -> None:
    code, _, error = run("study", "table1", "--out", "a", "--resume", "b")
    assert code == 2 and "its own options; leave out NAME, --out" in error


@pytest.mark.parametrize(
    ("command", "types"),
    [
        ("study", ["[NAME ...]", "--preset STR", "--out PATH", "--dry-run "]),
        ("train", ["--rule [STR ...]", "--resume PATH", "--no-histories"]),
        ("diagnose", ["[PATH ...]", "--lag-ms FLOAT", "--ci "]),
    ],
)
def test_types_read_in_help(
    command: str, types: list[str], capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    shown = capsys.readouterr().out
    assert "None}" not in shown and "--no-ci" not in shown
    assert [text for text in types if text not in shown] == []


def test_optional_and_several_values_are_read() -> None:
    study = _command(["study", "merge", "a", "b", "--out", "None"])
    assert study.name == ("merge", "a", "b") and study.out == Path("None")
    train = _command(["train", "--rule", "passive", "recency"])
    assert train.rule == ("passive", "recency") and train.resume is None


def test_a_missing_library_is_named_with_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The libraries themselves: PyPI does not have Fallow."""
    listed = ["numpy>=2", "jax<1,>=0.10; extra == 'fleet'", "h5py; extra == 'logs'"]
    monkeypatch.setattr("importlib.metadata.requires", lambda name: listed)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    python = f"{sys.executable} -m pip install"
    assert extras.install_command("fleet") == f"{python} 'jax<1,>=0.10'"
    monkeypatch.setattr("importlib.metadata.requires", lambda name: [])
    monkeypatch.setattr(shutil, "which", lambda name: sys.executable)
    assert extras.install_command("gym") == f"pip install -e '{ROOT}[gym]'"
    with pytest.raises(FallowError, match="a test needs the library 'no_such'; inst"):
        extras.load("no_such.module", "gym", "a test")


@pytest.mark.parametrize(
    ("adapter", "library"), [("sb3", "stable-baselines3"), ("torchrl", "torchrl")]
)
def test_an_adapter_without_its_library_names_the_command(
    adapter: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"fallow.replay.adapters.{adapter}"
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(
        "importlib.metadata.requires", lambda _: [f"{library}; extra == '{adapter}'"]
    )
    with pytest.raises(ModuleNotFoundError, match=f"{name} needs torch; .* {library}"):
        importlib.import_module(name)


def test_demo_prints_and_draws(tmp_path: Path) -> None:
    done = fallow("demo", "--walker", "--out", str(tmp_path / "demo"), "--seed", "3")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert "falls" in lines[0] and "Reward a frame" in lines[1]
    assert (tmp_path / "demo" / "walker.png").read_bytes().startswith(b"\x89PNG")


def test_demo_refuses_an_option_of_its_other_half() -> None:
    for options in (("--walker", "--seeds", "3"), ("--seed", "3")):
        done = fallow("demo", *options)
        assert done.returncode == 2 and "is of the" in done.stderr


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    done = fallow("demo", "--walker", "--out", str(tmp_path / "taken"))
    assert done.returncode == 2
    assert "taken" in done.stderr and "Traceback" not in done.stderr
