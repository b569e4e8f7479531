"""Every command in a real terminal, where progress bars and colours are drawn."""

import json

import pytest
from conftest import EXAMPLES
from terminal import in_terminal

from fallow.cli.commands import Command

SIZES = (
    "tiny:n_worlds=1,n_deter=8,n_hidden=8,n_categoricals=2,n_classes=4,coder_layers=1,"
    "coder_width=8,head_width=8,batch=2,length=8,n_starts=4,horizon=4,train_ratio=2,"
    "prefill_transitions=70,pretrain_updates=3"
)
STUDY = f"""
name = "small"
preset = "{SIZES}"
seeds = [0]
trunk_frames = 1000
branch_frames = 600
shift_frame = 0
evaluate_frames = 400
n_episodes = 1
save_frames = 300

[[cells]]
task = "pendulum-swingup"
conditions = ["gain"]
rules = ["passive", "reset"]
"""
NAMES = [kind.__name__.removesuffix("Command").lower() for kind in (
    one.__origin__ for one in Command.__args__
)]  # fmt: skip


def check(ended, *words: str, code: int = 0) -> None:
    assert "Traceback" not in ended.text, ended.text
    assert ended.code == code, ended.text
    for word in words:
        assert word in ended.text, ended.text


def test_every_command_is_tried_here() -> None:
    """A new one is added to the tests below."""
    tried = "demo diagnose list report simulate status study track train"
    assert sorted(NAMES) == tried.split()


@pytest.mark.parametrize("name", ["", *NAMES])
def test_help_fits_a_narrow_terminal(name: str) -> None:
    words = [name] if name else []
    check(in_terminal(*words, "--help", columns=60), "usage: fallow")


def test_list() -> None:
    check(in_terminal("list"), "walker-walk", "recency")


def test_simulate_and_diagnose(tmp_path) -> None:
    history = tmp_path / "h.fallow"
    made = in_terminal("simulate", "cartpole-swingup", "-o", history, "--episodes", 12)
    check(made, "12 episodes")
    check(in_terminal("diagnose", history), "Keep the old data")
    check(in_terminal("diagnose", history, "--json"), '"decision": "keep"')
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 no archive")
    both = in_terminal("diagnose", tmp_path, "--html", tmp_path / "page.html")
    check(both, "h.fallow", "bad input", code=2)
    assert (tmp_path / "page.html").exists()


def test_track_and_ctrl_c(tmp_path) -> None:
    """A log that is complete, and one that is followed until Ctrl-C."""
    history = EXAMPLES / "data" / "walker-gain.fallow"
    check(in_terminal("track", history), "regime 1, new", "Keep episodes 28 to")
    stopped = in_terminal(
        *("track", history, "--follow", "--state", tmp_path / "state"),
        interrupt=lambda seen: "regime 1, new" in seen,
    )
    check(stopped, "Keep episodes 28 to", "fallow: interrupted", code=130)
    check(in_terminal("track", tmp_path / "no.csv"), "--follow waits", code=2)


def test_the_walkers_demo(tmp_path) -> None:
    check(in_terminal("demo", "--walker", folder=tmp_path), "A scripted gait walks")


def test_train_and_ctrl_c(tmp_path) -> None:
    """With its bar, which has no total before the first step."""
    out = tmp_path / "run"
    words = ["--task", "pendulum-swingup", "--preset", SIZES, "--frames", 3000]
    words += ["--evaluate-frames", 1000, "--episodes", 1, "--out", out]
    stopped = in_terminal("train", *words, interrupt=lambda seen: "frame  " in seen)
    check(stopped, f"fallow train --resume {out}", "frames", code=130)
    assert "updates/s" in stopped.text and "\x1b[" in stopped.raw
    run = json.loads((out / "run.json").read_text())
    assert run["until_frame"] == 3000


def test_study_status_report_and_copies(tmp_path) -> None:
    (tmp_path / "small.toml").write_text(STUDY)
    out = tmp_path / "small"
    check(in_terminal("study", tmp_path / "small.toml", "--dry-run"), "branches   2")
    stopped = in_terminal(
        "study",
        tmp_path / "small.toml",
        "--out",
        out,
        # rule `reset` has nothing to learn from yet
        interrupt=lambda seen: "branches  frame" in seen or "branches, " in seen,
    )
    check(stopped, f"fallow study --resume {out}", code=130)
    assert not list(out.glob("fleets/*/failed.json"))
    check(in_terminal("status", out), "2 stopped")
    check(in_terminal("study", "--resume", out), "results:", "100 %")
    check(in_terminal("status", out), "2 of 2 branches done")
    check(in_terminal("report", out, "--tables"), "report:", "Reset-once")
    shared = tmp_path / "shared"
    check(in_terminal("study", "share", out, "--out", shared), "results:")


def test_bad_input_is_one_sentence(tmp_path) -> None:
    ended = in_terminal("diagnose", tmp_path / "no.npz")
    check(ended, "no.npz", code=2)
    assert ended.text.count("\n") <= 3
