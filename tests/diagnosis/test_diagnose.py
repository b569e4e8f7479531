"""`fallow diagnose`, end to end: tables, JSON, the page, exit codes."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import log_files
import numpy as np
import pytest
from conftest import diagnosis

from fallow.console import progress
from fallow.diagnosis import Example, example
from fallow.diagnosis.phrases import notes
from fallow.diagnosis.pipeline import diagnose, diagnose_log
from fallow.diagnosis.recommendation import recommendation, state
from fallow.logs import HistoryWriter, read_history
from fallow.logs.log import Log
from fallow.logs.simulate import simulate

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def test_json_has_what_machines_need(run, small_log: Log, tmp_path: Path) -> None:
    path = log_files.write("history", small_log, tmp_path)
    found = diagnosis(run, path)
    assert found["decision"] == "discard" and found["rule"] == "recency"
    assert found["auc"] == 1.0
    assert found["magnitude"] == pytest.approx(0.5, abs=0.05)
    low, high = found["magnitude_interval"]
    assert low < found["magnitude"] < high
    assert found["change_points"] == [12]
    assert found["stale"] == [True] * 12 + [False] * 12
    assert found["gates"]["auc"] == {
        "threshold": 0.87,
        "passed": True,
        "margin": pytest.approx(0.13),
    }
    assert [s["stale"] for s in found["segments"]] == [True, False]
    assert found["settings"]["variant"] == "joint"
    assert found["settings"]["scale"] == "mad"
    assert found["settings"]["stale_by"] == "mean"
    assert found["truth"]["change_points"] == [12]
    assert found["recommendation"] == "discard"
    assert found["abrupt_change_points"] == [12]
    assert [s["stale"] for s in found["stretches"]] == [True, False]
    assert [boundary["abrupt"] for boundary in found["boundaries"]] == [True]
    assert len(found["boundaries"][0]["effect"]) == 3
    assert [joint["name"] for joint in found["joints"]] == [
        "joint 0",
        "joint 1",
        "joint 2",
    ]
    assert found["tracker"]["keep"] == [[12, 24]] and found["tracker"]["ready"]
    assert found["tracker"]["labels"] == [0] * 12 + [1] * 12
    assert [regime["id"] for regime in found["tracker"]["regimes"]] == [0, 1]
    for low, high in found["tracker"]["regimes"][1]["interval"]:
        assert low < 0.5 < high
    assert found["tracker"]["changes"][0]["since"] == 12
    for joint in found["joints"]:
        low, high = joint["interval"]
        assert low < joint["lost"] < high and joint["changed"]
        assert joint["lost"] == pytest.approx(1 - joint["now"] / joint["before"])


def test_one_dead_motor_is_named_in_every_view(run, tmp_path: Path) -> None:
    """In the terminal, in JSON and on the page; the mean over six joints hides it."""
    truth = Example((1.0, 0.0), (12,), 24, 60, n_joints=6, damaged_joint=4)
    path, page = log_files.write("npz", example(truth), tmp_path), tmp_path / "p.html"
    _, out, _ = run("diagnose", path, "--html", page)
    found = diagnosis(run, path)
    assert found["decision"] == "keep" and found["recommendation"] == "discard"
    assert found["tracker"]["regimes"][1]["changed"] == [j == 4 for j in range(6)]
    dead = found["joints"][4]
    assert dead["state"] == "changed" and dead["lost"] == pytest.approx(1, abs=0.05)
    low, high = (f"{100 * end:.0f}" for end in dead["interval"])
    size = f"{100 * dead['lost']:.0f} % ({low} to {high})"
    named = f"actuator 4 ({dead['name']}) lost {size}"
    for text in (found["advice"], " ".join(out.split()), page.read_text()):
        assert named in text and "The paper&#39;s" in text.replace("'", "&#39;")


def test_stale_by(run, tmp_path: Path) -> None:
    truth = Example((1.0, 0.0), (18,), 24, 60, n_joints=6, damaged_joint=4)
    path = log_files.write("npz", example(truth), tmp_path)
    z = {}
    for stale_by in ("mean", "any-joint"):
        found = diagnosis(run, path, "--stale-by", stale_by)
        assert found["settings"]["stale_by"] == stale_by.replace("-", "_")
        z[stale_by] = found["segments"][0]["z"]
    assert 0 < z["mean"] < z["any-joint"] / 3


def test_the_terminal_has_a_table_and_advice(
    run, small_log: Log, tmp_path: Path
) -> None:
    path = log_files.write("npz", small_log, tmp_path)
    code, out, _ = run("diagnose", path)
    assert code == 0
    words = " ".join(out.split())
    for expected in (
        "24 episodes, 960 transitions, 3 actuators",
        "note: guessed actions:",
        "0 to 11",
        "AUC discard 1.00 0.87",
        "Keep episodes 12 to 23: regime 1 is in force since episode 12; all 3",
        "The response changed at episode 12; actuator",
        "1 12 to 23 keep all 3 actuators lost",
        "The paper's selector says discard",
        "Response is not gain",
    ):
        assert expected in words


def test_the_example_is_a_walker_at_half_gain(run) -> None:
    """A real learner: the policy changes the sign of one response, no gain has."""
    path = Path(__file__).parents[2] / "examples" / "data" / "walker-gain.fallow"
    found = diagnose(path)
    assert found.regimes is not None and found.regimes.keep == ((28, 60),)
    regime = found.regimes.regime(1)
    assert (regime.low < 0.5).all() and (regime.high > 0.5).all()
    assert "changed its sign" in [state(joint) for joint in found.joints]
    assert recommendation(found) == "discard"
    code, out, _ = run("track", path)
    assert (
        code == 0 and "episode 29: regime 1, new, since 28: all 6 actuators lost" in out
    )


def test_no_change_is_said_plainly(run, tmp_path: Path) -> None:
    path = log_files.write("npz", example(Example((1.0,), (), 60, 50)), tmp_path)
    _, out, _ = run("diagnose", path)
    words = " ".join(out.split())
    assert "Keep the old data: the actuator response did not change in 60" in words


@pytest.mark.parametrize("variant", ["joint", "mean", "large"])
def test_variants(run, variant: str, small_log: Log, tmp_path: Path) -> None:
    path = log_files.write("npz", small_log, tmp_path)
    found = diagnosis(run, path, "--variant", variant)
    assert found["settings"]["variant"] == variant
    assert found["change_points"] == [12]


def test_exit_codes_for_ci(run, small_log: Log, tmp_path: Path) -> None:
    gone = log_files.write("npz", small_log, tmp_path)
    kept = log_files.write("csv", example(Example((1.0,), (), n_episodes=12)), tmp_path)
    assert run("diagnose", gone)[0] == 0
    assert run("diagnose", gone, "--ci")[0] == 10
    assert run("diagnose", kept, "--ci")[0] == 0
    assert run("diagnose", kept, gone, "--ci")[0] == 10
    assert run("diagnose", tmp_path / "none.npz", "--ci")[0] == 2


def test_times_and_columns_that_cannot_be_right_are_notes() -> None:
    """Steps of hours, and velocities of other joints."""
    log = example(Example((1.0,), (), n_episodes=20))
    slow = diagnose_log(replace(log, control_step_s=2e7), tracker=False)
    assert any("are the times in seconds" in note for note in notes(slow))
    crossed = replace(log, velocity=np.roll(log.velocity, 1, axis=1))
    found = notes(diagnose_log(crossed, tracker=False))
    assert any("does each velocity belong to its action" in note for note in found)
    assert notes(diagnose_log(log, tracker=False)) == []


def test_a_folder_gives_a_table(run, small_log: Log, tmp_path: Path) -> None:
    log_files.write("history", small_log, tmp_path)
    log_files.write("npz", example(Example((1.0,), (), n_episodes=12)), tmp_path)
    code, out, _ = run("diagnose", tmp_path)
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["run.fallow", "discard"] in [row[:2] for row in rows]
    assert ["run.npz", "keep"] in [row[:2] for row in rows]
    both = json.loads(run("diagnose", tmp_path, "--json")[1])
    assert [entry["decision"] for entry in both] == ["discard", "keep"]


def test_one_bad_log_among_several_is_a_row(
    run, small_log: Log, tmp_path: Path
) -> None:
    log_files.write("history", small_log, tmp_path)
    short = example(Example((1.0,), (), n_episodes=4))
    log_files.write("npz", short, tmp_path)
    page = tmp_path / "page.html"
    code, out, _ = run("diagnose", tmp_path, "--html", page, "--ci")
    assert code == 2
    assert "bad input" in out and "4 episodes with actions" in " ".join(out.split())
    assert "4 episodes with actions" in page.read_text()
    rows = re.findall(r"<tr>.*?</tr>", page.read_text().split("</table>")[0], re.DOTALL)
    assert len({len(re.findall("<t[dh]", row)) for row in rows}) == 1
    both = json.loads(run("diagnose", tmp_path, "--json")[1])
    assert "error" in both[1] and both[0]["decision"] == "discard"


def test_bad_paths_among_several_are_rows(run, small_log: Log, tmp_path: Path) -> None:
    """A missing file, a folder without logs, a torn file: the good log is diagnosed."""
    good = log_files.write("npz", small_log, tmp_path)
    empty, torn = tmp_path / "empty", tmp_path / "torn.npz"
    empty.mkdir()
    torn.write_bytes(good.read_bytes()[:200])
    bad = [tmp_path / "none.csv", empty, torn]
    code, out, _ = run("diagnose", *bad, good, "--json")
    assert code == 2
    *failures, found = json.loads(out)
    assert [Path(failure["path"]) for failure in failures] == bad
    assert all(failure["error"] for failure in failures)
    assert found["decision"] == "discard"
    for path in bad:  # alone, each is an error
        code, _, error = run("diagnose", path)
        assert code == 2 and error.startswith("fallow: ") and error.count("\n") == 1


def test_names_of_bad_files_never_reach_the_terminal_raw(run, tmp_path: Path) -> None:
    """Escape codes and bytes that are not UTF-8, in the table, JSON and the page."""
    page = tmp_path / "page.html"
    names = [b"\x1b[31mred.csv", b"\xff\xfe.csv", b"<script>.csv"]
    paths = [Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)) for name in names]
    code, out, _ = run("diagnose", *paths, "--html", page)
    shown = (
        out + page.read_text(encoding="utf-8") + run("diagnose", *paths, "--json")[1]
    )
    assert code == 2
    assert "\x1b" not in shown and "\\x1b[31mred.csv" in out.replace("\n", "")
    assert "\\xff\\xfe.csv" in out.replace("\n", "")
    assert "<script" not in page.read_text(encoding="utf-8")


def test_a_page_is_replaced_only_when_the_new_one_is_written(
    run, small_log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log_files.write("npz", small_log, tmp_path)
    page = tmp_path / "new" / "folder" / "page.html"
    assert run("diagnose", path, "--html", page)[0] == 0
    before = page.read_bytes()

    def full(part: Path, text: str, encoding: str) -> None:
        part.write_bytes(text.encode()[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    code, _, error = run("diagnose", path, "--html", page)
    assert code == 2 and "No space left" in error
    assert page.read_bytes() == before
    assert [p.name for p in page.parent.iterdir()] == ["page.html"]


def test_sentences_of_a_page_begin_with_a_capital_and_count_well(
    run, tmp_path: Path
) -> None:
    truth = Example((1.0, 0.5), (12,), n_episodes=20, n_steps=30, n_joints=13)
    path = log_files.write("csv", example(truth), tmp_path)
    for command in ("diagnose", "track"):
        page = tmp_path / f"{command}.html"
        assert run(command, path, "--html", page)[0] == 0
        text = page.read_text()
        items = re.findall(r"<li>(.)", text)
        assert items and all(first.isupper() for first in items)
        hidden = "Not drawn: 1 more actuator that changed less."
        assert hidden in text or command == "track"


def test_the_page_is_whole_and_needs_no_network(
    run, small_log: Log, tmp_path: Path
) -> None:
    path, page = (
        log_files.write("npz", small_log, tmp_path),
        tmp_path / "out" / "page.html",
    )
    assert run("diagnose", path, "--html", page)[0] == 0
    text = page.read_text()
    assert text.count("<svg") == 9  # regimes, gains, the mean, three joints, the plane
    assert "Keep episodes 12 to 23" in text and "prefers-color-scheme: dark" in text
    for loader in ("<script", "<link", "<img", "@import", "url(http", " src="):
        assert loader not in text
    assert "default-src 'none'; style-src 'unsafe-inline'\"" in text
    for colour in ("#1f2328", "#2b6c99"):
        assert colour not in text.split("</style>")[1]
    run("diagnose", path, "--html", tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text() == text


HOSTILE = "<script>alert(1)</script>--> $x^ \\frac{ & \"'"


def test_a_column_name_is_text_and_nothing_else(
    run, small_log: Log, tmp_path: Path
) -> None:
    path, page = tmp_path / "<b>&.csv", tmp_path / "page.html"
    content = log_files.rows(small_log)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["episode", "v", HOSTILE])
        columns = (content["episode"], content["velocity"][:, 0])
        writer.writerows(zip(*columns, content["action"][:, 0], strict=True))
    code, out, error = run("diagnose", path, "--action", HOSTILE, "--html", page)
    assert code == 0, error
    text = page.read_text()
    assert "<script" not in text and "<b>&." not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "[red]" not in out
    summary = diagnose(path, action=HOSTILE)._repr_html_()
    assert "<script" not in summary and "<b>&." not in summary
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in summary


def test_a_name_that_looks_like_markup_is_shown_as_it_is(run, tmp_path: Path) -> None:
    for name in ("[red]a.npz", "[bold]b.npz"):
        log_files.write_npz(
            example(Example((1.0,), (), n_episodes=12)), tmp_path / name
        )
    code, out, _ = run("diagnose", tmp_path)
    assert code == 0 and "[red]a.npz" in out and "[bold]b.npz" in out


def test_the_same_decision_without_the_regime_column(run, tmp_path: Path) -> None:
    path, blind = tmp_path / "a.fallow", tmp_path / "b.fallow"
    simulate("cheetah-run", "gain:shift_frame=12000", 24, 1, path)
    history = read_history(path)
    with HistoryWriter(blind, replace(history.header, about={})) as writer:
        for episode in history.episodes:
            writer.add(replace(episode, regime=None, start_state=None))
    seen, unseen = diagnosis(run, path), diagnosis(run, blind)
    assert seen["truth"] == {"change_points": [12], "auc": 1.0, "magnitude": 0.5}
    assert unseen["truth"] is None
    for name in ("path", "truth"):
        seen.pop(name), unseen.pop(name)
    assert seen == unseen
    assert seen["change_points"] == [12] and seen["decision"] == "discard"


COLD = """
import sys
from fallow.cli import main
code = main(["diagnose", sys.argv[1], "--html", sys.argv[2]])
heavy = {"jax", "torch", "mujoco", "dm_control", "gymnasium"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy or code else 0)
"""


def test_diagnose_never_imports_jax(small_log: Log, tmp_path: Path) -> None:
    path = log_files.write("history", small_log, tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", COLD, str(path), str(tmp_path / "page.html")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


class Terminal(io.StringIO):
    """An error stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("patience_s", "shown"), [(0.0, True), (30.0, False)])
def test_a_progress_bar_appears_when_it_takes_long(
    patience_s: float, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE_S", patience_s)
    monkeypatch.setenv("TERM", "xterm")
    with progress.progress(2, "counting sheep") as tick:
        tick()
        time.sleep(0.5)
        tick()
    assert ("counting sheep" in stream.getvalue()) == shown


def test_no_progress_bar_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    with progress.progress(1, "counting sheep") as tick:
        time.sleep(0.1)
        tick()
    assert capsys.readouterr().err == ""
