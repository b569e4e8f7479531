"""One self-contained page: its content as data, and its rendering.

No font, no network, and one short script, which the page's policy names by its hash.
"""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup

from fallow.core import files
from fallow.core.progress import Track, untracked
from fallow.report.cells import ReportTable
from fallow.report.figures.report_figure import ReportFigure, save
from fallow.report.formats import FORMATS, write_table
from fallow.views.page import render_template
from fallow.views.rule_styles import colour_sheet

TEMPLATE = Path(__file__).with_name("page.html")
SCRIPT = Path(__file__).with_name("page.js")
FIGURES, TABLES = "figures", "tables"
"""Folders beside a page."""


@dataclass(frozen=True)
class PageTable:
    """A table of a page."""

    table: ReportTable
    name: str = ""
    """Of its files in `tables/`, without ending; empty: it has none."""


@dataclass(frozen=True)
class Film:
    """An animated WebP."""

    name: str
    """Of its file in `figures/`, without ending."""
    caption: str
    webp: bytes


@dataclass(frozen=True)
class Section:
    """A heading, a sentence on how to read it, figures, films and tables."""

    title: str
    text: str
    figures: Sequence[ReportFigure] = ()
    films: Sequence[Film] = ()
    tables: Sequence[PageTable] = ()
    notes: Sequence[str] = ()
    """What could not be shown, and why."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.figures or self.films or self.tables)


@dataclass(frozen=True)
class Answer:
    """The findings of one study."""

    title: str
    headlines: Sequence[str]
    """One for each setting."""
    note: str = ""
    """How to read them."""
    table: PageTable | None = None
    progress: str = ""
    """How many branches are finished."""
    missing: Sequence[str] = ()
    """Branches that are in no mean, and why."""
    caveats: Sequence[str] = ()


@dataclass(frozen=True)
class PageContent:
    """Everything that a page shows, in its order."""

    title: str
    about: str
    answers: Sequence[Answer]
    tables: Sequence[PageTable] = ()
    sections: Sequence[Section] = ()
    caveats: Sequence[str] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    plan: str = ""
    """The whole plan, as JSON."""
    commands: Sequence[str] = ()
    files: Sequence[str] = ()
    """Names of further files beside the page."""

    @property
    def all_tables(self) -> list[PageTable]:
        """Those of answers and sections too."""
        first = [answer.table for answer in self.answers if answer.table is not None]
        return [*first, *self.tables, *(t for s in self.sections for t in s.tables)]


def write_page(content: PageContent, path: Path, track: Track = untracked) -> Path:
    """Write a page, with its figures, films and tables in folders beside it."""
    folder = path.parent
    for shown in content.all_tables:
        if shown.name:
            write_table(shown.table, folder / TABLES, shown.name)
    figures = [figure for section in content.sections for figure in section.figures]
    for figure in track(figures, "figures"):
        save(figure, folder / FIGURES)
    for film in (film for section in content.sections for film in section.films):
        with files.write_atomic(folder / FIGURES / f"{film.name}.webp") as part:
            part.write_bytes(film.webp)
    files.write_text(path, render(content))
    return path


def render(content: PageContent) -> str:
    """The page as HTML; everything is escaped but the figures."""
    script = SCRIPT.read_text(encoding="utf-8")
    digest = hashlib.sha256(script.encode()).digest()
    return render_template(
        TEMPLATE,
        content=content,
        svg=lambda figure: Markup(figure.page_svg),
        breakable=breakable,
        unbroken=unbroken,
        webp=lambda film: base64.b64encode(film.webp).decode(),
        rule_sheet=Markup(colour_sheet()),
        script=Markup(script),
        script_hash=base64.b64encode(digest).decode(),
        figures=FIGURES,
        tables=TABLES,
        table_formats=list(FORMATS),
    )


def unbroken(text: str) -> str:
    """A text that wraps neither before a signed number nor inside a hyphenated word."""
    text = re.sub(r" (?=[+-]\d)", "\u00a0", text)
    return re.sub(r"(?<=\w)-(?=\w)", "\u2011", text)


def breakable(text: str) -> Markup:
    """A name that may wrap after its punctuation; everything is escaped.

    A number stays beside its %.
    """
    parts = re.split(r"(?<=[:=,_])(?=\w)", text.replace(" %", "\u00a0%"))
    return Markup("<wbr>").join(parts)
