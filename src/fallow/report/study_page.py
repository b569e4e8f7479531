"""A study as one self-contained page: no script, no font, no network."""

import base64
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from fallow.core import files
from fallow.core.progress import Track, untracked
from fallow.report import advantages, lived, pictures
from fallow.report.cells import ReportTable
from fallow.report.formats import write_tables
from fallow.report.lived import Shown
from fallow.report.missing import caveats, counted, missing
from fallow.report.overview import overview
from fallow.report.saving import Picture, named_apart, save
from fallow.report.tables import tables_of
from fallow.report.verdict import verdict
from fallow.study.named import STUDIES, held_study, is_like
from fallow.study.plan import PLAN_FILE
from fallow.study.results import StudyResults, read_study_results, together
from fallow.views.page import render_template
from fallow.views.plotting import for_page

TEMPLATE = Path(__file__).with_name("study_page.html")
PAGE, FIGURES, TABLES, TOGETHER = "report.html", "figures", "tables", "together"
ABOUT = re.compile(
    r"((?:[^`]*: )?(?:after|under) `[^`]*`|(?:[^`]*: )?with no change), (.*)",
    re.IGNORECASE,
)
"""How a sentence of a verdict begins: after `gain`, …"""
LEFT_OUT = ("Left out: ", "And ")
"""How a verdict's sentences on missing branches begin; the page lists them itself."""
RETURNS = "Return before and after the change"
HOW_TO_READ = {
    RETURNS: "ResultRow return of each rule. Lines are means over seeds, bands one "
    "standard error. The vertical line is the first change, shades are where the body "
    "is changed.",
    "Where forgetting pays": "The Recency advantage D: above 0 training on recent data "
    "only gave more return than training on all of it. Points are means over seeds of "
    "paired differences, bars one standard error.",
    "Bodies": "One training episode of two rules, simulated again from the histories, "
    "under the changed body.",
    "Stale data drawn": "Share of the drawn steps that came from a body other than the "
    "present one, as counted while training: 0 is all fresh, 1 is all stale.",
    "Old data drawn": "How old the steps are that each rule draws, averaged over the "
    "evaluations since the change and worked out again from the histories. Bins double "
    "in width from left to right; equal heights are equal shares.",
    "Could the robot have known?": "The actuator response K, the velocity that a unit "
    "of action brings, for each episode of a trunk and its Passive branch. Full lines "
    "are changes found from the data alone, dotted ones those recorded; orange is "
    "taken as stale, green as fresh. The first five episodes are read and not shown.",
    "Theory": "A bias–variance argument for when a window of recent data is better.",
    "The idea": "A robot keeps learning from its history, and a rule says what of it "
    "is drawn. Below are blocks of history, oldest left, hatched where stale for the "
    "present body, and what two rules draw from. When a change stays, recent data is "
    "fresh data; when it comes and goes, old data fits again.",
}
"""By the title of a section."""


@dataclass(frozen=True)
class Section:
    """A heading, a sentence on what is below it, and pictures."""

    title: str
    text: str
    pictures: Sequence[Picture] = ()
    films: Sequence[tuple[str, str, bytes]] = ()
    notes: Sequence[str] = ()
    tables: Sequence[ReportTable] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show or to say."""
        return not (self.pictures or self.films or self.notes)


@dataclass(frozen=True)
class Verdict:
    """What came out, in sentences, of one study."""

    title: str
    groups: Mapping[str, Sequence[str]]
    """By what they are about; those about everything are under an empty text."""
    caveats: Sequence[str] = ()
    progress: str = ""
    missing: Sequence[str] = ()


@dataclass(frozen=True)
class Content:
    """All that a page shows, in its order."""

    title: str
    about: str
    verdicts: Sequence[Verdict]
    tables: Sequence[ReportTable]
    sections: Sequence[Section]
    facts: Mapping[str, str] = field(default_factory=dict)
    plan: str = ""
    """The whole plan, as JSON."""
    commands: Sequence[str] = ()
    notes: Sequence[str] = ()


def write_report(
    folder: str | Path,
    until_frame: int | None = None,
    track: Track = untracked,
    also: Sequence[str | Path] = (),
) -> Path:
    """Write `report.html` into a study's folder, with its figures and tables beside it.

    With `also` those studies are reported together with it, in `together/`.

    Raises:
        FallowError: as `read_study_results` does, or studies that were not evaluated
            alike.
    """
    studies = [read_study_results(one, until_frame) for one in (folder, *also)]
    study, out = studies[0], studies[0].folder
    if also:
        study, out = together(studies), out / TOGETHER
    content = content_of(study)
    made = [*content.tables, *(t for s in content.sections for t in s.tables)]
    write_tables(made, out / TABLES, "table")
    return write_page(content, out / PAGE, track)


def write_page(content: Content, path: Path, track: Track = untracked) -> Path:
    """Save all pictures and films below the page's folder, and write the page."""
    figures = path.parent / FIGURES
    drawn = [picture for section in content.sections for picture in section.pictures]
    for picture in track(drawn, "drawing"):
        save(picture, figures)
    for section in content.sections:
        for name, _, film in section.films:
            with files.write_atomic(figures / f"{name}.webp") as part:
                part.write_bytes(film)
    files.write_text(path, render(content))
    return path


