"""The demo: a recorded study's findings, then a small paired study and its page."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rich.text import Text

from fallow.console.study import StudyView
from fallow.core import options
from fallow.demo.claims import claim_sentences
from fallow.demo.phrases import FAST_RECURRENCE, plan_sentence, trunk_sentences
from fallow.demo.recorded import (
    OTHER_SEEDS,
    OTHER_SEEDS_TITLE,
    TABLE2,
    TITLE,
    recorded_study,
)
from fallow.demo.shipped import unpack_shipped
from fallow.report.findings import findings
from fallow.report.page import write_page
from fallow.report.phrases import headline_note, headlines, sentences
from fallow.report.study_page import PAGE, answer_of, content_of
from fallow.study.engines import run_study
from fallow.study.named import STUDIES
from fallow.study.plan import Plan
from fallow.study.results import StudyResults, read_study_results

LIVE = "Live: this machine, a small agent, few seeds"
TRAINED_BY = "tools/demo_trunks.py"


def demo_plan(seeds: str | None = None) -> Plan:
    """The study `demo`, or the same with other seeds, e.g. `10-12`."""
    plan = STUDIES["demo"]
    return plan if seeds is None else replace(plan, seeds=tuple(options.seeds(seeds)))


def run_demo(folder: Path, plan: Plan) -> Iterator[str | Text]:
    """Report the recorded study, then run the live one and report it.

    Yields lines to print, headlines in bold.
    """
    recorded = recorded_study(TABLE2)
    if recorded is not None:
        yield from report_lines(TITLE, recorded)
    yield f"{LIVE}; some minutes on two cores. {plan_sentence(plan)}"
    store = folder.absolute().parent / "trunks"
    if unpack_shipped(plan, store):
        yield f"The trunks come with Fallow, trained by {TRAINED_BY}."
    with StudyView(folder) as view:
        study = run_study(plan, folder, view, trunks=store)
    live = read_study_results(study.folder)
    yield ""
    yield from report_lines(LIVE, live)
    yield from trunk_sentences(plan, study.folder)
    yield from sentences(findings(live))
    yield ""
    yield from claim_lines(live)
    others = recorded_study(OTHER_SEEDS)
    if others is not None and plan == demo_plan():
        yield f"{OTHER_SEEDS_TITLE}:"
        yield from claim_lines(others)
    yield FAST_RECURRENCE
    yield f"Page: {write_demo_page(live, recorded)}"


def claim_lines(study: StudyResults) -> Iterator[Text]:
    """What a study shows of the demo's claims, in bold."""
    return (Text(line, style="bold") for line in claim_sentences(study))


def report_lines(title: str, study: StudyResults) -> Iterator[str | Text]:
    """A title, one headline a condition, and what the numbers are."""
    found = findings(study)
    yield f"{title}:"
    yield from (Text(line, style="bold") for line in headlines(found))
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
