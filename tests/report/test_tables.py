"""Tables of made-up studies: every number recomputed here from the values they had."""

import statistics
from pathlib import Path

import numpy as np
import pytest
from made_up import branch, table
from scipy import stats

from fallow.report.cells import ReportTable, digits_for, number
from fallow.report.names import condition_order, rule_name, rule_order
from fallow.report.selector_table import selector_table
from fallow.report.sweep_tables import published
from fallow.report.tables import tables_of
from fallow.study.estimator import SelectorCase, UnreadHistory
from fallow.study.statistics import Setting
from fallow.study.sweeps import gain_of, period_of, window_of

# five seeds each, so that every mean and error can be had from scipy in one line
TABLE1 = {
    ("gain", "passive"): (177.0, 150.0, 210.0, 190.0, 158.0),
    ("gain", "recency"): (320.0, 301.0, 205.0, 402.0, 297.0),
    ("gain", "graded"): (160.0, 170.0, 150.0, 166.0, 171.0),
    ("gain", "wmar"): (390.0, 360.0, 420.0, 380.0, 371.0),
    ("damage", "passive"): (232.0, 200.0, 260.0, 250.0, 215.0),
    ("damage", "recency"): (404.0, 380.0, 420.0, 390.0, 371.0),
    ("damage", "graded"): (246.0, 230.0, 250.0, 222.0, 241.0),
    ("damage", "wmar"): (418.0, 400.0, 440.0, 421.0, 399.0),
    ("recurring", "passive"): (481.0, 470.0, 490.0, 485.0, 477.0),
    ("recurring", "recency"): (290.0, 280.0, 300.0, 295.0, 301.0),
    ("recurring", "graded"): (464.0, 460.0, 470.0, 466.0, 461.0),
    ("recurring", "wmar"): (484.0, 480.0, 495.0, 490.0, 400.0),
    ("none", "passive"): (936.0, 930.0, 940.0, 938.0, 935.0),
    ("none", "recency"): (735.0, 700.0, 760.0, 741.0, 729.0),
    ("none", "graded"): (936.0, 931.0, 941.0, 937.0, 933.0),
    ("none", "wmar"): (816.0, 800.0, 830.0, 821.0, 811.0),
}
NAMES = {"gain": "Gain reduction", "damage": "Actuator damage"}
NAMES |= {"recurring": "Recurring", "none": "No change"}
RULES = {"passive": "Passive", "recency": "Recency", "graded": "Graded", "wmar": "WMAR"}


def shown(values: tuple[float, ...]) -> str:
    return f"{statistics.mean(values):.0f} ± {stats.sem(values):.0f}"


def cells(made: ReportTable, **labels: str) -> dict[str, str]:
    """The one row with these labels, by column."""
    rows = [dict(zip(made.head, row, strict=True)) for row in made.texts()]
    (found,) = [
        row for row in rows if all(row[name] == text for name, text in labels.items())
    ]
    return found


def test_table_1_has_our_means_and_the_papers() -> None:
    returns, differences, regimes = tables_of(table(TABLE1), "table1")
    assert returns.head == (
        "Change", "whose", "AUC", "Passive", "Recency", "Graded", "WMAR",
    )  # fmt: skip
    assert returns.title.startswith("Table I: ") and "preset lean" in returns.title
    for (condition, rule), values in TABLE1.items():
        row = cells(returns, Change=NAMES[condition], whose="ours")
        assert row[RULES[rule]] == shown(values)
    below = returns.texts()[1]
    assert below == [
        "", "the paper", "1.00", "177 ± 21", "323 ± 30", "163 ± 13", "387 ± 27",
    ]  # fmt: skip
    assert cells(returns, Change="Gain reduction")["AUC"] == "1.00"
    assert cells(returns, Change="No change")["AUC"] == "–"
    assert len(differences.rows) == 12
    assert [row[0] for row in regimes.texts()] == ["Recurring", "Recurring"]


