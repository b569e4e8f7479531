"""The report of a study: the page, its numbers, and the command."""

import base64
import hashlib
import html
import re
import subprocess
import sys
import webbrowser
from dataclasses import replace
from pathlib import Path

import made_up
import pytest
from matplotlib.figure import Figure

from fallow.report import comparison_page, study_page
from fallow.report.figures.recency_advantage import sweep_figures
from fallow.report.figures.return_curves import return_figures
from fallow.report.page import breakable
from fallow.report.theory import theory_cases
from fallow.study.results import read_study_results, together

pytestmark = pytest.mark.usefixtures("only_svg")  # but for `page`, which is older


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a whole study like the paper's Table I."""
    folder = tmp_path_factory.mktemp("studies") / "table1"
    return study_page.write_report(
        made_up.folder(folder, made_up.rows(made_up.table1()))
    )


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
        tmp_path / "earlier", made_up.rows(made_up.PAIR), shift_frame=20_000
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
    for text in ("gain", "recurring", "damping"):
        condition = study.condition(text)
        assert condition is not None and condition.schedule.shift_frame == 20_000
    # 40,000 is a frame like any other, not a mark of "unset"
    planless = replace(study, plan=None)
    condition = planless.condition("gain:shift_frame=7000")
    assert condition is not None and condition.schedule.shift_frame == 7_000
    assert study.condition("none") is not None and study.condition("no such") is None


# -------------------------------------------------------------------- commands


def test_the_command_writes_opens_and_compares(
    tmp_path: Path, run, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    one = made_up.folder(tmp_path / "one", made_up.rows(made_up.PAIR, seeds=(0, 1)))
    code, out, error = run("report", one, "--open", "--tables")
    assert code == 0, error
    assert out.splitlines()[-1] == f"report: {one / 'report.html'}"
    # of seeds 0 and 1: 146 + 20 and 146 + 10
    assert "Recency beats Passive by 161 ± 5" in " ".join(out.split())
    assert out.splitlines()[0] == "Gain reduction: Recency +161, clear"
    assert "Passive" in out and "+161 ± 5" in out
    assert opened == [(one / "report.html").resolve().as_uri()]
    assert run("report", tmp_path / "none")[0] == 2


@pytest.mark.parametrize("more", [(), ("--also", "one"), ("--compare", "one")])
def test_a_page_elsewhere_leaves_the_study_as_it_is(
    tmp_path: Path,
    run,
    monkeypatch: pytest.MonkeyPatch,
    more: tuple[str, ...],
    only_svg,
) -> None:
    one = made_up.folder(tmp_path / "one", made_up.rows(made_up.PAIR))
    before = sorted(one.rglob("*"))
    monkeypatch.chdir(tmp_path)
    code, out, error = run("report", one, *more, "--out", tmp_path / "page")
    assert code == 0, error
    (page,) = (tmp_path / "page").glob("*.html")
    assert out.splitlines()[-1] == f"report: {page}"
    assert sorted(one.rglob("*")) == before
    links = set(re.findall(r'href="([^"#:]+(?:svg|csv|json))"', page.read_text()))
    assert links and all((page.parent / link).is_file() for link in links)


def test_two_studies_side_by_side(tmp_path: Path) -> None:
    one = made_up.folder(tmp_path / "one", made_up.rows(made_up.PAIR))
    swapped = [replace(level, mean=500 - level.mean) for level in made_up.PAIR]
    other = made_up.folder(tmp_path / "other", made_up.rows(swapped))
    path = comparison_page.write_comparison(one, other)
    assert path == one / "compare-other.html"
    text = path.read_text()
    assert text.count('class="answer"') == 2 and text.count("<svg") == 2
    assert "+146 ± 7" in text and "-146 ± 7" in text and "differs" in text
    lonely = made_up.folder(tmp_path / "lonely", made_up.rows(made_up.PAIR[:1]))
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


def test_names_break_after_punctuation_and_not_before_a_percent_sign() -> None:
    assert breakable("bootstrap, 95 %") == "bootstrap, 95\u00a0%"
    assert breakable("recency:window_transitions<5") == (
        "recency:<wbr>window_<wbr>transitions&lt;5"
    )


def test_report_never_imports_jax(tmp_path: Path) -> None:
    folder = made_up.folder(
        tmp_path / "cold", made_up.rows(made_up.PAIR[:1], seeds=(0,))
    )
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
    rows = made_up.rows(made_up.PAIR, frames=made_up.FRAMES[:-1])
    shorter = made_up.folder(tmp_path / "shorter", rows, branch_frames=120_000)
    code, _, error = run("report", folders[0], "--also", shorter)
    assert code == 2 and "50,000 to 130,000, 50,000 to 120,000" in error
