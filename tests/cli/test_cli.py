"""The command line: fast, light, and clear about what is wrong."""

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


def test_an_unknown_command_says_what_there_is(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["lst"])
    assert end.value.code == 2 and "list" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "types"),
    [
        ("study", ["[STR ...]", "--preset STR", "--out PATH", "--dry-run "]),
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


def test_demo_tells_and_draws(tmp_path: Path) -> None:
    done = fallow("demo", "--walker", "--out", str(tmp_path / "demo"), "--seed", "3")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert "falls" in lines[0] and "Reward a frame" in lines[1]
    assert (tmp_path / "demo" / "walker.png").read_bytes().startswith(b"\x89PNG")


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    done = fallow("demo", "--walker", "--out", str(tmp_path / "taken"))
    assert done.returncode == 2
    assert "taken" in done.stderr and "Traceback" not in done.stderr