@pytest.mark.parametrize("condition", NAMES)
def test_table_1_has_paired_differences(condition: str) -> None:
    made = tables_of(table(TABLE1), "table1")[1]
    pairs = zip(TABLE1[condition, "recency"], TABLE1[condition, "passive"], strict=True)
    d = [a - b for a, b in pairs]
    row = cells(made, Change=NAMES[condition], Difference="Recency - Passive")
    assert row["ours"] == f"{statistics.mean(d):+.0f} ± {stats.sem(d):.0f}"
    low, high = stats.t.interval(0.95, 4, loc=statistics.mean(d), scale=stats.sem(d))
    assert row["t, 95 %"] == f"{low:.0f} to {high:.0f}"
    assert row["seeds above 0"] == f"{sum(x > 0 for x in d)} of 5"
    printed = {"gain": "+146 ± 38", "damage": "+172 ± 42"}
    printed |= {"recurring": "-191 ± 17", "none": "-201 ± 25"}
    assert row["the paper"] == printed[condition]
    assert row["sign"] == "agrees"
    peer = stats.bootstrap((d,), np.mean, method="percentile", rng=0)
    ends = [float(end) for end in row["bootstrap, 95 %"].split(" to ")]
    assert ends == pytest.approx(list(peer.confidence_interval), abs=4)
    calm = [a - b for a, b in zip(TABLE1["none", "recency"], TABLE1["none", "passive"],
                                  strict=True)]  # fmt: skip
    less = [a - b for a, b in zip(d, calm, strict=True)]
    expected = f"{statistics.mean(less):+.0f} ± {stats.sem(less):.0f}"
    column = row["less that of no change"]
    assert column == ("–" if condition == "none" else expected)


def test_a_rule_not_run_without_a_change_is_not_left_out() -> None:
    some = {key: js for key, js in TABLE1.items() if key != ("none", "wmar")}
    made = tables_of(table(some), "mine")[1]
    row = cells(made, Change=NAMES["gain"], Difference="WMAR - Passive")
    assert row["less that of no change"] == "–"
    other = cells(made, Change=NAMES["gain"], Difference="Recency - Passive")
    assert other["less that of no change"] != "–"
    assert not [note for note in made.notes if note.startswith("Left out")]


def test_a_sign_that_is_not_the_papers_is_marked() -> None:
    made = tables_of(table(TABLE1), "table1")[1]
    row = cells(made, Change="Recurring", Difference="WMAR - Passive")
    assert (row["ours"], row["the paper"], row["sign"]) == (
        "-11 ± 17", "+3", "differs",
    )  # fmt: skip
    same = cells(made, Change="No change", Difference="Graded - Passive")
    assert (same["the paper"], same["sign"]) == ("0", "")  # the paper's means are equal


@pytest.mark.parametrize("apart", [0.4, -0.4])
def test_a_difference_printed_as_0_has_no_sign(apart) -> None:
    passive = TABLE1["damage", "passive"]
    even = TABLE1 | {("damage", "recency"): tuple(x + apart for x in passive)}
    made = tables_of(table(even), "table1")[1]
    row = cells(made, Change="Actuator damage", Difference="Recency - Passive")
    assert (row["ours"], row["sign"]) == ("0 ± 0", "")


def test_returns_by_regime() -> None:
    regimes = tables_of(table(TABLE1), "table1")[2]
    for regime, shift in (("0, original", -2.0), ("1, changed", 1.6)):
        values = tuple(x + shift for x in TABLE1["recurring", "passive"])
        assert cells(regimes, Regime=regime)["Passive"] == shown(values)


