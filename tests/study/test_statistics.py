"""J, D and their intervals against scipy, numbers computed by hand, and laws."""

import itertools
import math
import random as stdlib_random
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import AFTER, branch, table
from scipy import stats

from fallow.core.errors import FallowError
from fallow.study.statistics import (
    Setting,
    difference,
    difference_less_none,
    mean_return,
    of_regime,
    returns_of,
    setting_auc,
)
from fallow.study.summary import bootstrap_interval, summarise, t_interval

GAIN = Setting("walker-walk", "dreamer", "lean", "gain")
NONE = GAIN.without_change
PASSIVE = (177.0, 150.0, 210.0, 190.0, 158.0)
RECENCY = (320.0, 301.0, 205.0, 402.0, 297.0)
VALUES = {
    ("gain", "passive"): PASSIVE,
    ("gain", "recency"): RECENCY,
    ("none", "passive"): (930.0, 940.0, 935.0, 938.0, 929.0),
    ("none", "recency"): (730.0, 760.0, 700.0, 741.0, 650.0),
}
D = np.array([143.0, 151.0, -5.0, 212.0, 139.0])  # RECENCY - PASSIVE, by hand

number = st.floats(-1e4, 1e4, allow_nan=False)
several = st.lists(number, min_size=2, max_size=12)


def test_t_interval_of_five_values_by_hand() -> None:
    # 2.776 standard errors either way: the table of every textbook, four degrees
    low, high = t_interval(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert (low, high) == pytest.approx((3 - 1.96324, 3 + 1.96324), abs=1e-5)
    assert t_interval(np.full(5, 3.0)) == (3.0, 3.0)


@settings(deadline=None)
@given(several)
def test_summaries_are_scipys(values: list[float]) -> None:
    summary = summarise(values)
    assert summary.mean == pytest.approx(np.mean(values), abs=1e-9)
    assert summary.se == pytest.approx(stats.sem(values), rel=1e-9, abs=1e-9)
    if summary.se > 1e-6:
        expected = stats.t.interval(
            0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values)
        )
        assert summary.interval == pytest.approx(expected, rel=1e-9, abs=1e-6)


def test_clear_is_what_a_t_test_calls_so() -> None:
    random = np.random.default_rng(0)
    seen = set()
    for _ in range(200):
        values = random.normal(0.8, 1.0, 5)
        clear = bool(stats.ttest_1samp(values, 0).pvalue < 0.05)
        assert summarise(values).clear == clear
        seen.add(clear)
    assert seen == {True, False}


def test_bootstrap_is_near_all_resamples_and_seeded() -> None:
    every = [np.mean(pick) for pick in itertools.product(D, repeat=len(D))]
    found = bootstrap_interval(D, n_resamples=100_000)
    assert found == pytest.approx(np.quantile(every, [0.025, 0.975]), abs=3)
    assert bootstrap_interval(D) == bootstrap_interval(D)
    assert bootstrap_interval(D) != bootstrap_interval(D, seed=1)


def test_of_five_values_the_bootstrap_covers_84_and_t_95_percent() -> None:
    random = np.random.default_rng(0)
    draws = random.normal(size=(600, 5))
    found = [(bootstrap_interval(x, n_resamples=1000), t_interval(x)) for x in draws]
    covers = np.mean([[a <= 0 <= b for a, b in pair] for pair in found], axis=0)
    # three standard errors of a share among 600
    assert covers[0] == pytest.approx(0.84, abs=0.045)
    assert covers[1] == pytest.approx(0.95, abs=0.027)


def test_j_and_d_of_a_known_table() -> None:
    returns = returns_of(table(VALUES))
    assert mean_return(returns, GAIN, "passive").values == pytest.approx(PASSIVE)
    found = difference(returns, GAIN, "recency")
    assert found.values == pytest.approx(D)
    assert (found.mean, found.se) == pytest.approx((128.0, stats.sem(D)))
    assert (found.n, found.n_expected, found.n_positive, found.n_negative) == (
        5, 5, 4, 1,
    )  # fmt: skip
    assert found.missing == () and found.complete
    less = difference_less_none(returns, GAIN, "recency")
    assert less.values == pytest.approx([343.0, 331.0, 230.0, 409.0, 418.0])
    assert difference_less_none(returns, NONE, "recency").values == (0.0,) * 5


def test_only_evaluations_after_the_shift_count() -> None:
    returns = returns_of(table(VALUES), shift_frame=120_000)
    assert mean_return(returns, GAIN, "passive").values == pytest.approx(
        [j + 16 for j in PASSIVE]
    )
    (of_one, *_) = returns.branches
    assert of_one.n_evaluations == 1


