"""Reports of partial studies, bad input, and plans unlike the paper's."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import mean

import made_up
import pytest
from matplotlib.figure import Figure

from fallow.core.errors import FallowError
from fallow.core.results import (
    ResultRow,
    read_results,
    write_results,
)
from fallow.report import study_page
from fallow.report.figures.report_figure import ReportFigure, file_name, unique_names
from fallow.report.missing import missing_branches
from fallow.report.page import render
from fallow.study.named import STUDIES
from fallow.study.results import read_study_results
from fallow.study.store import Study, write_plan

pytestmark = pytest.mark.usefixtures("only_svg")
CELL = STUDIES["table2"].cells[0]


@pytest.fixture
def text_of(tmp_path: Path) -> Callable[..., str]:
    """The page of some rows, without its files."""

    def make(rows: list[ResultRow], name: str = "mine", **plan: object) -> str:
        folder = made_up.folder(tmp_path / name, rows, **plan)
        return render(study_page.content_of(read_study_results(folder)))

    return make


# -------------------------------------------------------------------- partial


def test_a_partial_study_says_what_is_missing(text_of: Callable[..., str]) -> None:
    rows = [
        row
        for row in made_up.rows(made_up.PAIR)
        if not (row.rule == "recency" and row.seed in (3, 4))
        and not (row.rule == "passive" and row.seed == 2 and row.branch_frame > 90_000)
    ]
    text = text_of(rows)
    assert "This report is partial: 7 of 10 branches are finished" in text
    assert "Gain reduction, Recency, seeds 3, 4: no row." in text
    short = "Gain reduction, Passive, seed 2: 5 of 9 evaluations; none at branch frame"
    assert short in text
    assert "Left out" not in text.split('<nav class="soft">')[0]


def test_a_study_that_has_only_begun_is_a_page_too(tmp_path: Path) -> None:
    folder = made_up.folder(tmp_path / "begun", made_up.rows(made_up.PAIR))
    (folder / "results.csv").unlink()
    text = study_page.write_report(folder).read_text()
    assert "No branch has been evaluated yet" in text
    assert "Gain reduction, Passive, seeds 0 to 4: no row." in text
    assert "results.csv is not there yet" in text


def test_a_study_that_runs_is_not_taken_for_a_finished_one(
    text_of: Callable[..., str],
) -> None:
    so_far = [frame for frame in made_up.FRAMES if frame < 90_000]
    text = text_of(made_up.rows(made_up.PAIR, frames=so_far))
    assert "This report is partial: 0 of 10 branches are finished" in text
    assert "Gain reduction, Passive, seeds 0 to 4: 4 of 9 evaluations" in text
    assert ">clear<" not in text and "Recency not comparable" in text


def test_what_is_known_so_far(tmp_path: Path, run) -> None:
    """Some branches stopped early; up to there all are compared."""
    rows = [
        r for r in made_up.rows(made_up.PAIR) if r.seed == 0 or r.branch_frame < 90_000
    ]
    folder = made_up.folder(tmp_path / "stopped", rows)
    code, out, error = run("report", folder, "--until", "85000", "--tables")
    assert code == 0, error
    early = [r for r in rows if 40_000 < r.branch_frame <= 85_000]
    passive = [r.mean_return for r in early if r.rule == "passive"]
    assert len(passive) == 4 * 5 and f"{mean(passive):.0f} ± " in out
    assert "the 4 evaluations at branch frames 50,000, 60,000" in " ".join(out.split())
    text = (folder / "report.html").read_text()
    assert "Evaluations after branch frame 85,000 are left out" in text
    assert "partial" not in text and "--until 85000" in text
    later = study_page.write_report(folder, until_frame=105_000).read_text()
    assert "This report is partial: 2 of 10 branches reached branch frame" in later


@pytest.mark.parametrize(
    ("until", "message"),
    [(44_000, "44,000.* at 40,000 is so early: the first is at 50,000"), (0, "is 0;")],
)
def test_nothing_is_known_so_early(tmp_path: Path, until: int, message: str) -> None:
    folder = made_up.folder(tmp_path / "study", made_up.rows(made_up.PAIR))
    with pytest.raises(FallowError, match=message):
        read_study_results(folder, until)


def test_evaluations_before_the_change_only(text_of: Callable[..., str]) -> None:
    text = text_of(made_up.rows(made_up.PAIR, frames=(10_000, 40_000)))
    assert "no evaluation after the shift" in text and "0 of 10" in text


def test_one_seed_has_no_standard_error_and_the_page_says_so(
    text_of: Callable[..., str],
) -> None:
    text = text_of(made_up.rows(made_up.PAIR, seeds=(0,)), seeds=(0,))
    assert "There is one seed, so no standard error" in text
    assert "One seed, so there are no bands" in text
    assert "nan" not in text.lower().replace("finan", "")


def test_a_return_that_is_no_number_is_named_and_in_no_mean(
    text_of: Callable[..., str],
) -> None:
    rows = made_up.rows(made_up.PAIR)
    bad = rows.index(next(r for r in rows if r.seed == 1 and r.branch_frame == 60_000))
    rows[bad] = replace(rows[bad], mean_return=float("nan"))
    text = text_of(rows)
    assert "Passive, seed 1: the return is not a number at branch frame 60,000" in text
    assert "nan ±" not in text


# -------------------------------------------------------------------- bad input


def test_folders_that_hold_no_study(tmp_path: Path) -> None:
    with pytest.raises(FallowError, match=r"no folder .*gone"):
        read_study_results(tmp_path / "gone")
    with pytest.raises(FallowError, match=r"neither results\.csv nor plan\.json"):
        read_study_results(tmp_path)


def test_a_half_written_last_line_is_left_out_with_a_note(tmp_path: Path) -> None:
    folder = made_up.folder(tmp_path / "torn", made_up.rows(made_up.PAIR))
    whole = (folder / "results.csv").read_text()
    (folder / "results.csv").write_text(whole[:-25])
    study = read_study_results(folder)
    assert len(study.rows) == len(made_up.rows(made_up.PAIR)) - 1
    assert "The last line of results.csv is unfinished" in study.notes[0]


def test_a_bad_line_in_the_middle_and_unknown_columns_are_errors(
    tmp_path: Path,
) -> None:
    folder = made_up.folder(tmp_path / "bad", made_up.rows(made_up.PAIR))
    table = folder / "results.csv"
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join([*lines[:5], "torn,\n", *lines[6:]]))
    with pytest.raises(FallowError, match="line 6"):
        read_study_results(folder)
    table.write_text(lines[0].replace("regime", "colour") + "".join(lines[1:]))
    with pytest.raises(FallowError, match="unknown columns colour"):
        read_study_results(folder)
    table.write_text("")
    with pytest.raises(FallowError, match="missing columns"):
        read_study_results(folder)


@pytest.mark.parametrize("content", ["{", "[]", '{"plan": 3}', '{"seeds": "0-4"}'])
def test_a_plan_that_cannot_be_read_leaves_the_numbers(
    tmp_path: Path, content: str
) -> None:
    folder = made_up.folder(tmp_path / "odd", made_up.rows(made_up.PAIR))
    (folder / "plan.json").write_text(content)
    study = read_study_results(folder)
    assert study.branches == () and study.seeds is None
    assert missing_branches(study) == []
    (folder / "plan.json").unlink()
    assert "plan.json is missing" in read_study_results(folder).notes[0]


HOSTILE = "<script>alert(1)</script>&\"'$x^{"


def test_names_with_html_in_them_are_text(tmp_path: Path) -> None:
    folder = made_up.folder(tmp_path / "evil", made_up.rows(made_up.PAIR))
    rows = [
        replace(row, task=HOSTILE, rule=row.rule.replace("recency", HOSTILE))
        for row in made_up.rows(made_up.PAIR)
    ]
    rows += [replace(row, condition=HOSTILE) for row in rows]
    write_results(folder / "results.csv", rows)
    content = json.loads((folder / "plan.json").read_text())
    content["versions"] = {HOSTILE: HOSTILE}
    (folder / "plan.json").write_text(json.dumps(content))
    folder = folder.rename(tmp_path / "an evil; study")
    text = render(study_page.content_of(read_study_results(folder)))
    again = "fallow report &#39;an evil; study-again&#39;"
    assert "<script>alert" not in text and again in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 10


def test_titles_that_make_one_file_name_get_numbers() -> None:
    figure = Figure()
    same = [ReportFigure(name, name, "", figure) for name in ("a", "b")]
    again = [ReportFigure("a", title, "", figure) for title in ("A!", "(a)")]
    names = [shown.name for shown in unique_names(same + again)]
    assert names == ["a", "b", "a-2", "a-3"]
    assert file_name("Gain (g=0.5), é/..") == "gain-g-0-5"


def test_sets_of_trunks_have_names(tmp_path: Path) -> None:
    for name, sets in (("magnitude", {"A", "B"}), ("table2", set())):
        plan = STUDIES[name]
        members = (plan.trunks(), plan.branches(), (), tmp_path)
        write_plan(Study(tmp_path / name, plan, *members))
        study = read_study_results(tmp_path / name)
        assert set(study.trunk_sets.values()) == sets
        if sets:
            assert study.trunk_sets == {t.id: t.trunk_set for t in plan.trunks()}


def test_two_rows_that_do_not_agree_are_an_error(tmp_path: Path, run) -> None:
    rows = made_up.rows(made_up.PAIR)
    folder = made_up.folder(tmp_path / "twice", rows)
    stored = read_results(folder / "results.csv")
    other = replace(stored[-1], mean_return=1.0)
    write_results(folder / "results.csv", [*stored, other])
    code, _, error = run("report", folder)
    assert code == 2 and "keep the one that belongs to the study" in error


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "table1 --preset lean --out mine"),
        ({"seeds": (0, 3)}, "table1 --preset lean --seeds 0,3 --out mine"),
        ({"preset": "paper", "device": "h200"}, "table1 --preset paper --out mine"),
        ({"branch_frames": 90_000}, "mine/plan.json --out mine-again"),
        ({"name": "mine"}, "mine/plan.json --out mine-again"),
    ],
)
def test_the_page_says_how_to_make_its_study_again(
    text_of: Callable[..., str], changes: dict, words: str
) -> None:
    plan = replace(STUDIES["table1"], **changes)
    text = text_of(made_up.rows(made_up.PAIR), plan=plan)
    assert f"fallow study {words}" in text
    assert f"fallow report {words.split()[-1]}" in text


@pytest.mark.parametrize(
    ("changes", "is_the_papers"),
    [
        ({"preset": "tiny", "seeds": (3,), "save_frames": 1}, True),
        ({"cells": (CELL, replace(CELL, conditions=("friction",)))}, True),
        ({"cells": (replace(CELL, rules=CELL.rules[:-1]),)}, False),
        ({"branch_frames": 90_000}, False),
        ({"n_episodes": 5}, False),
    ],
)
def test_a_study_of_another_name_is_beside_the_paper_if_it_holds_its_table(
    text_of: Callable[..., str], changes: dict, is_the_papers: bool
) -> None:
    plan = replace(STUDIES["table2"], name="mine", **changes)
    text = text_of(made_up.rows(made_up.PAIR), plan=plan)
    assert ("Table II: Walker" in text) == is_the_papers
    assert ("220 ± 21" in text) == is_the_papers  # its Passive
