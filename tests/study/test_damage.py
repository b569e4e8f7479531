"""A study's folder after damage and kills; training is pretended."""

import dataclasses
import errno
import json
import os
import socket
import subprocess

import pytest
from pretended_study import BEGIN, PLAN, table

from fallow.agents import training
from fallow.agents.learners import LearningError
from fallow.core.errors import FallowError
from fallow.core.results import read_results
from fallow.study import engines, runner
from fallow.study import trunks as trunks_module
from fallow.study.engines import run_study
from fallow.study.status import status_of
from fallow.study.store import open_study, read_study

pytest_plugins = "pretended_fixtures"

# -------------------------------------------------------------------- damage


def test_a_changed_table_is_set_aside_and_its_fleet_run_again(done, pretender) -> None:
    before = table(done)
    fleet = read_study(done).fleets[1]
    path = done / "fleets" / fleet.id / "results.csv"
    path.write_text(path.read_text().replace("passive", "passivf"))
    assert status_of(done).n_branches("done") == 8
    run_study(PLAN, done, pretender.watch)
    assert pretender.trained == ["prefixes", fleet.id]
    assert table(done) == before
    message, shared, work = pretender.messages
    assert shared == "prefixes: 2; compiling, then training"
    assert work == "branches: 4; compiling, then training"
    assert fleet.id in message and "damaged-0" in message and "4 branches" in message
    assert (done / "fleets" / f"{fleet.id}.damaged-0" / "results.csv").exists()


def test_a_damaged_checkpoint_is_named_and_set_aside(done, pretender) -> None:
    before = table(done)
    fleet = read_study(done).fleets[0]
    folder = done / "fleets" / fleet.id
    (folder / "done.json").unlink()
    (folder / "checkpoint").mkdir()
    (folder / "checkpoint" / "000.agent").write_text("damaged")
    run_study(PLAN, done, pretender.watch)
    assert pretender.trained == ["prefixes", fleet.id] and table(done) == before
    assert "000.agent: its checksum is wrong" in pretender.messages[0]


def test_a_damaged_trunk_is_trained_again(done, pretender, monkeypatch) -> None:
    fleet = read_study(done).fleets[0]
    trunk = done.parent / "trunks" / fleet.trunks[0].id
    (done / "fleets" / fleet.id / "done.json").unlink()

    # reads the trunk, which is no checkpoint at all
    monkeypatch.setattr(runner, "_begin", BEGIN)
    with pytest.raises(FallowError, match=r"000\.agent cannot be read.*a trunk"):
        run_study(PLAN, done, pretender.watch)  # and so is the one trained again
    assert trunk.with_name(f"{trunk.name}.damaged-0").exists()
    assert [name for name in pretender.trained if name.startswith("work-")]


def test_trunks_cut_off_while_handed_over_are_all_there_in_the_end(
    pretender, tmp_path, monkeypatch
) -> None:
    plan = dataclasses.replace(PLAN, seeds_per_fleet=3)
    hand_over = trunks_module._hand_over

    def cut_off(work, index, trunk, store) -> None:
        if index == 1:
            raise KeyboardInterrupt
        hand_over(work, index, trunk, store)

    monkeypatch.setattr(trunks_module, "_hand_over", cut_off)
    with pytest.raises(KeyboardInterrupt):
        run_study(plan, tmp_path / "study")
    monkeypatch.setattr(trunks_module, "_hand_over", hand_over)
    run_study(plan, tmp_path / "study")
    works = [name for name in pretender.trained if name.startswith("work-")]
    assert len(works) == 2 and len(set(works)) == 1  # resumed, not begun anew
    left = {path.name for path in (tmp_path / "trunks").iterdir() if path.is_dir()}
    assert left == {trunk.id for trunk in plan.trunks()}
    assert len(read_results(tmp_path / "study" / "trunks.csv")) == 3


def test_what_workers_write_is_reported_once(done) -> None:
    study = read_study(done)
    fleet = study.fleets[0]
    written = {"stage": "branches", "frame": 70_000, "until_frame": 138_000, "time": 1}
    written |= {"n_updates": 9, "session_updates": 1000, "session_s": 10}
    path = study.fleet_folder(fleet) / "status.json"
    path.write_text(json.dumps(written))
    events: list = []
    monitor = engines.FleetMonitor(study, events.append)
    monitor.report(fleet)
    monitor.report(fleet)
    path.write_text(json.dumps(written | {"time": 2}))
    monitor.report(fleet)
    assert [event.progress.frame for event in events] == [70_000] * 2
    assert events[0].progress.evaluation.returns.shape == (4, 1)
    assert events[1].progress.evaluation is None  # evaluated once
    assert events[0].progress.updates_per_s == 100