def test_table_2_is_of_its_own_trunks_and_keeps_what_the_paper_has_not() -> None:
    values = {
        ("gain", "passive"): (220.0, 200.0),
        ("gain", "recency"): (288.0, 310.0),
        ("gain", "reservoir"): (128.0, 120.0),
        ("gain", "reset"): (425.0, 500.0),
        ("none", "passive"): (900.0, 910.0),
        ("none", "recency"): (800.0, 790.0),
    }
    returns, differences, *_ = tables_of(table(values), "table2")
    assert cells(returns, Change="Gain reduction")["Reset-once"] == "462 ± 38"
    assert returns.texts()[1][2:] == [
        "–",
        "220 ± 21",
        "288 ± 22",
        "128 ± 14",
        "425 ± 66",
    ]
    recurring = cells(returns, Change="Recurring")
    assert {recurring[name] for name in ("Passive", "Reset-once")} == {"–"}
    assert cells(returns, Change="No change")["Recency"] == "795 ± 5"
    gain = {"Change": "Gain reduction"}
    row = cells(differences, **gain, Difference="Recency - Passive")
    assert row["the paper"] == "+68 ± 26"
    row = cells(differences, Change="Recurring", Difference="Reset-once - Passive")
    assert (row["ours"], row["the paper"], row["sign"]) == ("–", "-175 ± 32", "")
    assert any(
        note == "Left out: Recurring, Passive, Recency, Reservoir, Reset-once, "
        "seeds 0, 1: no row."
        for note in returns.notes
    )


@pytest.mark.parametrize("reservoir", ["reservoir", "reservoir:unit=chunk"])
def test_both_readings_of_the_reservoir_stand_beside_the_papers(reservoir) -> None:
    values = {("gain", "passive"): (220.0, 200.0), ("gain", reservoir): (128.0, 120.0)}
    returns, differences, *_ = tables_of(table(values), "table2")
    name = rule_name(reservoir)
    assert returns.head.count(name) == 1
    gain = {"Change": "Gain reduction"}
    assert cells(returns, **gain)[name] == "124 ± 4"
    assert returns.texts()[1][returns.head.index(name)] == "128 ± 14"
    row = cells(differences, **gain, Difference=f"{name} - Passive")
    assert (row["ours"], row["the paper"], row["sign"]) == (
        "-86.0 ± 6.0",
        "-92.0",
        "agrees",
    )


def test_table_3_has_differences_in_its_layout() -> None:
    values = {
        ("damage", "passive"): (100.0, 120.0),
        ("damage", "recency"): (300.0, 300.0),
    }
    rows = table(values | {("damage", "wmar"): (150.0, 190.0)}, task="cheetah-run")
    rows += table(values, agent="tdmpc")
    friction = {("friction", "passive"): (300.0, 330.0)}
    rows += table(friction | {("friction", "recency"): (250.0, 300.0)})
    first, differences, *_ = tables_of(rows, "table3")
    assert first.head == (
        "Setting", "Change", "whose", "Recency - Passive", "WMAR - Passive",
    )  # fmt: skip
    ours = {"Change": "Damage", "whose": "ours"}
    row = cells(first, Setting="Cheetah", **ours)
    assert row["Recency - Passive"] == "+190 ± 10"
    assert row["WMAR - Passive"] == "+60 ± 10"
    row = cells(first, Setting="TD-MPC2", **ours)
    assert (row["Recency - Passive"], row["WMAR - Passive"]) == ("+190 ± 10", "–")
    row = cells(first, Setting="RWRL", Change="Friction", whose="ours")
    assert row["Recency - Passive"] == "-40 ± 10"
    assert first.texts()[5][2:] == ["the paper", "+8 ± 15", "–"]
    row = cells(differences, Setting="RWRL", Change="Friction")
    assert (row["the paper"], row["sign"]) == ("+94 ± 58", "differs")
    assert not any("wmar" in note and "tdmpc" in note for note in first.notes)


def test_partial_studies_say_how_many_of_how_many() -> None:
    rows = [
        row
        for row in table(TABLE1)
        if not (row.condition == "gain" and row.rule == "recency" and row.seed > 2)
    ]
    rows = [row for row in rows if (row.condition, row.rule) != ("damage", "graded")]
    returns, differences, _ = tables_of(rows, "table1", seeds=range(6))
    values = TABLE1["gain", "recency"][:3]
    row = cells(returns, Change="Gain reduction")
    assert row["Recency"] == f"{shown(values)} (3 of 6)"
    assert row["Passive"] == f"{shown(TABLE1['gain', 'passive'])} (5 of 6)"
    assert cells(returns, Change="Actuator damage")["Graded"] == "–"
    assert "Left out: Gain reduction, Recency, seeds 3 to 5: no row." in returns.notes
    assert "Left out: Actuator damage, Graded, seeds 0 to 5: no row." in returns.notes
    row = cells(differences, Change="Gain reduction", Difference="Recency - Passive")
    assert row["ours"].endswith("(3 of 6)") and row["seeds above 0"] == "2 of 3"