def test_j_by_regime() -> None:
    returns = returns_of(branch("recurring", "passive", 0, 500.0))
    (one,) = returns.branches
    # by hand: reduced at 50, 80, 90, 120 and 130k, original at 60, 70, 100 and 110k;
    # -4, -1, 0, 3, 4 and -3, -2, 1, 2 climbs from the middle
    assert dict(one.by_regime) == pytest.approx({1: 500.0 + 8 / 5, 0: 500.0 - 2.0})
    setting = one.setting
    assert mean_return(of_regime(returns, 1), setting, "passive").mean == 501.6
    (lost,) = mean_return(of_regime(returns, 2), setting, "passive").missing
    assert lost.reason == "never in regime 2"


def test_auc_is_the_mean_of_what_is_defined() -> None:
    rows = branch("gain", "passive", 0, 1.0, auc=None)
    rows[-1], rows[-2] = replace(rows[-1], auc=0.6), replace(rows[-2], auc=0.8)
    returns = returns_of(rows)
    assert setting_auc(returns, GAIN) == pytest.approx(0.7)
    assert setting_auc(returns_of(table(VALUES)), GAIN) == 1.0
    assert setting_auc(returns_of(table(VALUES)), NONE) is None


def test_a_branch_without_rows_is_said() -> None:
    rows = [
        row
        for row in table(VALUES)
        if (row.condition, row.rule, row.seed) != ("gain", "recency", 3)
    ]
    found = difference(returns_of(rows), GAIN, "recency")
    assert found.values == pytest.approx([143.0, 151.0, -5.0, 139.0])
    assert found.n_expected == 5 and not found.complete
    assert [str(one) for one in found.missing] == ["gain, recency, seed 3: no row"]


def test_a_seed_that_is_known_from_elsewhere_or_asked_for_is_said() -> None:
    rows = [r for r in table(VALUES) if (r.condition, r.seed) != ("gain", 4)]
    found = difference(returns_of(rows), GAIN, "recency")
    assert (found.n, found.n_expected) == (4, 5)
    assert {m.seed for m in found.missing} == {4}
    found = difference(returns_of(rows, seeds=range(7)), GAIN, "recency")
    assert (found.n, found.n_expected) == (4, 7)


def test_a_branch_cut_short_has_no_j() -> None:
    rows = [
        row
        for row in table(VALUES)
        if row.branch_frame < 95_000 or (row.rule, row.seed) != ("recency", 1)
    ]
    found = difference_less_none(returns_of(rows), GAIN, "recency")
    assert found.n == 4
    assert [str(one) for one in found.missing] == [
        f"{condition}, recency, seed 1: 5 of 9 evaluations; none at branch frame "
        "100,000, 110,000, 120,000 and 1 more"
        for condition in ("gain", "none")
    ]


def test_a_study_that_still_runs_has_no_j_if_more_was_planned() -> None:
    rows = [row for row in table(VALUES) if row.branch_frame < 95_000]
    assert mean_return(returns_of(rows), GAIN, "passive").n == 5
    found = mean_return(returns_of(rows, n_evaluations=9), GAIN, "passive")
    assert found.n == 0 and found.mean is None and found.se is None
    assert {one.reason for one in found.missing} == {"5 of 9 evaluations"}
    early = [row for row in rows if row.branch_frame < 40_000]
    (reason,) = {b.reason for b in returns_of(early).branches}
    assert reason == "no evaluation after the shift"


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_return_that_is_no_number_is_not_averaged(bad: float) -> None:
    rows = table(VALUES)
    at = rows.index(branch("gain", "passive", 2, PASSIVE[2])[6])
    rows[at] = replace(rows[at], mean_return=bad)
    found = difference(returns_of(rows), GAIN, "recency")
    assert found.values == pytest.approx([143.0, 151.0, 212.0, 139.0])
    assert [m.reason for m in found.missing] == [
        "the return is not a number at branch frame 70,000"
    ]


def test_one_seed_has_no_error() -> None:
    rows = [row for row in table(VALUES) if row.seed == 0]
    found = difference(returns_of(rows), GAIN, "recency")
    assert found.mean == pytest.approx(143.0)
    assert (found.se, found.interval, found.bootstrap) == (None, None, None)
    assert not found.clear


def test_pairs_need_the_same_trunk() -> None:
    rows = branch("gain", "passive", 0, 100.0, trunk="a")
    rows += branch("gain", "recency", 0, 150.0, trunk="b")
    found = difference(returns_of(rows), GAIN, "recency")
    assert found.n == 0 and found.n_expected == 2


