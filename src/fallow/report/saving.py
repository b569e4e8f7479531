"""A figure as people take it along: SVG, PNG and PDF, the same bytes every time."""

from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from fallow.report.drawing import NO_METADATA, styled

METADATA: dict[str, dict[str, None]] = {
    "svg": NO_METADATA,
    "png": {"Software": None},
    "pdf": dict.fromkeys(("Creator", "Producer", "CreationDate")),
}
"""What each format would say of when and by what it was made; left out."""
PNG_DPI = 200


@dataclass(frozen=True)
class Picture:
    """A figure with what is said of it."""

    name: str
    """Of its files, without ending."""
    title: str
    caption: str
    """How to read it."""
    figure: Figure


def save(picture: Picture, folder: Path) -> list[Path]:
    """Write a picture to `folder` in all three formats; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    with styled():
        for ending, metadata in METADATA.items():
            path = folder / f"{picture.name}.{ending}"
            picture.figure.savefig(path, metadata=metadata, dpi=PNG_DPI)
            files.append(path)
    return files
