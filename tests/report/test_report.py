"""The report of a study: its numbers, what it says is missing, and bad folders."""

import base64
import hashlib
import html
import json
import re
import subprocess
import sys
import webbrowser
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
from fallow.report import comparison_page, study_page
from fallow.report.figures.recency_advantage import sweep_figures
from fallow.report.figures.report_figure import ReportFigure, file_name, unique_names
from fallow.report.figures.return_curves import return_figures
from fallow.report.missing import missing_branches
from fallow.report.page import render
from fallow.report.theory import theory_cases
from fallow.study.named import STUDIES
from fallow.study.results import read_study_results, together
from fallow.study.store import Study, write_plan

pytestmark = pytest.mark.usefixtures("only_svg")  # but for `page`, which is older
GAIN = [level for level in made_up.table1() if level.condition == "gain"]
PAIR = GAIN[:2]
CELL = STUDIES["table2"].cells[0]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a whole study like the paper's Table I."""
    folder = tmp_path_factory.mktemp("studies") / "table1"
    return study_page.write_report(
        made_up.folder(folder, made_up.rows(made_up.table1()))
    )


@pytest.fixture
def text_of(tmp_path: Path) -> Callable[..., str]:
    """The page of some rows, without its files."""

    def make(rows: list[ResultRow], name: str = "mine", **plan: object) -> str:
        folder = made_up.folder(tmp_path / name, rows, **plan)
        return render(study_page.content_of(read_study_results(folder)))

    return make


# -------------------------------------------------------------------- whole


