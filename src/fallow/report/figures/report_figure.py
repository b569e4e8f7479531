"""A figure with its title and caption, and its SVG, PNG and PDF files."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from matplotlib.figure import Figure

from fallow.core import files
from fallow.views.plotting import (
    VARIABLES,
    for_page,
    hover_marks,
    plain_svg,
    styled,
)
from fallow.views.rule_styles import colour_variables

METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": dict.fromkeys(("Creator", "Producer", "CreationDate")),
}
"""Metadata that is left out, so that equal figures have equal bytes."""
PNG_DPI = 200
SVG_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
SVG_PAPER = '<rect width="100%" height="100%" fill="#ffffff"/>'
"""White background of an SVG file, as PNG and PDF have."""


@dataclass(frozen=True)
class ReportFigure:
    """A figure with its file name, title and caption."""

    name: str
    """Of its files, without ending."""
    title: str
    caption: str
    """How to read it."""
    figure: Figure
    wide: bool = False
    """Whether it needs the whole width of a page."""

    @cached_property
    def svg(self) -> str:
        """As an SVG element in the colours of print; rendered once."""
        return plain_svg(self.figure)

    @property
    def page_svg(self) -> str:
        """As an SVG element for a page, with values to hover over."""
        svg, variables = self.svg, VARIABLES | colour_variables()
        label = self.title or self.name
        return for_page(svg, label, variables, hover_marks(self.figure))


def save(shown: ReportFigure, folder: Path) -> list[Path]:
    """Write a figure to `folder` in all three formats; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    end = shown.svg.index(">") + 1
    paper = f"{SVG_HEAD}{shown.svg[:end]}{SVG_PAPER}{shown.svg[end:]}"
    written = [folder / f"{shown.name}.svg"]
    files.write_text(written[0], paper)
    with styled():
        for ending, metadata in METADATA.items():
            path = folder / f"{shown.name}.{ending}"
            with files.write_atomic(path) as part:
                shown.figure.savefig(
                    part, format=ending, metadata=metadata, dpi=PNG_DPI
                )
            written.append(path)
    return written


def file_name(title: str) -> str:
    """Letters, digits and dashes only, for a file that any system takes."""
    kept = "".join(c if c.isascii() and c.isalnum() else "-" for c in title)
    return "-".join(filter(None, kept.lower().split("-"))) or "study"


def unique_names(figures: Sequence[ReportFigure]) -> list[ReportFigure]:
    """The same figures; those after the first of one name get a number at its end."""
    counts: dict[str, int] = {}
    found = []
    for shown in figures:
        counts[shown.name] = count = counts.get(shown.name, 0) + 1
        name = shown.name if count == 1 else f"{shown.name}-{count}"
        found.append(replace(shown, name=name))
    return found
