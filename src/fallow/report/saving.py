"""A figure as people take it along: SVG, PNG and PDF, the same bytes every time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from matplotlib.figure import Figure

from fallow.core import files
from fallow.views.plotting import plain_svg, styled

METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": dict.fromkeys(("Creator", "Producer", "CreationDate")),
}
"""What each format would say of when and by what it was made; left out."""
PNG_DPI = 200
SVG_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
SVG_PAPER = '<rect width="100%" height="100%" fill="#ffffff"/>'
"""What makes an SVG element a file of its own, on white as the others."""


@dataclass(frozen=True)
class Picture:
    """A figure with what is said of it."""

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
        """As an SVG element in the colours of print; drawn once."""
        return plain_svg(self.figure)


def save(picture: Picture, folder: Path) -> list[Path]:
    """Write a picture to `folder` in all three formats; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    end = picture.svg.index(">") + 1
    paper = f"{SVG_HEAD}{picture.svg[:end]}{SVG_PAPER}{picture.svg[end:]}"
    written = [folder / f"{picture.name}.svg"]
    files.write_text(written[0], paper)
    with styled():
        for ending, metadata in METADATA.items():
            path = folder / f"{picture.name}.{ending}"
            with files.write_atomic(path) as part:
                picture.figure.savefig(
                    part, format=ending, metadata=metadata, dpi=PNG_DPI
                )
            written.append(path)
    return written


def file_name(title: str) -> str:
    """Letters, digits and dashes only, for a file that any system takes."""
    kept = "".join(c if c.isascii() and c.isalnum() else "-" for c in title)
    return "-".join(filter(None, kept.lower().split("-"))) or "study"


def named_apart(pictures: Sequence[Picture]) -> list[Picture]:
    """The same pictures, those after the first of one name with a number at its end."""
    counts: dict[str, int] = {}
    found = []
    for picture in pictures:
        counts[picture.name] = count = counts.get(picture.name, 0) + 1
        name = picture.name if count == 1 else f"{picture.name}-{count}"
        found.append(replace(picture, name=name))
    return found
