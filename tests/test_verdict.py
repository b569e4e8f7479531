"""The verdict's sentences on made-up studies, and what they must never claim."""

import random as stdlib_random
import re
import statistics

from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import branch, table
from scipy import stats

from fallow.report.verdict import NOTHING, ONE_SEED, verdict

PASSIVE = (177.0, 150.0, 210.0, 190.0, 158.0)
RECENCY = (320.0, 301.0, 205.0, 402.0, 297.0)


def test_a_clear_win_is_said_with_size_signs_and_interval() -> None:
    values = {("gain", "passive"): PASSIVE, ("gain", "recency"): RECENCY}
    d = [a - b for a, b in zip(RECENCY, PASSIVE, strict=True)]
    low, high = stats.t.interval(0.95, 4, loc=statistics.mean(d), scale=stats.sem(d))
    assert verdict(table(values)) == [
        f"After `gain`, recency beat passive by {statistics.mean(d):.0f} ± "
        f"{stats.sem(d):.0f} (higher in 4 of 5 seeds; 95 % interval {low:.0f} to "
        f"{high:.0f}): clear."
    ]


def test_the_winner_comes_first_whichever_rule_it_is() -> None:
    values = {("recurring", "passive"): RECENCY, ("recurring", "recency"): PASSIVE}
    (one,) = verdict(table(values))
    assert one.startswith("Under `recurring`, passive beat recency by 128 ± 36 (")
    assert "higher in 4 of 5 seeds; 95 % interval 29 to 227" in one


def test_a_result_that_chance_could_give_is_called_one() -> None:
    recency = (180.0, 149.0, 260.0, 200.0, 141.0)  # 3, -1, 50, 10 and -17 more
    values = {("none", "passive"): PASSIVE, ("none", "recency"): recency}
    (one,) = verdict(table(values))
    assert one == (
        "With no change, no clear winner: recency was 9 ± 11 above passive (higher in "
        "3 of 5 seeds; 95 % interval -22 to 40), which chance could give."
    )


def test_one_seed_says_nothing_about_chance() -> None:
    values = {("damage", "passive"): (100.0,), ("damage", "reset"): (140.0,)}
    assert verdict(table(values)) == [
        ONE_SEED,
        "After `damage`, reset was 40 above passive in the one seed there is.",
    ]
    assert ONE_SEED == "One seed: nothing can be said about chance."


def test_nothing_to_compare_is_said() -> None:
    assert verdict([]) == [NOTHING]
    (one,) = verdict(table({("gain", "passive"): PASSIVE}))
    assert one == "There is nothing to compare: the only rule is passive."
    rows = branch("gain", "passive", 0, 1.0) + branch("gain", "recency", 1, 2.0)
    first, *rest = verdict(rows)
    assert first == (
        "After `gain`, recency and passive cannot be compared: no seed has both."
    )
    assert len(rest) == 2 and all(note.startswith("Left out: gain") for note in rest)


def test_the_same_is_not_called_a_win() -> None:
    values = {("gain:g=1.0", "passive"): PASSIVE, ("gain:g=1.0", "recency"): PASSIVE}
    assert verdict(table(values)) == [
        "After `gain:g=1.0`, recency and passive did exactly the same in all 5 seeds."
    ]


def test_several_rules_have_a_leader_and_a_count() -> None:
    values = {
        ("gain", "passive"): PASSIVE,
        ("gain", "recency"): RECENCY,
        ("gain", "wmar"): tuple(value + 300 + i for i, value in enumerate(PASSIVE)),
    }
    first, *_, last = verdict(table(values))
    assert first.startswith("Of 2 comparisons 2 are clear; ")
    assert last.startswith(
        "After `gain`, wmar reached the most, 479 ± 11, clearly ahead"
    )
    values["gain", "wmar"] = tuple(value + 4 for value in RECENCY[::-1])
    assert "but its lead over recency (4 ±" in verdict(table(values))[-1]
    cut = [r for r in table(values) if (r.rule, r.seed) != ("wmar", 2)]
    assert not any("reached the most" in text for text in verdict(cut))
    assert verdict(cut)[-1] == "Left out: gain, wmar, seed 2: no row."


def test_two_leaders_that_did_the_same() -> None:
    values = {
        ("gain", "passive"): PASSIVE,
        ("gain", "recency"): tuple(value - 9 for value in PASSIVE),
        ("gain", "reset"): PASSIVE,
    }
    last = verdict(table(values))[-1]
    assert last.startswith("After `gain`, passive and reset reached the most, ")
    assert last.endswith(" each.")


def test_several_tasks_are_told_apart() -> None:
    values = {("gain", "passive"): PASSIVE, ("gain", "recency"): RECENCY}
    _, one, other = verdict(table(values) + table(values, task="cheetah-run"))
    assert one.startswith("cheetah-run, dreamer, preset lean: after `gain`, recency")
    assert other.startswith("walker-walk, dreamer, preset lean: after `gain`, recency")


def test_the_shift_frame_and_what_was_planned_are_heard() -> None:
    values = {("gain", "passive"): (100.0, 110.0), ("gain", "recency"): (90.0, 99.0)}
    rows = [row for row in table(values) if row.branch_frame <= 60_000]
    assert "passive beat recency by 10.5 ± 0.5 (" in verdict(rows)[0]
    first, *rest = verdict(rows, n_evaluations=9)
    assert "cannot be compared" in first
    assert rest == ["Left out: gain, recency, passive, seeds 0, 1: 2 of 9 evaluations."]
    assert "cannot be compared" in verdict(rows, shift_frame=100_000)[0]


js = st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 1000)), min_size=2, max_size=6)


@settings(max_examples=60, deadline=None)
@given(js, st.randoms(use_true_random=False))
def test_only_what_a_t_test_calls_significant_is_called_a_win(
    pairs, shuffler: stdlib_random.Random
) -> None:
    passive, recency = zip(*pairs, strict=True)
    rows = table({("gain", "passive"): passive, ("gain", "recency"): recency})
    (one,) = verdict(rows)
    d = [b - a for a, b in pairs]
    if statistics.stdev(d) > 1e-6:
        p = stats.ttest_1samp(d, 0).pvalue
        if abs(p - 0.05) > 1e-6:
            assert ("beat" in one and "clear." in one) == (p < 0.05)
            assert ("no clear winner" in one) == (p >= 0.05)
    winner = re.search(r"(\w+) (?:beat|was [\d.]+ ± [\d.]+ above) (\w+)", one)
    if winner and abs(statistics.mean(d)) > 1e-6:
        assert (winner[1] == "recency") == (statistics.mean(d) > 0)
    shuffler.shuffle(rows)
    assert verdict(rows) == [one]
