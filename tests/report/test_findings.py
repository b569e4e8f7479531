"""Findings of made-up studies against hand-computed values, and their words."""

import random as stdlib_random
import re
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import branch, table
from scipy import stats

from fallow.core.results import ResultRow
from fallow.report.findings import (
    StudyFindings,
    findings_of,
    interquartile_mean,
    probability_of_improvement,
)
from fallow.report.findings_table import findings_table
from fallow.report.phrases import NOTHING, ONE_SEED, headlines, sentences
from fallow.study.statistics import returns_of

PASSIVE = (177.0, 150.0, 210.0, 190.0, 158.0)
RECENCY = (320.0, 301.0, 205.0, 402.0, 297.0)
PAIR = {("gain", "passive"): PASSIVE, ("gain", "recency"): RECENCY}


def found_in(rows: list[ResultRow], **protocol: object) -> StudyFindings:
    return findings_of(returns_of(rows, **protocol))


def said(rows: list[ResultRow], **protocol: object) -> list[str]:
    return sentences(found_in(rows, **protocol))


# -------------------------------------------------------------------- data


def test_a_finding_holds_difference_interval_and_signs() -> None:
    (finding,) = found_in(table(PAIR)).findings
    d = [a - b for a, b in zip(RECENCY, PASSIVE, strict=True)]
    assert (finding.rule, finding.against) == ("recency", "passive")
    assert finding.setting.condition == "gain"
    assert finding.difference.mean == pytest.approx(statistics.mean(d))
    interval = stats.t.interval(0.95, 4, statistics.mean(d), stats.sem(d))
    assert finding.interval == pytest.approx(interval)
    assert finding.signs == (4, 5) and finding.clear and not finding.equal


def test_the_iqm_leaves_out_a_quarter_at_each_end() -> None:
    assert interquartile_mean((5.0, 1.0, 3.0, 100.0, 2.0)) == pytest.approx(10 / 3)
    assert interquartile_mean((8.0, 0.0, 2.0, 4.0)) == 3.0
    assert interquartile_mean((7.0, 8.0)) == 7.5
    assert interquartile_mean(()) is None
    assert interquartile_mean(PASSIVE) == pytest.approx(stats.trim_mean(PASSIVE, 0.25))


def test_the_probability_of_improvement_counts_pairs_and_half_of_ties() -> None:
    # of 6 pairs: 3 > 1, 3 > 2, 2 > 1 are wins, 2 = 2 is a tie, 0 loses to both
    assert probability_of_improvement((3, 2, 0), (1, 2)) == pytest.approx(3.5 / 6)
    assert probability_of_improvement((1, 2), (3, 2, 0)) == pytest.approx(2.5 / 6)
    assert probability_of_improvement((1, 2), ()) is None
    assert probability_of_improvement((1,), (2, 3)) is None


@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=6),
    st.lists(st.integers(0, 9), min_size=2, max_size=6),
)
def test_the_probability_of_improvement_is_the_u_statistic(x, y) -> None:
    u = stats.mannwhitneyu(x, y).statistic
    assert probability_of_improvement(x, y) == pytest.approx(u / (len(x) * len(y)))


def test_the_table_has_mean_iqm_difference_and_probability() -> None:
    shown = findings_table(found_in(table(PAIR)))
    passive, recency = shown.texts()
    assert passive == ["Gain reduction", "Passive", *"–––––", "177 ± 11", "175"]
    assert recency[:4] == ["", "Recency", "+128 ± 36", "29 to 227"]
    assert recency[4:] == ["clear", "4 of 5", "0.96", "305 ± 31", "306"]
    # IQM by hand: (158 + 177 + 190) / 3 and (297 + 301 + 320) / 3
    values = shown.rows[1][6].values()[""]
    above = np.greater.outer(RECENCY, PASSIVE).mean()
    assert values == pytest.approx(above) and above == 24 / 25


# -------------------------------------------------------------------- words


def test_a_headline_ranks_rules_and_groups_them_by_certainty() -> None:
    values = PAIR | {
        ("gain", "reset"): tuple(value + 300 + i for i, value in enumerate(PASSIVE)),
        ("gain", "graded"): (180.0, 149.0, 260.0, 200.0, 141.0),
        ("gain", "matched"): PASSIVE,
        ("none", "passive"): PASSIVE,
        ("none", "recency"): tuple(value - 50 for value in PASSIVE),
    }
    assert headlines(found_in(table(values))) == [
        "Gain reduction: Reset-once +302, Recency +128, both clear; Graded +9, within "
        "noise; Matched equal to Passive",
        "No change: Recency -50, clear",
    ]
    assert headlines(found_in([])) == []
    one_seed = {key: js[:1] for key, js in PAIR.items()}
    (line,) = headlines(found_in(table(one_seed)))
    assert line == "Gain reduction: Recency +143, one seed"


def test_a_clear_win_is_said_with_size_signs_and_interval() -> None:
    d = [a - b for a, b in zip(RECENCY, PASSIVE, strict=True)]
    low, high = stats.t.interval(0.95, 4, loc=statistics.mean(d), scale=stats.sem(d))
    assert said(table(PAIR)) == [
        f"Gain reduction: Recency beats Passive by {statistics.mean(d):.0f} ± "
        f"{stats.sem(d):.0f} (95 % interval {low:.0f} to {high:.0f}, higher in 4 of 5 "
        "seeds); clear."
    ]


