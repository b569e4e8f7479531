"""A whole study in small: what it leaves, and that killing it changes nothing."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import micro_study
import pytest
from micro_study import (
    CAPACITY,
    EVERYTHING,
    TRACKED_PLAN,
    UPDATES_PER_SAVE,
    rows_but_time,
    small_plan,
)

from fallow.agents.clock import CONCURRENT, TRACKING
from fallow.agents.fleet import build_agent
from fallow.logs import read_history
from fallow.study import fleets
from fallow.study.engines import run_study
from fallow.study.fleets import updates_until
from fallow.study.results import read_study_results
from fallow.study.status import status_of
from fallow.study.store import read_study

PLAN = TRACKED_PLAN
KINDS = ("shared", "apart")
BRANCHES = PLAN.branches()


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A study that was never stopped."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    run_study(PLAN, folder)
    return folder


def test_the_table_has_a_row_for_every_branch_and_evaluation(whole) -> None:
    rows = rows_but_time(whole / "results.csv")
    assert [row.branch_frame for row in rows] == [200] * 9 + [400] * 9
    assert {row.trunk for row in rows} == {PLAN.trunks()[0].id}
    keys = {(row.condition, row.rule, row.seed) for row in rows}
    assert keys == {(b.condition, b.rule, b.seed) for b in BRANCHES}
    schedule = build_agent("cartpole-swingup", "dreamer", PLAN.preset).schedule
    for row in rows:
        assert row.frame == row.branch_frame + PLAN.trunk_frames
        assert row.updates == updates_until(schedule, row.frame) > 0
        assert row.mean_return > 0
        # under the dynamics of the next training frame: those change at 200, and
        # recurring ones are back at 400
        late = row.branch_frame == 400
        changed = row.condition != "none"
        reduced = changed and not (late and row.condition.startswith("recurring"))
        assert row.regime == int(reduced)
        # the trunk is stale, and the running episode is of the present regime
        assert row.auc == (1.0 if reduced else None)
        assert (row.stale_share > 0) == (changed and late)


def test_it_can_be_read_with_pyarrow_alone(whole) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(whole / "results.parquet").to_pylist()
    rows = rows_but_time(whole / "results.csv")
    assert [row["updates"] for row in table] == [row.updates for row in rows]
    assert [tuple(row["returns"]) for row in table] == [row.returns for row in rows]


def test_free_checks_to_the_bit(whole) -> None:
    """A window that holds all is passive, a gain of 1 is no change.

    And a tracker that knows of one regime changes nothing.
    """
    rows = rows_but_time(whole / "results.csv")
    found = {
        (r.condition, r.rule, r.branch_frame): (r.returns, r.updates) for r in rows
    }
    for condition in PLAN.conditions:
        for frame in (200, 400):
            for rule in (EVERYTHING, "adaptive"):
                assert (
                    found[condition, rule, frame] == found[condition, "passive", frame]
                )
    for rule in PLAN.rules:
        assert found["gain:g=1.0", rule, 400] == found["none", rule, 400]
    assert found[PLAN.conditions[2], "passive", 200] != found["none", "passive", 200]
    by_id = {(b.condition, b.rule): b.id for b in BRANCHES}
    pair = [by_id["none", "passive"], by_id["none", EVERYTHING]]
    one, other = (whole / "histories" / f"{branch}.fallow" for branch in pair)
    assert one.read_bytes() == other.read_bytes()
    assert (PLAN.trunk_frames + PLAN.branch_frames) / 2 <= CAPACITY


def test_histories_of_trunks_and_branches_follow_each_other(whole) -> None:
    trunk = read_history(whole / "histories" / f"{PLAN.trunks()[0].id}.fallow")
    assert [episode.start_frame for episode in trunk.episodes] == [0]
    assert sum(episode.n_transitions for episode in trunk.episodes) == 500
    names = {path.stem for path in (whole / "histories").iterdir()}
    assert names == {PLAN.trunks()[0].id} | {branch.id for branch in BRANCHES}


def test_trackers_reports_are_kept_beside_the_truth(whole) -> None:
    beliefs = read_study_results(whole).beliefs
    assert set(beliefs) == {b.id for b in BRANCHES if b.rule == "adaptive"}
    for reports in beliefs.values():  # the trunk's one episode; none of ours has ended
        assert [(b.episode, b.state, b.regime) for b in reports] == [
            (0, "warming_up", 0)
        ]
        assert reports[0].true_regime == reports[0].label == 0
        assert reports[0].gain == "1"


def test_a_finished_study_is_left_alone(whole, monkeypatch) -> None:
    before = (whole / "results.csv").read_bytes()
    monkeypatch.setattr("fallow.study.runner.Fleet", None)
    run_study(PLAN, whole)
    assert (whole / "results.csv").read_bytes() == before
    status = status_of(whole)
    assert status.is_done and not status.is_running
    assert status.updates_done == status.updates_total
    assert all(fleet.updates_per_s > 0 for fleet in status.fleets)
    assert not list((whole / "fleets").glob("*/checkpoint*"))
    assert not list((whole / "fleets").glob("*/prefixes"))


def test_shared_prefixes_change_no_bit(tmp_path, monkeypatch) -> None:
    """Trained once for all conditions, or by every branch: the same study."""
    plan = small_plan(
        conditions=("none", "gain", "damping"),
        rules=("adaptive",),
        branch_frames=1500,
        shift_frame=1100,
        evaluate_frames=300,
    )
    run_study(plan, tmp_path / "shared")
    (fleet,) = read_study(tmp_path / "shared").fleets
    # damping has no regimes, so its steps are labelled otherwise from the start
    assert (len(fleet.prefixes), len(fleet.branches)) == (2, 3)
    monkeypatch.setattr(fleets, "prefix_end", lambda plan, agent: plan.trunk_frames)
    run_study(plan, tmp_path / "apart")
    (apart,) = read_study(tmp_path / "apart").fleets
    assert apart.cost.prefix_updates == 0 < fleet.cost.prefix_updates
    assert apart.n_updates > fleet.n_updates
    one, other = (rows_but_time(tmp_path / n / "results.csv") for n in KINDS)
    assert one == other
    assert [row.branch_frame for row in one[::3]] == [300, 600, 900, 1200, 1500]
    one, other = (read_study_results(tmp_path / name) for name in KINDS)
    assert one.beliefs == other.beliefs and len(one.beliefs) == 3
    for name, path in one.histories.items():
        assert path.read_bytes() == other.histories[name].read_bytes()
    branches = [one.histories[branch.id] for branch in fleet.branches]
    assert {len(read_history(path).episodes) for path in branches} == {1}


def start(folder: Path, counter: Path) -> subprocess.Popen:
    script = Path(micro_study.__file__)
    return subprocess.Popen([sys.executable, script, folder, counter])


def made(counter: Path) -> int:
    return counter.stat().st_size if counter.exists() else 0


def test_its_status_says_where_the_time_went(whole) -> None:
    for fleet in status_of(whole).fleets:
        for seconds in fleet.spent_s.values():
            within = (*CONCURRENT, TRACKING)  # other times
            parts = [spent for name, spent in seconds.items() if name not in within]
            assert 0 < seconds["physics"] < seconds["total"]
            assert sum(parts) <= 2 * seconds["total"]  # which is one of them
    stages = [set(fleet.spent_s) for fleet in status_of(whole).fleets]
    assert {"trunks", "prefixes", "branches"} in stages


@pytest.mark.slow  # processes that compile; test_training has Ctrl-C and resuming
@pytest.mark.parametrize("n_kills", [1, 4])
def test_killed_at_random_moments_it_ends_the_same(whole, tmp_path, n_kills) -> None:
    """And redoes less than one checkpoint interval for each kill."""
    folder, counter = tmp_path / "killed", tmp_path / "counter"
    seed = random.SystemRandom().randrange(2**32)
    print(f"killed by seed {seed}")  # shown where the test fails
    dice = random.Random(seed)
    total = status_of(whole).updates_total
    for kill in range(n_kills):
        process = start(folder, counter)
        # one share of the work each time, so that all of it sees kills
        until = made(counter) + dice.randrange(1, total // (n_kills + 1))
        while made(counter) < until and process.poll() is None:
            time.sleep(0.002)
        time.sleep(dice.random() * 0.2)  # also between two steps, or while saving
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, f"kill {kill}"
    assert start(folder, counter).wait() == 0
    assert rows_but_time(folder / "results.csv") == rows_but_time(whole / "results.csv")
    for history in (whole / "histories").iterdir():
        copy = folder / "histories" / history.name
        assert copy.read_bytes() == history.read_bytes()
    assert read_study_results(folder).beliefs == read_study_results(whole).beliefs
    redone = made(counter) - total
    assert 0 <= redone < n_kills * UPDATES_PER_SAVE * len(BRANCHES)
    assert read_study(folder).plan == PLAN
