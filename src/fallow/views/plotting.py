"""The style of every figure: colours, axes, and SVG for pages.

Colours become CSS variables in a page, so that one SVG serves light and dark.
`page.css` and `rule_styles` give every variable its two values. Text stays text.
"""

import html
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib import rc_context, style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

STYLE = Path(__file__).with_name("style.mplstyle")
WIDTH_IN, HEIGHT_IN = 4.6, 2.1
"""Legible at the width of a phone, two side by side on a desk."""
INK, AXIS, GRID, PAPER = "#1f2328", "#666666", "#e5e5e5", "#fffffe"
TRACE, STALE, FRESH, SHADE = "#2b6c99", "#d1662b", "#4b8b4b", "#8a9199"
VARIABLES = {
    INK: "--ink",
    AXIS: "--axis",
    GRID: "--grid",
    PAPER: "--paper",
    TRACE: "--trace",
    STALE: "--stale",
    FRESH: "--fresh",
    SHADE: "--shade",
}
PLAIN: Any = {"text.parse_math": False, "svg.hashsalt": "fallow"}
"""Dollar signs in names are no formulas, and equal figures have equal bytes."""
POINTS_PER_INCH = 72
"""SVG files of matplotlib are measured in points."""
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


@dataclass(frozen=True)
class SeriesStyle:
    """How a series is drawn: by colour, and in grey by dash and mark."""

    colour: str
    dash: Any = "-"
    marker: str = "o"
    hollow: bool = False

    def line(self) -> dict[str, Any]:
        """Arguments of `Axes.plot`."""
        return {
            "color": self.colour,
            "linestyle": self.dash,
            "marker": self.marker,
            "markersize": 4.5,
            "markerfacecolor": PAPER if self.hollow else self.colour,
        }


class HoverPoint(NamedTuple):
    """A text that a page shows while the pointer rests on a point."""

    axes: Axes
    x: float
    y: float
    text: str


class PageFigure(Figure):
    """A figure whose points show their values on a page."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.hover_points: list[HoverPoint] = []

    def add_hover(self, axes: Axes, x: float, y: float, text: str) -> None:
        """Show `text` at a point, in coordinates of the data."""
        self.hover_points.append(HoverPoint(axes, float(x), float(y), text))


@contextmanager
def styled() -> Iterator[None]:
    """The project's style, for drawing and for saving alike."""
    inks = ("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor")
    colours = {**dict.fromkeys(inks, INK), "xtick.color": AXIS, "ytick.color": AXIS}
    with style.context([STYLE, colours]), rc_context(PLAIN):
        yield


def one_axes(height_in: float) -> tuple[PageFigure, Axes]:
    """A new figure with one pair of axes; call it when styled."""
    figure = PageFigure(figsize=(WIDTH_IN, height_in))
    return figure, figure.add_subplot()


def legend_above(figure: Figure, *panels: Axes, columns: int = 4) -> None:
    """The series of all panels, each once, above the axes, where it covers nothing."""
    named: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    if named:
        figure.legend(
            list(named.values()),
            list(named),
            loc="outside upper left",
            ncols=min(columns, len(named)),
            fontsize=8.5,
            handlelength=2.6,
            columnspacing=1.2,
            borderpad=0.2,
        )


def thousands(value: float, _: Any = None) -> str:
    """40k for 40,000, as frames are written on axes."""
    return f"{value / 1000:g}k" if value else "0"


def settle(figure: Figure) -> None:
    """Lay a figure out once, which halves the time of saving it."""
    if figure.get_layout_engine() is not None:
        with styled():
            figure.draw_without_rendering()
        figure.set_layout_engine("none")


def plain_svg(figure: Figure) -> str:
    """A figure as an SVG element without background, in the colours of print."""
    settle(figure)
    file = io.StringIO()
    with styled():
        figure.savefig(file, format="svg", transparent=True, metadata=NO_METADATA)
    svg = file.getvalue()
    return svg[svg.index("<svg") :]


def hover_marks(figure: Figure) -> str:
    """SVG elements that show the hover points of a figure that was laid out."""
    if not isinstance(figure, PageFigure):
        return ""
    scale, height = POINTS_PER_INCH / figure.dpi, figure.get_figheight()
    marks = []
    for point in figure.hover_points:
        x, y = scale * point.axes.transData.transform((point.x, point.y))
        place = f'cx="{x:.1f}" cy="{POINTS_PER_INCH * height - y:.1f}"'
        title = f"<title>{html.escape(point.text)}</title>"
        marks.append(f'<circle class="hover" {place} r="6">{title}</circle>')
    return "".join(marks)


def for_page(
    svg: str, label: str, variables: Mapping[str, str] = VARIABLES, marks: str = ""
) -> str:
    """An SVG element for a page: colours as CSS variables, a label for screen readers.

    `marks` are elements to draw on top.
    """
    for colour, variable in variables.items():
        svg = svg.replace(colour, f"var({variable})")
    label = html.escape(label, quote=True)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    end = svg.rindex("</svg>")
    return svg[:end] + marks + svg[end:]


def as_svg(figure: Figure, label: str) -> str:
    """A figure as an SVG element for a page."""
    return for_page(plain_svg(figure), label)
