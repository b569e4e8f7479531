"""`fallow track`: regimes of logs that grow, for people, machines and the page."""

import json
import signal
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import log_files
import numpy as np
import pytest

from fallow.diagnosis import Example, example
from fallow.diagnosis.follow import LogFollower
from fallow.diagnosis.regime_figures import drawn_joints
from fallow.diagnosis.regime_page import section
from fallow.diagnosis.regime_phrases import (
    gains_table,
    loss,
    lost,
    spans_text,
    verdict,
)
from fallow.diagnosis.regimes import Follower, SeenRegime, regimes_of
from fallow.logs import Columns, HistoryWriter, read_history
from fallow.logs.following import Following
from fallow.logs.log import Log

RECURRING = Example((1.0, 0.5, 1.0), (14, 24), 36, 60)
DEAD = Example((1.0, 0.0), (14,), 24, 60, n_joints=4, damaged_joint=2)


@pytest.fixture(scope="module")
def log() -> Log:
    return example(RECURRING)


def tracked(run, *arguments: object) -> list[dict]:
    code, out, error = run("track", *arguments, "--json")
    assert code == 0, error
    return [json.loads(line) for line in out.splitlines()]


def write_jsonl(log: Log, path: Path) -> None:
    content = log_files.rows(log)
    with path.open("w") as file:
        for i in range(len(content["episode"])):
            row = {"episode": int(content["episode"][i]), "time": content["time"][i]}
            row |= {n: content[n][i].tolist() for n in ("velocity", "action")}
            file.write(json.dumps(row) + "\n")


# ---------------------------------------------------------------- what is said


def test_a_change_and_a_return_are_lines(run, log: Log, tmp_path: Path) -> None:
    path = log_files.write("history", log, tmp_path)
    code, out, error = run("track", path)
    assert (code, error) == (0, "")
    first, change, back, summary = out.splitlines()
    assert "3 actuators (joint 0, joint 1, joint 2), 0.02 s a step" in first
    assert change.startswith("episode 15: regime 1, new, since 14: all 3 actuators")
    assert back == "episode 25: regime 0 again, since 24"
    assert summary.startswith("36 episodes, 2 regimes. Keep episodes 0 to 13, 24 to 35")


def test_the_joint_and_its_loss_are_named(run, tmp_path: Path) -> None:
    path = log_files.write("npz", example(DEAD), tmp_path)
    lines = run("track", path)[1].splitlines()
    (change,) = [line for line in lines if "new" in line]
    assert "joint 2" in change or "action[2] lost" in change
    assert "action[0]" not in change


def test_json_is_one_object_for_each_episode(run, log: Log, tmp_path: Path) -> None:
    updates = tracked(run, log_files.write("csv", log, tmp_path))
    assert [u["episode"] for u in updates] == list(range(36))
    assert [u["regime"] for u in updates][13:26] == [0, 0, *[1] * 10, 0]
    assert updates[15]["relabelled"] == [[14, 1]] and updates[15]["state"] == "changed"
    for update in updates:
        assert set(update["probabilities"]) >= {str(update["regime"])}
        for gain, (low, high) in zip(update["gain"], update["interval"], strict=True):
            assert low <= gain <= high