def test_the_winner_comes_first_whichever_rule_it_is() -> None:
    values = {("recurring", "passive"): RECENCY, ("recurring", "recency"): PASSIVE}
    (one,) = said(table(values))
    assert one.startswith("Recurring: Passive beats Recency by 128 ± 36 (")
    assert "95 % interval 29 to 227, higher in 4 of 5 seeds" in one


def test_an_interval_that_contains_zero_is_within_noise() -> None:
    recency = (180.0, 149.0, 260.0, 200.0, 141.0)  # 3, -1, 50, 10 and -17 more
    values = {("none", "passive"): PASSIVE, ("none", "recency"): recency}
    (one,) = said(table(values))
    assert one == (
        "No change: Recency is 9 ± 11 above Passive (95 % interval -22 to 40, higher "
        "in 3 of 5 seeds); within noise."
    )


def test_one_seed_has_no_interval() -> None:
    values = {("damage", "passive"): (100.0,), ("damage", "reset"): (140.0,)}
    assert said(table(values)) == [
        ONE_SEED,
        "Actuator damage: Reset-once is 40 above Passive in the only seed.",
    ]


def test_nothing_to_compare_is_said() -> None:
    assert said([]) == [NOTHING]
    (one,) = said(table({("gain", "passive"): PASSIVE}))
    assert one == "There is nothing to compare: the only rule is Passive."
    rows = branch("gain", "passive", 0, 1.0) + branch("gain", "recency", 1, 2.0)
    first, *rest = said(rows)
    assert first == (
        "Gain reduction: Recency and Passive cannot be compared: no seed has both."
    )
    assert len(rest) == 2
    assert all(note.startswith("Left out: Gain reduction") for note in rest)


def test_the_same_is_not_called_a_win() -> None:
    values = {("gain:g=1.0", "passive"): PASSIVE, ("gain:g=1.0", "recency"): PASSIVE}
    assert said(table(values)) == [
        "Gain reduction (g=1.0): Recency and Passive have the same return in all 5 "
        "seeds."
    ]


def test_several_rules_have_a_leader_and_a_count() -> None:
    values = PAIR | {
        ("gain", "wmar"): tuple(value + 300 + i for i, value in enumerate(PASSIVE)),
    }
    first, *_, last = said(table(values))
    assert first.startswith("2 of 2 comparisons are clear. ")
    assert last.startswith("Gain reduction: WMAR has the highest return, 479 ± 11; its")
    assert last.endswith(" is clear.")
    values["gain", "wmar"] = tuple(value + 4 for value in RECENCY[::-1])
    last = said(table(values))[-1]
    assert "its lead over Recency, 4 ±" in last and "within noise" in last
    cut = [r for r in table(values) if (r.rule, r.seed) != ("wmar", 2)]
    assert not any("highest" in text for text in said(cut))
    assert said(cut)[-1] == "Left out: Gain reduction, WMAR, seed 2: no row."


def test_two_leaders_that_did_the_same() -> None:
    values = {
        ("gain", "passive"): PASSIVE,
        ("gain", "recency"): tuple(value - 9 for value in PASSIVE),
        ("gain", "reset"): PASSIVE,
    }
    last = said(table(values))[-1]
    assert last.startswith("Gain reduction: Passive and Reset-once have the highest")
    assert last.endswith(" each.")


def test_several_tasks_are_named() -> None:
    rows = table(PAIR) + table(PAIR, task="cheetah-run")
    _, one, other = said(rows)
    place = "dreamer, preset lean): Recency"
    assert one.startswith(f"Gain reduction (cheetah-run, {place}")
    assert other.startswith(f"Gain reduction (walker-walk, {place}")
    shown = findings_table(found_in(rows))
    assert [row[0].values()[""] for row in shown.rows][::2] == [
        "cheetah-run, dreamer, preset lean",
        "walker-walk, dreamer, preset lean",
    ]


def test_the_shift_frame_and_the_planned_evaluations_count() -> None:
    values = {("gain", "passive"): (100.0, 110.0), ("gain", "recency"): (90.0, 99.0)}
    rows = [row for row in table(values) if row.branch_frame <= 60_000]
    assert "Passive beats Recency by 10.5 ± 0.5 (" in said(rows)[0]
    first, *rest = said(rows, n_evaluations=9)
    assert "cannot be compared" in first
    assert rest == [
        "Left out: Gain reduction, Recency, Passive, seeds 0, 1: 2 of 9 evaluations."
    ]
    assert "cannot be compared" in said(rows, shift_frame=100_000)[0]


js = st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 1000)), min_size=2, max_size=6)


@settings(max_examples=60, deadline=None)
@given(js, st.randoms(use_true_random=False))
def test_only_what_a_t_test_calls_significant_is_called_a_win(
    pairs, shuffler: stdlib_random.Random
) -> None:
    passive, recency = zip(*pairs, strict=True)
    rows = table({("gain", "passive"): passive, ("gain", "recency"): recency})
    (one,) = said(rows)
    d = [b - a for a, b in pairs]
    if statistics.stdev(d) > 1e-6:
        p = stats.ttest_1samp(d, 0).pvalue
        if abs(p - 0.05) > 1e-6:
            assert ("beats" in one and "clear." in one) == (p < 0.05)
            assert ("within noise" in one) == (p >= 0.05)
    winner = re.search(r"(\w+) (?:beats|is [\d.]+ ± [\d.]+ above) (\w+)", one)
    if winner and abs(statistics.mean(d)) > 1e-6:
        assert (winner[1] == "Recency") == (statistics.mean(d) > 0)
    shuffler.shuffle(rows)
    assert said(rows) == [one]
