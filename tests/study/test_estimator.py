"""The estimator's evaluation on histories whose changes and returns are made up."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from log_files import episodes, observations
from made_up import table

from fallow.core.errors import FallowError
from fallow.core.records import Episode
from fallow.diagnosis import Example, decide, example
from fallow.diagnosis.truth import decision_delay, location_error, n_false
from fallow.dynamics import EPISODE_FRAMES, Worlds
from fallow.logs import Header, HistoryWriter, Recorder, read_history
from fallow.logs.compact import compact
from fallow.logs.joining import joined, read_joined
from fallow.report.selector_table import (
    decisions_table,
    selector_table,
    selector_tables,
)
from fallow.study.estimator import (
    CONDITIONS,
    Agreement,
    SelectorCase,
    SelectorResult,
    UnreadHistory,
    advantage,
    agreement,
    evaluate,
    is_the_papers,
    without_any_one,
)
from fallow.study.statistics import Setting, returns_of

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
GAIN = Setting("walker-walk", "dreamer", "lean", "gain")
N_TRUNK, CHANGE = 30, 40
LOST = Example((1.0, 0.5), (CHANGE,), 70, n_steps=40)
AGAIN = Example((1.0, 0.5, 1.0, 0.5), (40, 50, 60), 70, n_steps=40)


def write_run(folder: Path, truth: Example, condition: str, seed: int) -> SelectorCase:
    """The histories of a trunk and of its branch, cut from one example log."""
    log = example(truth, seed)
    d = len(log.actuators)
    header = Header(
        columns=tuple(f"position {j}" for j in range(d)) + log.actuators,
        actuators=log.actuators,
        actuator_velocity=tuple(range(d, 2 * d)),
        control_step_s=0.02,
        frames_per_step=2,
    )
    setting = replace(GAIN, condition=condition)
    paths = [folder / f"{condition}-{part}-{seed}.fallow" for part in ("trunk", "run")]
    abouts = ({"condition": "none"}, {"condition": condition})
    parts = (slice(0, N_TRUNK), slice(N_TRUNK, None))
    found = list(enumerate(episodes(log)))
    for path, about, part in zip(paths, abouts, parts, strict=True):
        with HistoryWriter(path, replace(header, about=about)) as writer:
            for index, (velocity, action) in found[part]:
                regime = np.full(len(action), log.regime[index])
                start = int(log.start_step[index]) * 2
                reward = np.zeros(len(action))
                row = observations(velocity)
                writer.add(Episode(row, action, reward, regime, start_frame=start))
    return SelectorCase(setting, seed, f"t{seed}", *paths)


def test_a_trunk_and_its_branch_read_as_the_run_they_are(tmp_path: Path) -> None:
    case = write_run(tmp_path, LOST, "gain", 0)
    log = read_joined(case.trunk_history, case.branch_history)
    whole = example(LOST, 0)
    np.testing.assert_array_equal(log.regime, whole.regime)
    np.testing.assert_array_equal(log.start_step, whole.start_step)
    np.testing.assert_allclose(log.velocity, whole.velocity, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(log.gain.mean(axis=1), whole.gain.mean(axis=1))
    cut = read_joined(case.trunk_history, case.branch_history, 50)
    assert cut.n_episodes == 50
    np.testing.assert_array_equal(cut.action, log.action[: 50 * 40])


def test_real_worlds_that_go_on_make_one_clock(tmp_path: Path, random) -> None:
    """As a study records them: the branch has a condition and starts from a save."""
    trunk = Worlds("pendulum-swingup", "none", [[1, 2]], n_threads=1)
    later = f"gain:g=0.5,shift_frame={3 * 2 * EPISODE_FRAMES}"
    branch = Worlds("pendulum-swingup", later, [[1, 2]], n_threads=1)
    paths = [tmp_path / "trunk.fallow", tmp_path / "branch.fallow"]
    for worlds, path in zip((trunk, branch), paths, strict=True):
        if worlds is branch:
            branch.restore(trunk.save())
        with Recorder(worlds, path) as recorder:
            for _ in range(2 * EPISODE_FRAMES // worlds.action_repeat):
                action = random.uniform(-1, 1, (1, 2, worlds.n_actuators))
                recorder.add(action, worlds.step(action))
    log = read_joined(*paths)
    assert log.start_step.tolist() == [0, 0, 500, 500, 1000, 1000, 1500, 1500]
    assert log.regime.tolist() == [0, 0, 0, 0, 0, 0, 1, 1]
    assert log.gain[:, 0].tolist() == [1.0] * 6 + [0.5] * 2
    assert log.notes == ()
    small = read_joined(compact(paths[0], tmp_path / "small.fallow"), paths[1])
    np.testing.assert_array_equal(small.regime, log.regime)
    np.testing.assert_allclose(small.velocity, log.velocity, rtol=1e-3, atol=1e-3)


def test_histories_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    case = write_run(tmp_path, LOST, "gain", 0)
    other = write_run(tmp_path, replace(LOST, n_joints=2), "gain", 1)
    with pytest.raises(FallowError, match=r"columns .* give the history of the trunk"):
        read_joined(other.trunk_history, case.branch_history)
    damaged = replace(read_history(case.trunk_history), damage="cut short")
    with pytest.raises(FallowError, match="damaged trunk: cut short"):
        joined(damaged, read_history(case.branch_history))


def test_location_and_false_changes_by_hand() -> None:
    assert location_error((10, 41, 60), 40) == 1
    assert location_error((10, 38), 40) == -2
    assert location_error((), 40) is None
    assert n_false((10, 41, 60), (40,)) == 2
    assert n_false((37, 43), (40,), near=3) == 0
    assert n_false((37, 43), (40,), near=2) == 2


def test_the_delay_is_the_first_prefix_that_shows_the_change() -> None:
    log = example(LOST)
    delay = decision_delay(decide(log).response, CHANGE)
    assert delay is not None and 1 <= delay <= 7

    def shown(n: int) -> bool:
        ends = int(log.n_transitions[:n].sum())
        prefix = replace(
            log,
            velocity=log.velocity[: ends + n],
            action=log.action[:ends],
            n_transitions=log.n_transitions[:n],
            start_step=log.start_step[:n],
            regime=None,
            gain=None,
        )
        return any(abs(at - CHANGE) <= 2 for at in decide(prefix).change_points)

    assert not any(shown(n) for n in range(CHANGE + 1, CHANGE + delay))
    assert shown(CHANGE + delay)
    steady = decide(example(Example((1.0,), (), 70, n_steps=40)))
    assert decision_delay(steady.response, CHANGE) is None


VALUES = {
    ("gain", "passive"): (100.0, 100.0, 100.0, 100.0),
    ("gain", "recency"): (150.0, 90.0, 100.0, 160.0),
    ("recurring", "passive"): (500.0, 500.0, 500.0, 500.0),
    ("recurring", "recency"): (300.0, 310.0, 320.0, 330.0),
}


def test_decisions_are_right_where_the_better_rule_was_chosen(tmp_path: Path) -> None:
    returns = returns_of(table(VALUES))
    cases = [write_run(tmp_path, LOST, "gain", seed) for seed in range(4)]
    cases += [write_run(tmp_path, AGAIN, "recurring", seed) for seed in range(2)]
    cases[3] = replace(cases[3], branch_history=tmp_path / "lost.fallow")
    results = evaluate(cases, returns, cut_episodes={"recurring": 60})
    first, second, third, fourth, *again = results

    assert isinstance(first, SelectorResult) and isinstance(second, SelectorResult)
    assert first.chosen == second.chosen == "recency"
    assert (first.advantage, first.better, first.right) == (
        pytest.approx(50.0), "recency", True,
    )  # fmt: skip
    assert (second.better, second.right) == ("passive", False)
    assert isinstance(third, SelectorResult)
    assert (third.advantage, third.better, third.right) == (0.0, None, None)
    assert isinstance(fourth, UnreadHistory)
    assert "there is no history at" in fourth.reason

    (change,) = first.changes
    assert change.episode == CHANGE and change.found and abs(change.error) <= 1
    assert 1 <= change.delay <= 7
    assert first.n_episodes == 70
    assert first.decision.magnitude.value == pytest.approx(0.5, abs=0.1)
    assert first.truth.magnitude == pytest.approx(0.5)
    assert first.decision.auc.value == pytest.approx(first.truth.auc, abs=0.01)

    for one in again:
        assert isinstance(one, SelectorResult)
        assert one.n_episodes == 60  # cut as asked: the third switch is not in it
        assert [change.episode for change in one.changes] == [40, 50]
        assert (one.chosen, one.better, one.right) == ("passive", "passive", True)

    assert agreement(results) == [
        Agreement("recurring", 2, 2),
        Agreement("gain", 1, 2),
        Agreement(None, 3, 4),
    ]
    assert agreement([]) == []

    made = selector_table(results)
    rows = {row[0]: dict(zip(made.head, row, strict=True)) for row in made.texts()}
    gain, both = rows["Gain reduction"], rows["All changes"]
    assert (gain["histories"], gain["changes found"]) == ("3", "3 of 3")
    assert (gain["right"], gain["right, the paper"]) == ("1 of 2", "3 of 5")
    evaluation = [r for r in results[:3] if isinstance(r, SelectorResult)]
    mean = np.mean([one.decision.magnitude.value for one in evaluation])
    assert (gain["m_hat"], gain["m_hat, the paper"]) == (f"{mean:.2f}", "0.43")
    middle = np.median([one.changes[0].delay for one in evaluation])
    assert gain["decision delay, episodes"] == f"{middle:.1f}"
    assert (both["right"], both["right, the paper"]) == ("3 of 4", "19 of 24")
    notes = " ".join(made.notes)
    assert "Not counted as right or wrong: Gain reduction, seed 2: a D of 0." in notes
    assert "Left out: Gain reduction, seed 3: there is no" in notes

    made = decisions_table(results)
    rows = [dict(zip(made.head, row, strict=True)) for row in made.texts()]
    assert [(row["Change"], row["seed"], row["right"]) for row in rows] == [
        ("Recurring", "0", "yes"),
        ("Recurring", "1", "yes"),
        ("Gain reduction", "0", "yes"),
        ("Gain reduction", "1", "no"),
        ("Gain reduction", "2", "–"),
    ]
    gain = rows[2]
    assert (gain["chosen"], gain["Recency - Passive"]) == ("recency", "+50")
    assert (gain["changes at"], gain["located at"]) == (
        str(CHANGE), str(CHANGE + change.error),
    )  # fmt: skip
    assert rows[0]["changes at"] == "40, 50"


def test_a_seed_without_returns_has_no_better_rule() -> None:
    returns = returns_of(table(VALUES))
    case = SelectorCase(GAIN, 9, "t9", Path("a"), Path("b"))
    assert advantage(returns, case) is None
    assert advantage(returns, replace(case, seed=3, trunk="t3")) == pytest.approx(60.0)
    assert advantage(returns, replace(case, seed=3, trunk="other")) is None


def test_both_cuts_are_shown_where_they_differ(tmp_path: Path) -> None:
    returns = returns_of(table(VALUES))
    cases = [write_run(tmp_path, LOST, "gain", 0)]
    cases += [write_run(tmp_path, AGAIN, "recurring", seed) for seed in range(2)]
    cut = evaluate(cases, returns, cut_episodes={"recurring": 60})
    whole = evaluate(cases, returns, cut_episodes={})
    with_cut, without, decisions = selector_tables(cut, whole)
    assert "cut at 314 episodes" in with_cut.title
    assert "all histories whole" in without.title
    rows = [dict(zip(decisions.head, row, strict=True)) for row in decisions.texts()]
    assert [(row["Change"], row["seed"], row["episodes"]) for row in rows] == [
        ("Recurring", "0", "60"),
        ("Recurring", "0", "70"),
        ("Recurring", "1", "60"),
        ("Recurring", "1", "70"),
        ("Gain reduction", "0", "70"),
    ]
    assert rows[1]["changes at"] == "40, 50, 60"
    assert len(selector_tables(whole, whole)) == 2  # one reading, and the decisions


def test_the_papers_histories_are_counted_with_any_one_left_out() -> None:
    cases = [
        SelectorCase(replace(GAIN, condition=name), seed, "", Path("a"), Path("b"))
        for name in CONDITIONS
        for seed in range(5)
    ]
    results = [UnreadHistory(case, "") for case in cases]
    assert len(results) == 25 and is_the_papers(results)
    assert not is_the_papers(results[1:]) and not is_the_papers(results[5:])
    assert without_any_one(Agreement(None, 20, 25)) == (19, 20)
    assert without_any_one(Agreement(None, 25, 25)) == (24, 24)
    assert without_any_one(Agreement(None, 0, 25)) == (0, 0)


def test_histories_without_a_change_are_not_in_the_sum() -> None:
    still = SelectorCase(replace(GAIN, condition="none"), 0, "", Path("a"), Path("b"))
    results = [
        UnreadHistory(still, ""),
        UnreadHistory(replace(still, setting=GAIN), ""),
    ]
    assert agreement(results)[-1] == Agreement(None, 0, 0)
    made = selector_table(results)
    assert "Histories without a change are not counted in the last row." in made.notes
