"""The demo: a true paired study in small, its page, and what came of it in words."""

from collections.abc import Iterator
from pathlib import Path

from fallow.console.study import StudyView
from fallow.core.results import read_results
from fallow.demo.phrases import told_plan, told_selector, told_trunks
from fallow.report.study_page import write_report
from fallow.report.verdict import verdict
from fallow.study.engines import run_study
from fallow.study.named import STUDIES
from fallow.study.plan import Plan


def run_demo(folder: Path, plan: Plan | None = None) -> Iterator[str]:
    """Run the study `demo`, or another, and say what came out and how sure it is."""
    plan = STUDIES["demo"] if plan is None else plan
    with StudyView(folder) as view:
        study = run_study(plan, folder, view)
    yield ""
    yield from told_plan(plan)
    yield from told_trunks(plan, study.folder)
    rows = read_results(study.table)
    yield from verdict(rows, shift_frame=plan.shift_frame, seeds=plan.seeds)
    yield "What the selector says, from the histories alone:"
    yield from told_selector(plan, study.folder)
    yield f"Page: {write_report(study.folder)}"