def test_one_seed_has_no_error_and_says_so() -> None:
    rows = [row for row in table(TABLE1) if row.seed == 0]
    returns, differences, _ = tables_of(rows, "table1")
    assert cells(returns, Change="Gain reduction")["Passive"] == "177 (1 seed)"
    row = cells(differences, Change="Gain reduction", Difference="Recency - Passive")
    assert (row["t, 95 %"], row["bootstrap, 95 %"]) == ("–", "–")
    assert "One seed: no standard error and no interval." in differences.notes


def test_an_empty_study_has_no_table_and_one_that_just_began_an_empty_one() -> None:
    assert tables_of([], "table1") == []
    rows = [row for row in table(TABLE1) if row.branch_frame < 40_000]
    returns, *_ = tables_of(rows, "table1")
    assert cells(returns, Change="No change", whose="ours")["Passive"] == "–"
    assert "No branch has all its evaluations yet." in returns.notes


def test_any_other_study_is_conditions_by_rules() -> None:
    values = {
        ("gain:g=0.7", "reset"): (0.25, 0.35),
        ("gain:g=0.7", "curious"): (0.5, 0.5),
        ("none", "reset"): (0.75, 0.75),
    }
    rows = table(values, task="cartpole-swingup", preset="tiny", climb=0.0)
    returns, differences = tables_of(rows, "mine")
    assert returns.title == "cartpole-swingup, dreamer, preset tiny"
    assert returns.head == ("Change", "AUC", "Reset-once", "Curious")
    assert (
        cells(returns, Change="Gain reduction (g=0.7)")["Reset-once"] == "0.30 ± 0.05"
    )
    assert cells(returns, Change="No change")["Curious"] == "–"
    assert returns.notes[1:] == ()  # nobody planned `curious` with no change
    row = cells(differences, Change="Gain reduction (g=0.7)")
    assert (row["Difference"], row["ours"]) == ("Curious - Reset-once", "+0.20 ± 0.05")


def test_sweeps_are_sorted_and_stand_beside_the_paper() -> None:
    values = {}
    for condition, d in (
        ("recurring", -190.0), ("recurring:period_frames=10000", -280.0),
        ("gain", 150.0), ("gain:g=1.0", 30.0), ("gain:g=0.6", -150.0), ("none", -200.0),
    ):  # fmt: skip
        values[condition, "passive"] = (500.0, 520.0)
        values[condition, "recency"] = (500.0 + d, 520.0 + d + 2)
        values[condition, "recency:window_transitions=20000"] = (500.0, 530.0)
    rows = table(values)
    (recurrence,) = tables_of(rows, "recurrence")
    assert [row[0] for row in recurrence.texts()] == ["10,000", "20,000", "permanent"]
    row = cells(recurrence, **{"Period, frames": "20,000"})
    assert (row["ours"], row["the paper"], row["sign"]) == (
        "-189 ± 1", "-191 ± 17", "agrees",
    )  # fmt: skip
    assert row["AUC, the paper"] == "0.54"
    assert any("periods that it does not name" in note for note in recurrence.notes)
    (magnitude,) = tables_of(rows, "magnitude")
    assert [row[0] for row in magnitude.texts()] == ["1", "0.6", "0.5"]
    row = cells(magnitude, Gain="1")
    assert (row["the paper"], row["sign"]) == ("< 0", "differs")
    assert cells(magnitude, Gain="0.6")["the paper"] == "-154 ± 36"
    (window,) = tables_of(rows, "window")
    assert [row[:2] for row in window.texts()] == [
        [period, width]
        for period in ("10,000", "20,000", "permanent")
        for width in ("10,000", "20,000")
    ]
    wide = {"Period, frames": "20,000", "Window, transitions": "20,000"}
    assert cells(window, **wide)["ours"] == "+5 ± 5"
    assert window.notes[0].startswith("The paper (Section VI-B): a larger window")