def test_the_answer_comes_first_then_tables_figures_caveats_and_plan(
    page: Path,
) -> None:
    text = page.read_text().replace("\u00a0", " ")
    order = [
        # 387, 323 and 163 less 177
        "<b>Gain reduction: WMAR +210, Recency +146, Graded -14, all clear</b>",
        "<h2>Returns and differences</h2>",
        "+146 ± 7",  # units are 10 apart: sqrt(250 / 5)
        "Table I",
        "<h2>Return before and after the change</h2>",
        'id="return-gain-reduction"',
        "<h2>Theory</h2>",
        "<h2>Caveats</h2>",
        "fallow study table1",
        "fallow report table1",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert made_up.known_advantage("gain") == pytest.approx((146, 50**0.5))
    for number in ("+146 ± 7", "-191 ± 7", "-201 ± 7", "177 ± 14"):
        assert number in text
    assert "80 of 80 branches are finished" in text
    assert "This report is partial" not in text


def test_the_page_needs_nothing_but_itself(page: Path) -> None:
    text = page.read_text()
    assert text.count("<script") == 1
    for loader in ("<script src", "<link", "@import", "url(http", 'src="http', "url(/"):
        assert loader not in text
    assert "default-src 'none'" in text and "prefers-color-scheme: dark" in text
    drawn = text.split("</style>", 1)[1]
    for colour in ("#0072b2", "#c85500", "#1f2328"):
        assert colour not in drawn
    assert drawn.count("<svg") == drawn.count('role="img"') == 4 + 3 + 2 + 1


def test_figures_and_tables_lie_beside_the_page(page: Path) -> None:
    figures = {path.name for path in (page.parent / "figures").iterdir()}
    for name in ("return-recurring", "stale-gain-reduction", "theory-mismatch"):
        assert {f"{name}.{ending}" for ending in ("svg", "png", "pdf")} <= figures
    endings = {path.suffix for path in (page.parent / "tables").iterdir()}
    assert endings == {".md", ".tex", ".csv"}


def shown_texts(page: Path) -> list[str]:
    """What a reader sees outside of figures and tables of numbers."""
    text = page.read_text().split("</style>", 1)[1].split("<script>")[0]
    text = re.sub(r"<(svg|table|pre|dl|code|nav)\b.*?</\1>", "", text, flags=re.DOTALL)
    parts = re.findall(r"<(?:p|li|h\d|figcaption|b)[^>]*>([^<]+)", text)
    return [html.unescape(part).strip() for part in parts if part.strip()]


def test_rules_have_their_labels_and_sentences_a_capital_letter(page: Path) -> None:
    texts = shown_texts(page)
    assert len(texts) > 30
    for text in texts:
        assert not re.search(r"\b(passive|recency|graded|wmar|reset)\b", text), text
        for sentence in re.split(r"(?<=[.?!]) ", text.replace("s.e.", "s.e")):
            named = sentence.startswith(("walker-walk", "table1"))
            assert named or not sentence[0].islower(), sentence


def test_links_lead_to_files_beside_the_page_and_to_its_parts(page: Path) -> None:
    text = page.read_text()
    links = set(re.findall(r'href="([^"]+)"', text))
    inside = {link for link in links if link.startswith("#")}
    assert all(f'id="{link[1:]}"' in text for link in inside)
    assert all((page.parent / link).is_file() for link in links - inside)
    for link in ("results.csv", "tables/findings.csv", "figures/return-recurring.png"):
        assert link in links


def test_only_the_copy_script_may_run(page: Path) -> None:
    text = page.read_text()
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    n_commands = text.count('<div class="command">')
    assert n_commands == text.count('class="copy"') == 2


def test_no_section_is_empty(page: Path) -> None:
    for part in page.read_text().split("<section id=")[1:]:
        section = part.split("</section>")[0]
        assert re.search(r"<svg|<table|<li>|<dd>", section), section[:80]


def panels_of(figure: Figure) -> list:
    """Recurrence, its AUC, gain, window."""
    named = {axes.get_title(loc="left"): axes for axes in figure.axes}
    return [named["(a)"], named[""], named["(b)"], named["(c)"]]


def test_sweeps_have_the_known_advantages(tmp_path: Path) -> None:
    rows = made_up.rows(made_up.table1() + made_up.sweeps())
    study = read_study_results(made_up.folder(tmp_path / "sweeps", rows))
    (picture,) = sweep_figures(study)
    period, auc_axes, gain, window = panels_of(picture.figure)
    drawn = period.containers[0][0].get_ydata()
    assert drawn.tolist() == pytest.approx([-287, -191, -150, -100, -19, 146])
    auc = auc_axes.get_lines()[0].get_ydata()
    assert list(auc) == pytest.approx([0.55, 0.56, 0.58, 0.69, 0.89, 1.0])
    drawn = gain.containers[0][0]
    assert drawn.get_xdata().tolist() == [0.3, 0.5, 0.7, 0.9, 1.0]
    assert drawn.get_ydata().tolist() == pytest.approx([15, 146, -80, -120, -201])
    wide = window.containers[1][0].get_ydata()
    assert wide.tolist() == pytest.approx([-143.5, -75, -50, -9.5])
    assert len(theory_cases(study)) == 11 + 4


def test_the_change_is_drawn_where_the_plan_puts_it(tmp_path: Path) -> None:
    folder = made_up.folder(
        tmp_path / "earlier", made_up.rows(PAIR), shift_frame=20_000
    )
    study = read_study_results(folder)
    assert study.shift_frame == 20_000 and study.seeds == made_up.SEEDS
    (picture,) = return_figures(study)
    (change,) = [
        line
        for line in picture.figure.axes[0].get_lines()
        if line.get_label() == "first change"
    ]
    assert change.get_xdata() == [20_000, 20_000]
    condition = study.condition("gain:shift_frame=7000")
    assert condition is not None and condition.schedule.shift_frame == 7_000
    assert study.condition("none") is not None and study.condition("no such") is None


# -------------------------------------------------------------------- partial


def test_a_partial_study_says_what_is_missing(text_of: Callable[..., str]) -> None:
    rows = [
        row
        for row in made_up.rows(PAIR)
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
    folder = made_up.folder(tmp_path / "begun", made_up.rows(PAIR))
    (folder / "results.csv").unlink()
    text = study_page.write_report(folder).read_text()
    assert "No branch has been evaluated yet" in text
    assert "Gain reduction, Passive, seeds 0 to 4: no row." in text
    assert "results.csv is not there yet" in text


def test_a_study_that_runs_is_not_taken_for_a_finished_one(
    text_of: Callable[..., str],
) -> None:
    so_far = [frame for frame in made_up.FRAMES if frame < 90_000]
    text = text_of(made_up.rows(PAIR, frames=so_far))
    assert "This report is partial: 0 of 10 branches are finished" in text
    assert "Gain reduction, Passive, seeds 0 to 4: 4 of 9 evaluations" in text
    assert ">clear<" not in text and "Recency not comparable" in text


def test_what_is_known_so_far(tmp_path: Path, run) -> None:
    """Some branches stopped early; up to there all are compared."""
    rows = [r for r in made_up.rows(PAIR) if r.seed == 0 or r.branch_frame < 90_000]
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
    folder = made_up.folder(tmp_path / "study", made_up.rows(PAIR))
    with pytest.raises(FallowError, match=message):
        read_study_results(folder, until)


def test_evaluations_before_the_change_only(text_of: Callable[..., str]) -> None:
    text = text_of(made_up.rows(PAIR, frames=(10_000, 40_000)))
    assert "no evaluation after the shift" in text and "0 of 10" in text


def test_one_seed_has_no_standard_error_and_the_page_says_so(
    text_of: Callable[..., str],
) -> None:
    text = text_of(made_up.rows(PAIR, seeds=(0,)), seeds=(0,))
    assert "There is one seed, so no standard error" in text
    assert "One seed, so there are no bands" in text
    assert "nan" not in text.lower().replace("finan", "")


def test_a_return_that_is_no_number_is_named_and_in_no_mean(
    text_of: Callable[..., str],
) -> None:
    rows = made_up.rows(PAIR)
    bad = rows.index(next(r for r in rows if r.seed == 1 and r.branch_frame == 60_000))
    rows[bad] = replace(rows[bad], mean_return=float("nan"))
    text = text_of(rows)
    assert "Passive, seed 1: the return is no number at branch frame 60,000" in text
    assert "nan ±" not in text


# -------------------------------------------------------------------- bad input


def test_folders_that_hold_no_study(tmp_path: Path) -> None:
    with pytest.raises(FallowError, match=r"no folder .*gone"):
        read_study_results(tmp_path / "gone")
    with pytest.raises(FallowError, match=r"neither results\.csv nor plan\.json"):
        read_study_results(tmp_path)


def test_a_half_written_last_line_is_left_out_and_told(tmp_path: Path) -> None:
    folder = made_up.folder(tmp_path / "torn", made_up.rows(PAIR))
    whole = (folder / "results.csv").read_text()
    (folder / "results.csv").write_text(whole[:-25])
    study = read_study_results(folder)
    assert len(study.rows) == len(made_up.rows(PAIR)) - 1
    assert "The last line of results.csv is unfinished" in study.notes[0]


def test_a_bad_line_in_the_middle_and_unknown_columns_are_errors(
    tmp_path: Path,
) -> None:
    folder = made_up.folder(tmp_path / "bad", made_up.rows(PAIR))
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
    folder = made_up.folder(tmp_path / "odd", made_up.rows(PAIR))
    (folder / "plan.json").write_text(content)
    study = read_study_results(folder)
    assert study.branches == () and study.seeds is None
    assert missing_branches(study) == []
    (folder / "plan.json").unlink()
    assert "plan.json is missing" in read_study_results(folder).notes[0]


HOSTILE = "<script>alert(1)</script>&\"'$x^{"


def test_names_with_html_in_them_are_text(tmp_path: Path) -> None:
    folder = made_up.folder(tmp_path / "evil", made_up.rows(PAIR))
    rows = [
        replace(row, task=HOSTILE, rule=row.rule.replace("recency", HOSTILE))
        for row in made_up.rows(PAIR)
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


def test_titles_that_make_one_file_name_are_told_apart() -> None:
    figure = Figure()
    same = [ReportFigure(name, name, "", figure) for name in ("a", "b")]
    again = [ReportFigure("a", title, "", figure) for title in ("A!", "(a)")]
    names = [shown.name for shown in unique_names(same + again)]
    assert names == ["a", "b", "a-2", "a-3"]
    assert file_name("Gain (g=0.5), é/..") == "gain-g-0-5"


def test_sets_of_trunks_are_told_apart(tmp_path: Path) -> None:
    for name, sets in (("magnitude", {"A", "B"}), ("table2", set())):
        plan = STUDIES[name]
        members = (plan.trunks(), plan.branches(), (), tmp_path)
        write_plan(Study(tmp_path / name, plan, *members))
        study = read_study_results(tmp_path / name)
        assert set(study.trunk_sets.values()) == sets
        if sets:
            assert study.trunk_sets == {t.id: t.trunk_set for t in plan.trunks()}


def test_two_rows_that_do_not_agree_are_an_error(tmp_path: Path, run) -> None:
    rows = made_up.rows(PAIR)
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
    text = text_of(made_up.rows(PAIR), plan=plan)
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
    text = text_of(made_up.rows(PAIR), plan=plan)
    assert ("Table II: Walker" in text) == is_the_papers
    assert ("220 ± 21" in text) == is_the_papers  # its Passive


# -------------------------------------------------------------------- commands


def test_the_command_writes_opens_and_compares(
    tmp_path: Path, run, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    one = made_up.folder(tmp_path / "one", made_up.rows(PAIR, seeds=(0, 1)))
    code, out, error = run("report", one, "--open", "--tables")
    assert code == 0, error
    assert out.splitlines()[-1] == f"report: {one / 'report.html'}"
    # of seeds 0 and 1: 146 + 20 and 146 + 10
    assert "Recency beats Passive by 161 ± 5" in " ".join(out.split())
    assert out.splitlines()[0] == "Gain reduction: Recency +161, clear"
    assert "Passive" in out and "+161 ± 5" in out
    assert opened == [(one / "report.html").resolve().as_uri()]
    assert run("report", tmp_path / "none")[0] == 2


def test_two_studies_side_by_side(tmp_path: Path) -> None:
    one = made_up.folder(tmp_path / "one", made_up.rows(PAIR))
    swapped = [replace(level, mean=500 - level.mean) for level in PAIR]
    other = made_up.folder(tmp_path / "other", made_up.rows(swapped))
    path = comparison_page.write_comparison(one, other)
    assert path == one / "compare-other.html"
    text = path.read_text()
    assert text.count('class="answer"') == 2 and text.count("<svg") == 2
    assert "+146 ± 7" in text and "-146 ± 7" in text and "differs" in text
    lonely = made_up.folder(tmp_path / "lonely", made_up.rows(PAIR[:1]))
    studies = read_study_results(one), read_study_results(lonely)
    content = comparison_page.content_of(*studies)
    assert content.tables == [] and "nothing" not in content.title
    assert content.caveats[0] == comparison_page.NO_OVERLAP


COLD = """
import sys
from fallow.cli import main
code = main(["report", sys.argv[1]])
heavy = {"jax", "torch", "dm_control", "gymnasium"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy or code else 0)
"""


def test_report_never_imports_jax(tmp_path: Path) -> None:
    folder = made_up.folder(tmp_path / "cold", made_up.rows(PAIR[:1], seeds=(0,)))
    done = subprocess.run(
        [sys.executable, "-c", COLD, str(folder)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_sweeps_of_several_studies_make_one_figure(tmp_path: Path, run) -> None:
    levels = made_up.table1() + made_up.sweeps()
    studies, folders = [], []
    for name in ("gain", "recurring"):
        some = [level for level in levels if level.condition.startswith(name)]
        folder = made_up.folder(tmp_path / "all" / name, made_up.rows(some))
        studies.append(read_study_results(folder))
        few = [level for level in some if level.condition == name]
        folders.append(made_up.folder(tmp_path / name, made_up.rows(few)))
    (picture,) = sweep_figures(together(studies))
    assert len(panels_of(picture.figure)) == 4
    code, out, error = run("report", folders[0], "--also", folders[1])
    assert code == 0, error
    page = folders[0] / "together" / "report.html"
    assert out.splitlines()[-1] == f"report: {page}"
    names = {path.name for path in (page.parent / "figures").iterdir()}
    assert {"return-gain-reduction.svg", "return-recurring.svg"} <= names
    rows = made_up.rows(PAIR, frames=made_up.FRAMES[:-1])
    shorter = made_up.folder(tmp_path / "shorter", rows, branch_frames=120_000)
    code, _, error = run("report", folders[0], "--also", shorter)
    assert code == 2 and "50,000 to 130,000, 50,000 to 120,000" in error