def render(content: Content) -> str:
    """The page; everything is escaped but the drawings."""
    return render_template(
        TEMPLATE,
        content=content,
        svg=lambda picture: Markup(
            for_page(picture.svg, picture.title or picture.name)
        ),
        quoted=quoted,
        breakable=breakable,
        webp=lambda film: base64.b64encode(film).decode(),
        folder=FIGURES,
    )


def quoted(text: str) -> Markup:
    """A sentence in which names between backticks are set as code; all is escaped."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    shown = [
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part)
        for place, part in enumerate(parts)
    ]
    return Markup("").join(shown)


def breakable(text: str) -> Markup:
    """A name that may go on in the next line after its signs; all is escaped."""
    parts = re.split(r"(?<=[:=,_])(?=\w)", text)
    return Markup("<wbr>").join(parts)


def content_of(study: StudyResults) -> Content:
    """Everything that there is to say of a study by now."""
    return Content(
        title=study.name,
        about=_about(study),
        verdicts=[verdict_of(study)],
        tables=tables(study),
        sections=[section for section in _sections(study) if not section.empty],
        facts=_facts(study),
        plan=json.dumps(study.plan.content(), indent=1) if study.plan else "",
        commands=_commands(study),
    )


def sentences(study: StudyResults) -> list[str]:
    """What came out, in plain words."""
    if not study.rows:
        return ["Nothing has been evaluated yet."]
    return verdict(study.rows, **study.protocol)


def verdict_of(study: StudyResults, title: str = "") -> Verdict:
    """Sentences on what came out, and on what is not there."""
    lines = sentences(study)
    return Verdict(
        title=title or study.name,
        groups=grouped([line for line in lines if not line.startswith(LEFT_OUT)]),
        caveats=caveats(study),
        progress=counted(study),
        missing=missing(study),
    )


def grouped(lines: Sequence[str]) -> dict[str, list[str]]:
    """Sentences by the condition that they begin with, which is then left out."""
    found: dict[str, list[str]] = {}
    for line in lines:
        match = ABOUT.fullmatch(line)
        about, rest = match.groups() if match else ("", line)
        found.setdefault(about[:1].upper() + about[1:], []).append(rest)
    return found


def tables(study: StudyResults) -> list[ReportTable]:
    """The tables of a study, in the paper's layout where it is one of the paper's."""
    if not study.rows:
        return []
    name = study.name if study.plan is None else held_study(study.plan)
    return tables_of(study.rows, name, **study.protocol)


def _sections(study: StudyResults) -> list[Section]:
    def seen(title: str, shown: Shown) -> Section:
        rest = (shown.films, shown.notes, shown.tables)
        return Section(title, HOW_TO_READ[title], named_apart(shown.pictures), *rest)

    found = (
        (RETURNS, Shown(pictures.return_pictures(study))),
        ("Where forgetting pays", Shown(advantages.sweep_pictures(study))),
        ("Bodies", lived.scenes(study)),
        ("Stale data drawn", Shown(pictures.stale_pictures(study))),
        ("Old data drawn", lived.ages_drawn(study)),
        ("Could the robot have known?", lived.responses(study)),
        ("Theory", Shown(advantages.theory_pictures(study))),
        ("The idea", Shown([Picture("overview", "", "", overview())])),
    )
    return [seen(title, shown) for title, shown in found]


def _about(study: StudyResults) -> str:
    def names(kind: str) -> str:
        return ", ".join(dict.fromkeys(str(getattr(r, kind)) for r in study.rows))

    if not study.rows:
        return ""
    n_seeds = len({row.seed for row in study.rows})
    seeds = f"{n_seeds} seed{'' if n_seeds == 1 else 's'}"
    return f"{names('task')} · {names('agent')} · preset {names('preset')} · {seeds}"


def _facts(study: StudyResults) -> dict[str, str]:
    """Short values of the plan, and versions."""
    plan = {} if study.plan is None else study.plan.content()
    found = {
        key.replace("_", " "): _shown(value)
        for key, value in plan.items()
        if isinstance(value, str | int | float) or _is_row(value)
    }
    commit = study.made_with.get("git_commit")
    if commit:
        found["commit"] = str(commit)
    versions = study.made_with.get("versions")
    if isinstance(versions, dict):
        found["versions"] = ", ".join(f"{k} {v}" for k, v in versions.items())
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
    """What makes the study again, and its page."""
    plan, place = study.plan, study.folder.name or "."
    if plan is not None and plan.name in STUDIES and is_like(plan, plan.name):
        words = [plan.name, "--preset", plan.preset]
        if plan.seeds != STUDIES[plan.name].seeds:
            words += ["--seeds", ",".join(str(seed) for seed in plan.seeds)]
    else:
        words, place = [f"{place}/{PLAN_FILE}"], f"{place}-again"
    study_words = ["fallow", "study", *words, "--out", place]
    page_words = ["fallow", "report", place]
    if study.until_frame is not None:
        page_words += ["--until", str(study.until_frame)]
    return [shlex.join(study_words), shlex.join(page_words)]