def test_two_trainings_of_one_trunk_are_no_pair() -> None:
    rows = branch("gain", "passive", 0, 100.0, trunk_fingerprint="aa")
    rows += branch("gain", "recency", 0, 150.0, trunk_fingerprint="aa")
    assert difference(returns_of(rows), GAIN, "recency").values == pytest.approx([50.0])
    again = branch("gain", "reset", 0, 150.0, trunk_fingerprint="bb")
    words = "rows of trunk t0 come from two trainings of it, 'aa' and 'bb'"
    with pytest.raises(FallowError, match=words):
        returns_of(rows + again)


def test_two_sets_of_trunks_are_two_settings() -> None:
    rows = []
    for trunk, shift in (("a", 0.0), ("b", 50.0)):
        rows += branch("gain", "passive", 0, 100.0, trunk=trunk)
        rows += branch("gain", "recency", 0, 110.0 + shift, trunk=trunk)
    assert difference(returns_of(rows), GAIN, "recency").values == pytest.approx(
        (10.0, 60.0)
    )
    returns = returns_of(rows, trunk_sets={"a": "A", "b": "B"})
    assert [setting.trunk_set for setting in returns.settings] == ["A", "B"]
    found = [difference(returns, setting, "recency") for setting in returns.settings]
    assert [one.mean for one in found] == pytest.approx([10.0, 60.0])
    assert all(one.complete for one in found)


def test_rows_given_twice_count_once_and_must_agree() -> None:
    rows = table(VALUES)
    assert returns_of(rows + rows) == returns_of(rows)
    other = replace(rows[-1], mean_return=1.0)
    with pytest.raises(FallowError, match=r"none, recency, seed 4 at branch frame 130"):
        returns_of([*rows, other])


def test_presets_are_never_mixed() -> None:
    rows = table(VALUES) + table(VALUES, preset="paper")
    assert difference(returns_of(rows), GAIN, "recency").n == 5
    assert len(returns_of(rows).settings) == 4


js = st.lists(st.tuples(number, number), min_size=1, max_size=5)


def _rows(pairs: list[tuple[float, float]]) -> list:
    return table(
        {
            ("gain", "passive"): tuple(a for a, _ in pairs),
            ("gain", "recency"): tuple(b for _, b in pairs),
        }
    )


@settings(max_examples=40, deadline=None)
@given(js)
def test_swapping_rules_flips_the_sign(pairs) -> None:
    returns = returns_of(_rows(pairs))
    one = difference(returns, GAIN, "recency", "passive")
    other = difference(returns, GAIN, "passive", "recency")
    assert one.values == tuple(-value for value in other.values)
    assert one.mean == -other.mean and one.se == other.se
    assert one.n_positive == other.n_negative
    if one.n > 1:
        assert one.bootstrap == pytest.approx([-x for x in other.bootstrap[::-1]])
        assert one.interval == pytest.approx([-x for x in other.interval[::-1]])


@settings(max_examples=40, deadline=None)
@given(js)
def test_a_rule_does_not_differ_from_itself(pairs) -> None:
    found = difference(returns_of(_rows(pairs)), GAIN, "recency", "recency")
    assert found.values == (0.0,) * len(pairs) and not found.clear


@settings(max_examples=40, deadline=None)
@given(js, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(
    pairs, shuffler: stdlib_random.Random
) -> None:
    rows = _rows(pairs)
    shuffled = list(rows)
    shuffler.shuffle(shuffled)
    assert returns_of(shuffled) == returns_of(rows)
    assert difference(returns_of(shuffled), GAIN, "recency") == difference(
        returns_of(rows), GAIN, "recency"
    )


@settings(max_examples=40, deadline=None)
@given(js, number)
def test_what_both_rules_gain_is_no_difference(pairs, constant: float) -> None:
    one = difference(returns_of(_rows(pairs)), GAIN, "recency")
    raised = [(a + constant, b + constant) for a, b in pairs]
    other = difference(returns_of(_rows(raised)), GAIN, "recency")
    assert other.values == pytest.approx(one.values, abs=1e-6)


def test_made_up_tables_have_nine_evaluations_after_the_shift() -> None:
    assert len(AFTER) == 9 and AFTER[0] == 50_000 and AFTER[-1] == 130_000


def test_statistics_and_tables_import_no_jax() -> None:
    modules = "study.statistics, study.estimator, report.tables, report.findings"
    names = ", ".join(f"fallow.{name}" for name in modules.split(", "))
    code = (
        f"import sys, {names}; print(*{{'jax', 'mujoco', 'scipy'}} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("", "")
