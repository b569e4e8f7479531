"""A study's folder: locks, damage, parts, no space; training itself is pretended."""

import dataclasses
import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from fallow.agents import checkpoints, training
from fallow.agents.fleet import LearningError
from fallow.core.errors import FallowError
from fallow.core.lock import Locked, is_held, lock
from fallow.core.results import ResultRow, read_results, write_results
from fallow.study import Cell, Plan, engines, runner
from fallow.study import trunks as trunks_module
from fallow.study.engines import run_study
from fallow.study.merge import merge
from fallow.study.named import part
from fallow.study.status import status_of
from fallow.study.store import open_study, read_study

CELL = Cell("cartpole-swingup", "dreamer", ("none", "gain"), ("passive", "reset"))
PLAN = Plan(
    "pretended",
    (CELL,),
    preset="tiny",
    seeds=(0, 1, 2),
    trunk_frames=8_000,
    capacity_transitions=20_000,
)


BEGIN = runner._begin


class Pretender:
    """Stands for training: instead of learning, it writes what a fleet leaves."""

    def __init__(self) -> None:
        self.lived: list[str] = []
        self.messages: list[str] = []
        self.full_at: str = ""
        self.fleet = dataclasses.make_dataclass("Fleet", ["branches"])

    def make(self, task, agent, branches, capacity):
        return self.fleet(branches)

    def resume(self, fleet, phase, folder) -> bool:
        saved = folder / "checkpoint"
        if saved.exists() and "damaged" in (saved / "000.agent").read_text():
            raise training.Damaged(f"{saved / '000.agent'}: its checksum is wrong")
        return saved.exists()

    def train_until(self, fleet, phase, folder, labels, on_progress=None):
        saved = folder / "checkpoint"
        self.lived.append(folder.name)
        if folder.name == self.full_at:
            raise OSError(errno.ENOSPC, "No space left on device")
        saved.mkdir(parents=True, exist_ok=True)
        for index, label in enumerate(labels):
            for name in ("agent", "replay"):
                (saved / f"{index:03d}.{name}").write_text(label.trunk)
            history = folder / "histories" / f"{index:03d}.fallow"
            history.parent.mkdir(exist_ok=True)
            history.write_text(f"{label.seed} {label.rule}")
        rows = [
            ResultRow(
                **dataclasses.asdict(label),
                frame=phase.until_frame,
                branch_frame=phase.until_frame - phase.begin_frame,
                regime=0,
                updates=1,
                mean_return=float(label.seed),
                returns=(1.0,),
                wall_s=1.0,
            )
            for label in labels
        ]
        write_results(folder / "results.csv", rows)

    @staticmethod
    def fingerprint(place) -> str:
        """Of the agent's file, which is no real one here."""
        text = place.agent.read_text()
        if "damaged" in text:
            raise FallowError(f"{place.agent} cannot be read")
        return f"{zlib.crc32(text.encode()):012x}"

    def watch(self, event) -> None:
        if event.progress.message:
            self.messages.append(event.progress.message)


@pytest.fixture
def pretender(monkeypatch) -> Pretender:
    pretender = Pretender()
    for module in (runner, trunks_module):
        monkeypatch.setattr(module, "Fleet", pretender.make)
    monkeypatch.setattr(training, "resume", pretender.resume)
    monkeypatch.setattr(training, "train_until", pretender.train_until)
    monkeypatch.setattr(runner, "_begin", lambda *_: None)
    monkeypatch.setattr(
        checkpoints.CheckpointPath, "fingerprint", pretender.fingerprint
    )
    return pretender


@pytest.fixture
def done(pretender, tmp_path) -> Path:
    """A finished study of three fleets."""
    run_study(PLAN, tmp_path / "done", pretender.watch)
    pretender.lived.clear()
    pretender.messages.clear()
    return tmp_path / "done"


def table(folder: Path) -> list[ResultRow]:
    return read_results(folder / "results.csv")


# -------------------------------------------------------------------- going on


def test_rows_stand_in_the_order_of_the_plan(done) -> None:
    keys = [(row.seed, row.condition, row.rule) for row in table(done)]
    assert keys == [(b.seed, b.condition, b.rule) for b in PLAN.branches()]
    assert [row.seed for row in read_results(done / "trunks.csv")] == [0, 1, 2]


