"""A study's folder: resuming, locks, status and parts; training is pretended."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
from pretended_study import PLAN, table

from fallow.core.errors import FallowError
from fallow.core.lock import Locked, is_held, lock
from fallow.core.results import read_results
from fallow.study import engines
from fallow.study.engines import run_study
from fallow.study.merge import merge
from fallow.study.named import part
from fallow.study.status import status_of
from fallow.study.store import read_study

pytest_plugins = "pretended_fixtures"

# -------------------------------------------------------------------- resuming


def test_rows_stand_in_the_order_of_the_plan(done) -> None:
    keys = [(row.seed, row.condition, row.rule) for row in table(done)]
    assert keys == [(b.seed, b.condition, b.rule) for b in PLAN.branches()]
    assert [row.seed for row in read_results(done / "trunks.csv")] == [0, 1, 2]


def test_a_finished_study_runs_nothing_again(done, pretender) -> None:
    run_study(PLAN, done, pretender.watch)
    assert pretender.trained == []


def test_trunks_are_shared_between_studies(done, pretender) -> None:
    other = dataclasses.replace(PLAN, name="other", branch_frames=120_000)
    run_study(other, done.parent / "other")
    assert not [name for name in pretender.trained if name.startswith("work-")]
    assert len(pretender.trained) == 6  # prefixes and branches of three fleets
    elsewhere = done.parent / "elsewhere"
    run_study(other, done.parent / "third", trunks=elsewhere)
    assert len([name for name in pretender.trained if name.startswith("work-")]) == 3
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
    cost = first.cost
    half = cost.trunk_updates + cost.branch_updates // 2
    written = {"stage": "branches", "frame": 70_000, "until_frame": 138_000}
    written |= {"n_updates": half, "session_updates": 1000, "session_s": 10, "time": 0}
    path = done / "fleets" / second.id / "status.json"
    path.write_text(json.dumps(written))
    status = status_of(done)
    assert [fleet.state for fleet in status.fleets] == [
        "done",
        "stopped",
        "left",
    ]
    trunks = 3 * cost.trunk_updates
    shared = 2 * cost.prefix_updates
    begun = shared + 4 * (half - cost.trunk_updates - cost.prefix_updates)
    made = trunks + first.n_updates + begun
    assert status.updates_done == made
    third_part = written | {"stage": "prefixes", "n_updates": cost.trunk_updates + 100}
    (done / "fleets" / third.id / "status.json").write_text(json.dumps(third_part))
    assert status_of(done).updates_done == made + 2 * 100
    (done / "fleets" / third.id / "status.json").unlink()
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


def test_what_cannot_be_joined_is_an_error(done, pretender, tmp_path, run) -> None:
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
