"""Small copies to hand on: compact histories, and studies with them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from made_up import branch as rows_of
from test_estimator import AGAIN, LOST, write_run

from fallow.core.errors import FallowError
from fallow.core.results import read_results, write_results
from fallow.diagnosis import decide
from fallow.dynamics import Worlds
from fallow.logs import Recorder, read_history, resimulate
from fallow.logs.compact import compact
from fallow.logs.joining import read_joined
from fallow.study import Cell, Plan
from fallow.study.results import read_study_results as read_for_report
from fallow.study.sharing import share
from fallow.study.status import status_of
from fallow.study.store import mark_done, open_study

TRUTHS = {"gain": LOST, "recurring": AGAIN}


def make(folder: Path, seed: int) -> Path:
    """A finished part of a study, with real histories and made-up returns."""
    cell = Cell(conditions=tuple(TRUTHS), rules=("passive", "recency"))
    study = open_study(Plan("mine", (cell,), seeds=(seed,), device="cpu"), folder)
    histories = folder / "histories"
    histories.mkdir()
    for branch in study.plan.branches():
        case = write_run(
            folder.parent, TRUTHS[branch.condition], branch.condition, seed
        )
        shutil.move(case.branch_history, histories / f"{branch.id}.fallow")
        shutil.move(case.trunk_history, histories / f"{branch.trunk}.fallow")
    rows = [
        row
        for branch in study.plan.branches()
        for row in rows_of(
            branch.condition, branch.rule, seed, 500.0, trunk=branch.trunk
        )
    ]
    (fleet,) = study.fleets
    for table in (study.table, study.fleet_folder(fleet) / "results.csv"):
        table.parent.mkdir(parents=True, exist_ok=True)
        write_results(table, rows)
    mark_done(study.fleet_folder(fleet))
    return folder


def test_a_compact_history_holds_what_the_estimator_reads(tmp_path: Path) -> None:
    worlds = Worlds("walker-walk", "recurring:period_frames=1000", n_threads=1)
    whole = tmp_path / "whole.fallow"
    random = np.random.default_rng(0)
    with Recorder(worlds, whole) as recorder:
        for _ in range(1000):
            action = random.uniform(-1, 1, (1, 1, worlds.n_actuators))
            action = action.astype(np.float32)
            recorder.add(action, worlds.step(action), action, action)  # as a fleet does
    small = compact(whole, tmp_path / "new" / "small.fallow")
    one, other = read_history(whole), read_history(small)
    driven = list(one.header.actuator_velocity)
    names = [one.header.columns[column] for column in driven]
    found = [other.header.columns[c] for c in other.header.actuator_velocity]
    assert found == names and len(other.header.columns) == 6
    assert other.header.about == one.header.about
    for long, short in zip(one.episodes, other.episodes, strict=True):
        kept = short.observation[:, list(other.header.actuator_velocity)]
        np.testing.assert_allclose(kept, long.observation[:, driven], rtol=6e-4)
        np.testing.assert_allclose(short.action, long.action, atol=6e-4)
        np.testing.assert_array_equal(short.regime, long.regime)
        assert (short.world, short.start_frame) == (long.world, long.start_frame)
        assert short.policy_mean is None and short.start_state is None
    assert small.stat().st_size < 30 * one.n_transitions < whole.stat().st_size / 5
    with pytest.raises(FallowError, match="recorded without a simulator's state"):
        next(resimulate(other, 0))


def test_only_whole_histories_are_compacted_and_nothing_is_overwritten(
    tmp_path: Path,
) -> None:
    path = write_run(tmp_path, LOST, "gain", 0).trunk_history
    small = compact(path, tmp_path / "small.fallow")
    with pytest.raises(FallowError, match=r"small\.fallow exists already"):
        compact(path, small)
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(FallowError, match=r"only whole histories .* are good"):
        compact(path, tmp_path / "other.fallow")
    assert not (tmp_path / "other.fallow").exists()


def test_a_shared_study_decides_and_merges_like_the_whole(tmp_path: Path, run) -> None:
    parts = [make(tmp_path / f"part{seed}", seed) for seed in (0, 1)]
    copies = [tmp_path / f"copy{seed}" for seed in (0, 1)]
    for part, copy in zip(parts, copies, strict=True):
        code, out, _ = run("study", "share", part, "--out", copy)
        assert code == 0 and str(copy / "results.csv") in out
        assert read_results(copy / "results.csv") == read_results(part / "results.csv")
        assert status_of(copy).is_done
    study, copied = read_for_report(parts[0]), read_for_report(copies[0])
    passive = [branch for branch in study.branches if branch.rule == "passive"]
    assert len(passive) == 2
    assert set(copied.histories) == {branch.id for branch in passive} | {
        passive[0].trunk
    }
    for branch in passive:
        before, after = (
            decide(
                read_joined(where.histories[branch.trunk], where.histories[branch.id])
            )
            for where in (study, copied)
        )
        assert after.word == before.word
        np.testing.assert_array_equal(after.stale, before.stale)
        assert after.magnitude.value == pytest.approx(before.magnitude.value, abs=0.01)
    joined = tmp_path / "joined"
    assert run("study", "merge", *copies, "--out", joined)[0] == 0
    assert len(read_results(joined / "results.csv")) == 2 * 4 * 13
    assert len(read_for_report(joined).histories) == 2 * 3


def test_parts_of_other_plans_are_refused(tmp_path: Path, run) -> None:
    one, other = make(tmp_path / "one", 0), make(tmp_path / "other", 1)
    plan = json.loads((other / "plan.json").read_text())
    plan["plan"]["n_episodes"] += 1
    (other / "plan.json").write_text(json.dumps(plan))
    code, _, error = run("study", "merge", one, other, "--out", tmp_path / "x")
    assert code == 2
    assert f"{other} is not a part of the same plan as {one}: its n_episodes" in error


def test_what_cannot_be_shared_is_an_error(tmp_path: Path, run) -> None:
    whole = make(tmp_path / "whole", 0)
    with pytest.raises(FallowError, match="is not empty; choose a new folder"):
        share(whole, whole)
    code, _, error = run("study", "share", whole)
    assert code == 2 and "fallow study share A --out C" in error
    code, _, error = run("study", "share", whole, whole, "--out", tmp_path / "x")
    assert code == 2 and "name one study" in error
    code, _, error = run("study", "share", tmp_path, "--out", tmp_path / "x")
    assert code == 2 and not (tmp_path / "x").exists()
