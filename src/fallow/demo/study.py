"""The demo: a small paired study, its findings and its page."""

from collections.abc import Iterator
from pathlib import Path

from fallow.console.study import StudyView
from fallow.demo.phrases import told_plan, told_selector, told_trunks
from fallow.report.findings import findings
from fallow.report.phrases import headline_note, headlines, sentences
from fallow.report.study_page import write_report
from fallow.study.engines import run_study
from fallow.study.named import STUDIES
from fallow.study.plan import Plan
from fallow.study.results import read_study_results


def run_demo(folder: Path, plan: Plan | None = None) -> Iterator[str]:
    """Run the study `demo`, or another, and report its findings."""
    plan = STUDIES["demo"] if plan is None else plan
    with StudyView(folder) as view:
        study = run_study(plan, folder, view)
    found = findings(read_study_results(study.folder))
    yield ""
    yield from headlines(found)
    yield headline_note(found)
    yield from told_plan(plan)
    yield from told_trunks(plan, study.folder)
    yield from sentences(found)
    yield "What the selector says, from the histories alone:"
    yield from told_selector(plan, study.folder)
    yield f"Page: {write_report(study.folder)}"
