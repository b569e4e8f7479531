"""The demo: a small paired study beside a recorded one, their findings and a page."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from fallow.console.study import StudyView
from fallow.demo.phrases import told_plan, told_selector, told_trunks
from fallow.demo.recorded import TITLE, recorded_study
from fallow.report.findings import findings
from fallow.report.page import write_page
from fallow.report.phrases import headline_note, headlines, sentences
from fallow.report.study_page import PAGE, answer_of, content_of
from fallow.study.engines import run_study
from fallow.study.named import STUDIES
from fallow.study.plan import Plan
from fallow.study.results import StudyResults, read_study_results

LIVE = "Live: this machine, a small agent, few seeds"


class Bold(str):
    """A line to print in bold."""


def run_demo(folder: Path, plan: Plan | None = None) -> Iterator[str]:
    """Run the study `demo`, or another, and report it below the recorded one."""
    plan = STUDIES["demo"] if plan is None else plan
    with StudyView(folder) as view:
        study = run_study(plan, folder, view)
    live, recorded = read_study_results(study.folder), recorded_study()
    yield ""
    if recorded is not None:
        yield from _reported(TITLE, recorded)
    yield from _reported(LIVE, live)
    yield from told_plan(plan)
    yield from told_trunks(plan, study.folder)
    yield from sentences(findings(live))
    yield "What the selector says, from the histories alone:"
    yield from told_selector(plan, study.folder)
    yield f"Page: {write_demo_page(live, recorded)}"


def _reported(title: str, study: StudyResults) -> Iterator[str]:
    """A title, one headline a condition, and what the numbers are."""
    found = findings(study)
    yield f"{title}:"
    yield from (Bold(line) for line in headlines(found))
    yield headline_note(found)
    yield ""


def write_demo_page(live: StudyResults, recorded: StudyResults | None) -> Path:
    """The page of the live study, with the recorded one's answer first."""
    content = content_of(live)
    if recorded is not None:
        answers = [
            answer_of(recorded, TITLE, "recorded-findings"),
            answer_of(live, LIVE),
        ]
        content = replace(content, answers=answers)
    return write_page(content, live.folder / PAGE)
