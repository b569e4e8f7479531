"""The page of a study: findings first, then tables, figures, caveats and the plan."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fallow.core.progress import Track, untracked
from fallow.report.findings import findings
from fallow.report.findings_table import findings_table
from fallow.report.missing import caveats, missing_branches, progress
from fallow.report.page import Answer, PageContent, PageTable, Section, write_page
from fallow.report.phrases import headline_note, headlines, sentences
from fallow.report.sections import sections
from fallow.report.tables import study_tables
from fallow.study.named import STUDIES, is_like
from fallow.study.plan import PLAN_FILE
from fallow.study.results import StudyResults, read_study_results, together
from fallow.study.store import TABLE

PAGE, TOGETHER = "report.html", "together"
FINDINGS = "findings"
"""Name of the files of the findings' table."""


def write_report(
    folder: str | Path,
    until_frame: int | None = None,
    track: Track = untracked,
    also: Sequence[str | Path] = (),
    out: Path | None = None,
) -> Path:
    """Write `report.html` into a study's folder, with its figures and tables beside it.

    With `also` those studies are reported together with it, in `together/`. With `out`
    the page is in that folder, and links to no file of the study.

    Raises:
        FallowError: as `read_study_results` does, or studies that were not evaluated
            alike.
    """
    studies = [read_study_results(one, until_frame) for one in (folder, *also)]
    place = studies[0].folder / TOGETHER if also else studies[0].folder
    content = content_of(together(studies) if also else studies[0])
    if also or out is not None:
        content = replace(content, files=())
    return write_page(content, (out or place) / PAGE, track)


def content_of(study: StudyResults) -> PageContent:
    """Everything that the page of a study shows."""
    every = sections(study)
    answer = answer_of(study)
    tables = [PageTable(one) for one in study_tables(study)]
    shown = [section for section in every if not section.empty]
    notes = [note for section in every for note in section.notes]
    return PageContent(
        title=study.name,
        about=_about(study),
        answers=[answer],
        tables=_named(tables, 1),
        sections=_with_named_tables(shown, 1 + len(tables)),
        caveats=[*answer.caveats, *notes, *answer.missing],
        facts=_facts(study),
        plan=json.dumps(study.plan.content(), indent=1) if study.plan else "",
        commands=_commands(study),
        files=[n for n in (TABLE, PLAN_FILE) if (study.folder / n).exists()],
    )


def answer_of(study: StudyResults, title: str = "", name: str = FINDINGS) -> Answer:
    """A study's findings, and what is missing; `name` is that of its table's files."""
    found = findings(study)
    table = findings_table(found)
    return Answer(
        title=title or study.name,
        headlines=headlines(found) or sentences(found),
        note=headline_note(found),
        table=PageTable(table, name) if table.rows else None,
        progress=progress(study),
        missing=missing_branches(study),
        caveats=caveats(study),
    )


def _named(tables: Sequence[PageTable], first: int) -> list[PageTable]:
    """The same with files `table-1` and so on."""
    return [
        replace(one, name=f"table-{place}")
        for place, one in enumerate(tables, start=first)
    ]


def _with_named_tables(shown: Sequence[Section], first: int) -> list[Section]:
    found = []
    for section in shown:
        found.append(replace(section, tables=_named(section.tables, first)))
        first += len(section.tables)
    return found


def _about(study: StudyResults) -> str:
    def names(kind: str) -> str:
        return ", ".join(dict.fromkeys(str(getattr(r, kind)) for r in study.rows))

    if not study.rows:
        return progress(study)
    n_seeds = len({row.seed for row in study.rows})
    seeds = f"{n_seeds} seed{'' if n_seeds == 1 else 's'}"
    place = f"{names('task')} · {names('agent')} · preset {names('preset')}"
    return f"{place} · {seeds} · {progress(study)}"


def _facts(study: StudyResults) -> dict[str, str]:
    """Short values of the plan, and versions."""
    plan = {} if study.plan is None else study.plan.content()
    found = {
        key.removeprefix("n_").replace("_", " ").capitalize(): _shown(value)
        for key, value in plan.items()
        if isinstance(value, str | int | float) or _is_row(value)
    }
    commit = study.made_with.get("git_commit")
    if commit:
        found["Commit"] = str(commit)
    versions = study.made_with.get("versions")
    if isinstance(versions, dict):
        found["Versions"] = ", ".join(f"{k} {v}" for k, v in versions.items())
    return found


def _is_row(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(v, str | int) for v in value
    )


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(str(one) for one in value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _commands(study: StudyResults) -> list[str]:
    """Commands that run the study again, and report it."""
    plan, place = study.plan, study.folder.name or "."
    if plan is not None and plan.name in STUDIES and is_like(plan, plan.name):
        words = [plan.name, "--preset", plan.preset]
        if plan.seeds != STUDIES[plan.name].seeds:
            words += ["--seeds", ",".join(str(seed) for seed in plan.seeds)]
    else:
        words, place = [f"{place}/{PLAN_FILE}"], f"{place}-again"
    study_command = ["fallow", "study", *words, "--out", place]
    page_command = ["fallow", "report", place]
    if study.until_frame is not None:
        page_command += ["--until", str(study.until_frame)]
    return [shlex.join(study_command), shlex.join(page_command)]