@pytest.mark.parametrize("kind", ["csv", "npz", "mcap", "jsonl", "stdin"])
def test_every_format_gives_the_same_regimes(
    run, log: Log, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind in ("jsonl", "stdin"):
        path = tmp_path / "run.jsonl"
        write_jsonl(log, path)
    else:
        path = log_files.write(kind, log, tmp_path)
    if kind == "stdin":
        monkeypatch.setattr(sys, "stdin", path.open())
    updates = tracked(run, "-" if kind == "stdin" else path)
    assert [u["episode"] for u in updates if u["state"] == "changed"] == [15, 25]


def test_ci(run, log: Log, tmp_path: Path) -> None:
    path = log_files.write("npz", log, tmp_path)
    kept = log_files.write("csv", example(Example((1.0,), (), 12, 60)), tmp_path)
    assert run("track", path)[0] == 0
    assert run("track", path, "--ci")[0] == 10
    assert run("track", kept, "--ci")[0] == 0


def test_the_page(run, log: Log, tmp_path: Path) -> None:
    path, page = log_files.write("npz", log, tmp_path), tmp_path / "page.html"
    assert run("track", path, "--html", page)[0] == 0
    text = page.read_text()
    assert text.count("<svg") == 4  # regimes, three gains
    assert "Keep episodes 0 to 13, 24 to 35" in text
    for loader in ("<script", "<link", "<img", "@import", "url(http", " src="):
        assert loader not in text


def test_phrases() -> None:
    gain = np.array([0.5, 1.0, 1.3])
    regime = SeenRegime(1, gain, gain - 0.1, gain + 0.1)
    assert loss(regime, 0) == "lost 50 % (40 to 60)"
    assert loss(regime, 2) == "grew by 30 % (20 to 40)"
    names = ("hip", "knee", "toe")
    assert (
        lost(regime, names) == "hip lost 50 % (40 to 60), toe grew by 30 % (20 to 40) "
        "(other damping or load looks alike)"
    )
    loose = replace(regime, calibrated=False)
    assert lost(loose, names).endswith("uncalibrated")
    assert "no gains" in lost(replace(regime, explained=False), names)
    alike = SeenRegime(1, np.full(2, 0.5), np.full(2, 0.4), np.full(2, 0.6))
    assert lost(alike, names[:2]) == "both actuators lost 50 % (40 to 60)"
    assert spans_text([(0, 3), (5, 6)]) == "0 to 2, 5"


def test_gains_that_explain_nothing_are_not_shown(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They stay at 1, which would read as an unchanged body."""
    found = regimes_of(log)
    assert found.in_force == 0 and len(gains_table(found).rows) == 3
    first, other = found.seen
    unknown = replace(found, in_force=1, seen=(first, replace(other, explained=False)))
    assert gains_table(unknown).rows == () and drawn_joints(unknown, 9) == []
    assert "Gains in the regime" not in section(unknown)
    assert "; no gains explain it" in verdict(unknown)


# ---------------------------------------------------------------- continuing


def test_state_continues_where_the_last_call_stopped(
    run, log: Log, tmp_path: Path
) -> None:
    """In a file that has grown, and in another file: as if all were read at once."""
    whole = tracked(run, log_files.write("history", log, tmp_path))
    history = read_history(tmp_path / "run.fallow")
    part, rest, state = (tmp_path / n for n in ("a.fallow", "b.fallow", "state"))
    found: list[dict] = []
    for begin, end, path in ((0, 9, part), (9, 22, part), (22, 36, rest)):
        with HistoryWriter(path, history.header) as writer:
            for episode in history.episodes[begin:end]:
                writer.add(episode)
        found += tracked(run, path, "--state", state)
    for update in whole + found:
        update.pop("source")
    assert found == whole
    code, out, _ = run("track", rest, "--state", state)
    assert code == 0 and "36 episodes, 2 regimes" in out


def test_a_follower_is_saved_and_restored_exactly(log: Log) -> None:
    parts = log_files.episodes(log)
    one = Follower.of(log.actuators, 0.02)
    for velocity, action in parts[:16]:
        one.update(velocity, action)
    arrays, header = one.save()
    other = Follower.restore(arrays, json.loads(json.dumps(header)))
    for velocity, action in parts[16:]:
        one.update(velocity, action), other.update(velocity, action)
    np.testing.assert_array_equal(one.regimes().labels, other.regimes().labels)
    assert one.changes == other.changes and len(one.changes) == 2


def test_another_robot_does_not_continue(run, log: Log, tmp_path: Path) -> None:
    state = tmp_path / "state"
    run("track", log_files.write("npz", log, tmp_path), "--state", state)
    other = log_files.write("csv", example(replace(DEAD, n_episodes=9)), tmp_path)
    code, _, error = run("track", other, "--state", state)
    assert code == 2 and "track logs of one robot" in error and error.count("\n") == 1


# ---------------------------------------------------------------- bad input


def test_broken_episodes_are_named_skipped_and_counted(
    run, log: Log, tmp_path: Path
) -> None:
    """Half a line, a word, NaN, a short episode, another clock: never an alarm."""
    short = example(Example((1.0,), (), 20, 60))
    lines = log_files.write("csv", short, tmp_path).read_text().splitlines()
    at = lambda episode: 1 + 61 * episode + 5  # noqa: E731
    lines[at(10)] = lines[at(10)][:20]
    lines[at(12)] = lines[at(12)].rsplit(",", 1)[0] + ",nan"
    lines[at(14)] = "what,is,this"
    text = "\n".join(lines[: at(19)]) + "\n"
    path = tmp_path / "broken.csv"
    path.write_text(text)
    code, out, error = run("track", path)
    assert (code, error) == (0, "")
    for words in (
        "episode 10: skipped: 1 of its rows cannot be read",
        "episode 12: skipped: NaN, infinite or above 1e+12 in 1 of ",
        "episode 14: skipped: 1 of its rows cannot be read",
        "episode 19: skipped: 4 steps, fewer than 20",
        "20 episodes (4 skipped), 1 regime. Keep all: ",
    ):
        assert words in out


def test_columns_that_change_within_a_table_end_it_and_nothing_is_lost(
    run, log: Log, tmp_path: Path
) -> None:
    """Other columns, or another order; what came before is kept in state and page."""
    lines = log_files.write("csv", log, tmp_path).read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("20"))
    names = lines[0].split(",")
    swapped = ",".join([names[0], *reversed(names[1:])])
    changes = {
        "cannot be read with the columns of its first": [
            x + ",1" for x in lines[place:]
        ],
        "change their order within the file": [swapped, *lines[place:]],
    }
    path, state, page = (tmp_path / name for name in ("new.csv", "state", "page.html"))
    for words, rest in changes.items():
        path.write_text("\n".join(lines[:place] + rest) + "\n")
        # in blocks, as lines come
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("fallow.logs.growing.BLOCK_BYTES", 1 << 12)
            code, _, error = run("track", path, "--state", state, "--html", page)
        assert code == 2 and words in error and error.count("\n") == 1
        following = Following([path], Columns())
        assert LogFollower(following, state).regimes().labels.size >= 19
        assert "regime 1" in page.read_text()
        state.unlink(), page.unlink()


def test_tables_that_were_joined_keep_their_rows(log: Log, tmp_path: Path) -> None:
    """A head in the middle is no broken line, nor is a delimiter at a line's end."""
    lines = log_files.write("csv", log, tmp_path).read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("20,"))
    path = tmp_path / "joined.csv"
    text = [*lines[:place], lines[0], *(line + "," for line in lines[place:])]
    path.write_text("\n".join(text) + "\n")
    found = list(Following([path], Columns()))
    assert len(found) == 36
    assert not any(item.episode.defect for item in found)


def test_ctrl_c_waits_until_an_episode_is_tracked(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its line is printed, so that the state holds what was reported."""
    path, update = log_files.write("npz", log, tmp_path), Follower.update

    def interrupted(self: Follower, *arguments: object) -> object:
        if self.tracker.n_episodes == 5:
            signal.raise_signal(signal.SIGINT)
        return update(self, *arguments)

    monkeypatch.setattr(Follower, "update", interrupted)
    follower, seen = LogFollower(Following([path], Columns()), tmp_path / "state"), 0
    with pytest.raises(KeyboardInterrupt):
        for _ in follower:
            seen += 1
    assert seen == 6 and follower.regimes().labels.size == 6
    assert follower.read[str(path)][0] == 6
    follower.save()
    monkeypatch.setattr(Follower, "update", update)
    later = LogFollower(Following([path], Columns()), tmp_path / "state")
    assert len(list(later)) == 30


def test_a_clock_that_jumps_is_no_alarm(log: Log) -> None:
    follower = Follower.of(log.actuators, 0.02)
    for velocity, action in log_files.episodes(log)[:12]:
        follower.update(velocity, action, 0.02)
    update = follower.update(*log_files.episodes(log)[12], 0.04)
    assert update.note.startswith("skipped: its control step is 0.04 s")
    assert follower.regimes().n_skipped == 1 and not follower.changes


def test_a_short_log_decides_nothing(run, tmp_path: Path) -> None:
    path = log_files.write("csv", example(Example((1.0,), (), 5, 60)), tmp_path)
    code, out, _ = run("track", path)
    assert code == 0 and "needs 8 usable episodes" in out and "has 5" in out


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.csv", None, "there is no log"),
        ("empty.csv", "", "there is no log"),
        ("head.csv", "episode,qvel,action\n", "has a header and no rows"),
        ("numbers.csv", "1,2,3\n4,5,6\n", "must name the columns"),
        ("open.csv", "qvel,action\n1,2\n3,4\n", "does not say where episodes end"),
        ("names.csv", "episode,a,b\n0,1,2\n0,1,2\n0,1,2\n", "--velocity"),
        ("comma.csv", "episode;qvel;action\n0;0,5;1,0\n", "decimal point"),
        ("words.csv", "episode,qvel,action\nx,1,2\nx,1,2\n", "holds no numbers"),
        ("list.jsonl", "[1, 2]\n", "not a JSON object"),
        ("torn.jsonl", '{"a": \n', "not a JSON object"),
        ("x.npz", "no archive", "x.npz"),
    ],
)
def test_bad_input_is_one_sentence(
    run, tmp_path: Path, name: str, content: str | None, words: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    code, _, error = run("track", path)
    assert code == 2 and words in error
    assert error.startswith("fallow: ") and error.count("\n") == 1


def test_bad_options(run, tmp_path: Path) -> None:
    assert run("track")[0] == 2
    assert "--idle-s" in run("track", "x.csv", "--idle-s", "-1")[2]
    assert "add --follow" in run("track", "x.csv", "--idle-s", "1")[2]
    (tmp_path / "no.state").write_text("something else")
    code, _, error = run("track", "x.csv", "--state", tmp_path / "no.state")
    assert code == 2 and "or a new file to begin again" in error
    assert "false_alarms" in run("track", "x", "--false-alarms-per-1000", "0")[2]


def test_standard_input_that_ends_is_over(
    log: Log, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = log_files.write("csv", log, tmp_path)
    with path.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        found = list(Following([Path("-")], Columns(), follow=True))
    assert len(found) == 36


def test_regimes_of_a_log_in_memory(log: Log) -> None:
    found = regimes_of(log)
    np.testing.assert_array_equal(found.labels, log.regime)
    assert found.keep == ((0, 14), (24, 36)) and found.discards
    assert [c.since for c in found.changes] == [14, 24]
    assert [c.is_new for c in found.changes] == [True, False]


def test_revised_gains_are_a_line() -> None:
    """Once a revision; a regime that comes into force is none."""
    log = LogFollower(Following((), Columns()))
    revised = [
        log._is_revised(SimpleNamespace(regime=regime, gain=np.array(gain)))
        for regime, gain in [
            (0, [1.0, 1.0]),
            (1, [0.5, 0.5]),
            (1, [0.45, 0.5]),
            (1, [0.0, 1.0]),
            (1, [0.0, 1.0]),
            (0, [1.0, 1.0]),
        ]
    ]
    assert revised == [False, False, False, True, False, False]