def test_a_finished_study_runs_nothing_again(done, pretender) -> None:
    run_study(PLAN, done, pretender.watch)
    assert pretender.lived == []


def test_trunks_are_shared_between_studies(done, pretender) -> None:
    other = dataclasses.replace(PLAN, name="other", branch_frames=120_000)
    run_study(other, done.parent / "other")
    assert not [name for name in pretender.lived if name.startswith("work-")]
    assert len(pretender.lived) == 3
    elsewhere = done.parent / "elsewhere"
    run_study(other, done.parent / "third", trunks=elsewhere)
    assert len([name for name in pretender.lived if name.startswith("work-")]) == 3
    assert read_study(done.parent / "third").store == elsewhere


def test_the_folder_of_another_plan_is_refused(done, tmp_path, run) -> None:
    longer = dataclasses.replace(PLAN, branch_frames=140_000)
    with pytest.raises(FallowError, match="its branch_frames is 130000, not 140000"):
        run_study(longer, done)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(FallowError, match=r"no plan.json, and thesis.txt"):
        run_study(PLAN, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    code, _, error = run("study", "--resume", tmp_path / "nothing")
    assert code == 2 and "it has no plan.json" in error
    (done / "plan.json").write_text("{")
    code, _, error = run("status", done)
    assert code == 2 and "plan.json is damaged" in error


# -------------------------------------------------------------------- damage


def test_a_changed_table_is_set_aside_and_its_fleet_run_again(done, pretender) -> None:
    before = table(done)
    fleet = read_study(done).fleets[1]
    path = done / "fleets" / fleet.id / "results.csv"
    path.write_text(path.read_text().replace("passive", "passivf"))
    assert status_of(done).n_branches("done") == 8
    run_study(PLAN, done, pretender.watch)
    assert pretender.lived == [fleet.id]
    assert table(done) == before
    message, work = pretender.messages
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
    assert pretender.lived == [fleet.id] and table(done) == before
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
    assert [name for name in pretender.lived if name.startswith("work-")]


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
    works = [name for name in pretender.lived if name.startswith("work-")]
    assert len(works) == 2 and len(set(works)) == 1  # gone on with, not begun anew
    left = {path.name for path in (tmp_path / "trunks").iterdir() if path.is_dir()}
    assert left == {trunk.id for trunk in plan.trunks()}
    assert len(read_results(tmp_path / "study" / "trunks.csv")) == 3


def test_what_workers_write_is_told_once(done) -> None:
    study = read_study(done)
    fleet = study.fleets[0]
    told = {"stage": "branches", "frame": 70_000, "until_frame": 138_000, "time": 1}
    told |= {"n_updates": 9, "session_updates": 1000, "session_s": 10}
    path = study.fleet_folder(fleet) / "status.json"
    path.write_text(json.dumps(told))
    events: list = []
    monitor = engines.FleetMonitor(study, events.append)
    monitor.report(fleet)
    monitor.report(fleet)
    path.write_text(json.dumps(told | {"time": 2}))
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


def test_a_fleet_that_fails_is_told_and_the_others_go_on(pretender, tmp_path) -> None:
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
    assert [fleet.state for fleet in status.fleets] == ["failed", "done", "done"]
    assert {row.seed for row in table(folder)} == {1, 2}
    training.train_until = train_until
    run_study(PLAN, folder)
    assert status_of(folder).is_done


# -------------------------------------------------------------------- locks

HOLD = """
import sys, time
from fallow.core.lock import lock
with lock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_until_the_first_dies(done, pretender) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, done / "lock"], stdout=subprocess.PIPE
    )
    assert holder.stdout.readline() == b"held\n"
    try:
        assert is_held(done / "lock") and status_of(done).is_running
        with pytest.raises(Locked, match=f"in use by process {holder.pid} on"):
            run_study(PLAN, done)
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
    assert not is_held(done / "lock")
    run_study(PLAN, done)


def test_a_lock_is_free_again_after_an_error(tmp_path) -> None:
    with pytest.raises(KeyError), lock(tmp_path / "lock"):
        raise KeyError
    with lock(tmp_path / "lock"):
        pass


# -------------------------------------------------------------------- status, parts


def test_status_of_a_study_that_was_stopped(done, run) -> None:
    first, second, third = read_study(done).fleets
    for fleet in (second, third):
        (done / "fleets" / fleet.id / "done.json").unlink()
    half = first.cost.trunk_updates + first.cost.branch_updates // 2
    told = {"stage": "branches", "frame": 70_000, "until_frame": 138_000}
    told |= {"n_updates": half, "session_updates": 1000, "session_s": 10, "time": 0}
    path = done / "fleets" / second.id / "status.json"
    path.write_text(json.dumps(told))
    status = status_of(done)
    assert [fleet.state for fleet in status.fleets] == ["done", "stopped", "left"]
    trunks = 3 * first.cost.trunk_updates
    made = trunks + first.n_updates + 4 * (half - first.cost.trunk_updates)
    assert status.updates_done == made
    left = trunks + 3 * first.n_updates - made
    assert status.seconds_left == pytest.approx(left / 100)
    code, out, _ = run("status", done)
    assert code == 0
    assert "4 of 12 branches done, 0 running, 4 stopped, 4 left" in out
    assert "70,000 of 138,000" in out and "once it is resumed" in out


def test_parts_run_apart_and_joined_equal_the_whole(done, pretender, run) -> None:
    names = []
    for seeds in ([2, 0], [1]):
        names.append(done.parent / f"part-{seeds[0]}")
        run_study(part(PLAN, seeds), names[-1], pretender.watch)
    joined = done.parent / "joined"
    code, out, _ = run("study", "merge", *names, "--out", joined)
    assert code == 0 and str(joined / "results.csv") in out
    assert table(joined) == table(done)
    assert read_study(joined).plan == PLAN
    assert status_of(joined).is_done
    histories = {path.name for path in (done / "histories").iterdir()}
    assert {path.name for path in (joined / "histories").iterdir()} == histories
    assert len(read_results(joined / "trunks.csv")) == 3
    shutil.rmtree(done.parent / "trunks")
    run_study(PLAN, joined)  # nothing is left to do, and nothing is lost
    assert len(read_results(joined / "trunks.csv")) == 3


def test_a_joined_study_names_all_that_made_it(done, pretender) -> None:
    parts = [done.parent / "part-a", done.parent / "part-b"]
    made = ({"jax": "1", "mujoco": "3.17.0"}, {"jax": "2", "mujoco": "3.17.0"})
    for seeds, folder, versions in zip(([0, 1], [2]), parts, made, strict=True):
        run_study(part(PLAN, seeds), folder, pretender.watch)
        content = json.loads((folder / "plan.json").read_text())
        content |= {"versions": versions, "git_commit": f"commit of {folder.name}"}
        (folder / "plan.json").write_text(json.dumps(content))
    merge(parts, done.parent / "joined")
    joined = json.loads((done.parent / "joined" / "plan.json").read_text())
    assert joined["versions"] == {"jax": "1, 2", "mujoco": "3.17.0"}
    assert joined["git_commit"] == "commit of part-a, commit of part-b"


def test_what_cannot_be_joined_is_told(done, pretender, tmp_path, run) -> None:
    out = tmp_path / "out"
    with pytest.raises(FallowError, match=r"seed 0 is in .*done and in .*done"):
        merge([done, done], out)
    other = dataclasses.replace(PLAN, n_episodes=3, seeds=(7,))
    run_study(other, tmp_path / "other")
    with pytest.raises(FallowError, match="its n_episodes is 3, not 10"):
        merge([done, tmp_path / "other"], out)
    with pytest.raises(FallowError, match="two parts or more"):
        merge([done], out)
    more = dataclasses.replace(PLAN, seeds=(8,))
    study = run_study(more, tmp_path / "more")
    (study.fleet_folder(study.fleets[0]) / "done.json").unlink()
    with pytest.raises(FallowError, match=r"more is not finished: fallow study --res"):
        merge([done, tmp_path / "more"], out)
    with pytest.raises(FallowError, match="is not empty"):
        merge([done, tmp_path / "more"], done)
    assert not out.exists()
    assert run("study", "merge", done, done)[0] == 2


def test_unknown_engines_are_named(tmp_path, run) -> None:
    with pytest.raises(FallowError, match="unknown engine 'rey': did you mean 'ray'"):
        run_study(PLAN, tmp_path / "x", engine="rey")
    assert run("study", "demo", "--engine", "rey", "--dry-run")[0] == 2
    assert set(engines.ENGINES) == {"local", "ray"}


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
    assert pretender.lived == []
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