def test_no_space_left_is_one_sentence(pretender, tmp_path) -> None:
    run_study(PLAN, tmp_path / "study")
    fleet = read_study(tmp_path / "study").fleets[2]
    (tmp_path / "study" / "fleets" / fleet.id / "done.json").unlink()
    pretender.full_at = fleet.id
    with pytest.raises(FallowError, match=r"no space is left for .*study.*make room"):
        run_study(PLAN, tmp_path / "study")
    pretender.full_at = ""
    run_study(PLAN, tmp_path / "study")
    assert status_of(tmp_path / "study").is_done


def test_a_fleet_that_fails_is_reported_and_the_others_continue(
    pretender, tmp_path
) -> None:
    folder = tmp_path / "study"
    bad = open_study(PLAN, folder).fleets[0]
    train_until = pretender.train_until

    def fails(fleet, phase, folder, labels, *more, **options):
        if folder.name == bad.id:
            raise LearningError("a loss of branch 2 is nan")
        train_until(fleet, phase, folder, labels, *more, **options)

    training.train_until = fails  # the fixture puts the true one back
    with pytest.raises(FallowError, match=r"1 of 3 fleets failed.*branch 2 is nan"):
        run_study(PLAN, folder, pretender.watch)
    assert any(f"fleet {bad.id} failed" in text for text in pretender.messages)
    status = status_of(folder)
    assert [fleet.state for fleet in status.fleets] == [
        "failed",
        "done",
        "done",
    ]
    assert {row.seed for row in table(folder)} == {1, 2}
    training.train_until = train_until
    run_study(PLAN, folder)
    assert status_of(folder).is_done


# -------------------------------------------------------------------- killed, damaged


def dead_process() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_a_killed_start_does_not_strand_the_folder(pretender, tmp_path) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    for pid in (dead_process(), os.getppid()):
        host = socket.gethostname()
        (folder / f"plan.json.part-{host}-{pid}-0").write_text('{"plan": ')
    (folder / "lock").touch()
    run_study(PLAN, folder, pretender.watch)
    left = [path.name for path in folder.glob("*.part-*")]
    assert left == [f"plan.json.part-{host}-{os.getppid()}-0"]  # it may still write


@pytest.mark.parametrize("name", ["results.csv", "trunks.csv"])
@pytest.mark.parametrize("damage", ["byte", "column", "number", "cut"])
def test_a_damaged_table_is_made_again(
    name, damage, done, pretender, run, only_svg
) -> None:
    """By `fallow study`, and where it can by `fallow report`."""
    path = done / name
    good = path.read_bytes()
    changes = {
        "byte": good.replace(b"passive", b"pass\xffve", 1),
        "column": good.replace(b"mean_return", b"nean_return", 1),
        "number": good.replace(b",1,", b",1x,", 1),
        "cut": good[: len(good) // 2],
    }
    path.write_bytes(changes[damage])
    run("report", done)  # may note it, but ends
    path.write_bytes(changes[damage])
    run_study(PLAN, done, pretender.watch)
    assert path.read_bytes() == good
    assert pretender.trained == []
    if damage != "cut":  # rows that are whole, and fewer
        assert any(name in message for message in pretender.messages)
        assert changes[damage] in [p.read_bytes() for p in done.glob(f"{name}.dam*")]


@pytest.mark.parametrize("damage", ["byte", "number", "digit", "label", "cut"])
def test_a_report_names_a_damaged_table(damage, done, run, only_svg) -> None:
    good = (done / "results.csv").read_bytes()
    swaps = {
        "byte": (b"passive", b"pass\xffve"),
        "number": (b",1,", b",1x,"),
        "digit": (b"138000", b"138001"),
        "label": (b"passive", b"passiwe"),
        "cut": (good[-300:], b""),
    }
    (done / "results.csv").write_bytes(good.replace(*swaps[damage], 1))
    code, _, error = run("report", done)
    assert code == 0, error
    assert "results.csv.damaged-0" in (done / "report.html").read_text()
    assert (done / "results.csv").read_bytes() == good


@pytest.mark.parametrize("name", ["../../evil", "/tmp/evil", 5, None, "x" * 12])
def test_ids_of_a_plan_are_no_paths(name, done, run) -> None:
    path = done / "plan.json"
    content = json.loads(path.read_text())
    content["fleets"][0]["id"] = name
    path.write_text(json.dumps(content))
    for command in (["study", "--resume"], ["status"], ["study", "share"]):
        words = [*command, done]
        words += ["--out", done.parent / "copy"] if "share" in command else []
        code, _, error = run(*words)
        assert code == 2 and "its fleets are not those of its plan" in error


@pytest.mark.parametrize("content", ["[]", "{", '{"stage": "trunks"}', '{"frame": {}}'])
def test_a_damaged_status_is_no_status(content, done, run) -> None:
    for path in done.glob("fleets/*/status.json"):
        path.unlink()
    for fleet in read_study(done).fleets:
        (read_study(done).fleet_folder(fleet) / "status.json").write_text(content)
    code, out, error = run("status", done)
    assert code == 0 and "12 of 12 branches done" in out, error


def test_a_status_needs_no_right_to_write(done, monkeypatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("filelock.FileLock.acquire", refused)
    assert status_of(done).is_done