def test_sets_of_trunks_are_rows_of_their_own() -> None:
    rows = []
    for trunk, d in (("a", 140.0), ("b", 60.0)):
        for rule, j in (("passive", 200.0), ("recency", 200.0 + d)):
            rows += branch("gain", rule, 0, j, trunk=trunk)
    (made,) = tables_of(rows, "magnitude", trunk_sets={"a": "A", "b": "B"})
    found = {row["Trunks"]: row for row in (cells(made, Trunks=s) for s in "AB")}
    assert found["A"]["ours"] == "+140 (1 seed)"
    assert found["B"]["ours"] == "+60 (1 seed)"
    assert found["A"]["the paper"] == "+146 ± 38"
    assert found["B"]["the paper"] == "+68 ± 26"


def test_what_was_swept_is_read_from_names() -> None:
    assert gain_of("gain") == 0.5 and gain_of("gain:g=0.9") == 0.9
    assert gain_of("none") == 1.0 and gain_of("damage") is None
    assert gain_of("gain:g=1/0.5") is None and gain_of("recurring") is None
    assert period_of("gain:schedule=recurring") == period_of("recurring") == 20_000
    assert period_of("gain") == float("inf")
    assert period_of("recurring:period_frames=60000") == 60_000
    assert period_of("recurring:g=0.7") is None and period_of("none") is None
    assert window_of("recency") == 10_000 and window_of("reset") is None
    assert window_of("recency:window_transitions=20000") == 20_000
    assert published("gain").mean == 146 and published("gain", "B").mean == 68
    assert published("gain:g=0.6").mean == -154 and published("damage") is None


def test_names_stand_in_the_papers_order_and_numbers_by_size() -> None:
    rules = ["zeal", "reset", "recency:window_transitions=20000", "wmar", "recency"]
    assert sorted([*rules, "passive"], key=rule_order) == [
        "passive", "recency", "recency:window_transitions=20000", "wmar", "reset",
        "zeal",
    ]  # fmt: skip
    names = ["none", "gain:g=0.9", "recurring:period_frames=100000", "gain", "damage"]
    names.append("recurring:period_frames=60000")
    assert sorted(names, key=condition_order) == [
        "gain", "gain:g=0.9", "damage", "recurring:period_frames=60000",
        "recurring:period_frames=100000", "none",
    ]  # fmt: skip


# the rows of the paper's tables as it prints them


def test_numbers_have_about_three_figures_and_no_negative_zero() -> None:
    assert [digits_for([x]) for x in (936.0, -99.0, 9.9, 0.0, None)] == [0, 1, 2, 2, 0]
    assert (number(-0.2), number(0.3, signed=True)) == ("0", "0")
    assert number(-0.25, 2) == "-0.25" and number(12.0, 1, signed=True) == "+12.0"


def test_the_estimators_table_names_what_it_leaves_out() -> None:
    setting = Setting("walker-walk", "dreamer", "lean", "gain")
    case = SelectorCase(setting, 3, "t3", Path("a"), Path("b"))
    made = selector_table([UnreadHistory(case, "there is no history at a")])
    row = cells(made, Change="Gain reduction")
    assert (row["histories"], row["right"], row["right, the paper"]) == (
        "0", "–", "3 of 5",
    )  # fmt: skip
    assert cells(made, Change="All changes")["right, the paper"] == "19 of 24"
    note = "Left out: Gain reduction, seed 3: there is no history at a."
    assert made.notes[-1] == note


def test_what_the_papers_text_says_stands_beside_ours() -> None:
    values = {
        ("damage", "passive"): (700.0, 720.0),
        ("damage", "recency"): (690.0, 730.0),
    }
    made, *_ = tables_of(table(values, agent="tdmpc"), "table3")
    assert (
        "TD-MPC2, Damage, Passive: a return of 710 ± 10; the paper: a return near 800, "
        "where DreamerV3 has 232." in made.notes
    )
    assert (
        "TD-MPC2, Damage, Recency: more than Passive in 1 of 2 seeds; the paper: more "
        "than Passive in three of five seeds." in made.notes
    )
