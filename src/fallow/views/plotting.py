"""One look for every figure: the style, the colours, and a figure as a page's SVG.

Colours become CSS variables in a page, so that one drawing serves light and dark; text
stays text. `page.css` gives every variable its two values.
"""

import html
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
"""A name with a dollar sign is no formula; the same drawing has the same bytes."""
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


@dataclass(frozen=True)
class Look:
    """How a series is drawn: told apart by colour, and without it by dash and mark."""

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


RULE_LOOKS = {
    "passive": Look("#0072b2", "-", "o"),
    "recency": Look("#d55e00", "--", "s"),
    "graded": Look("#009e73", "-.", "^"),
    "wmar": Look("#c2619a", (0, (5, 1, 1, 1, 1, 1)), "D"),
    "reservoir": Look("#b07c00", ":", "v"),
    "reset": Look("#7d5ba6", (0, (7, 2)), "P"),
    "matched": Look("#4f6d7a", (0, (3, 1)), "X"),
    "curious": Look("#a3273f", (0, (1, 1)), "*"),
}
VARIABLES |= {look.colour: f"--{rule}" for rule, look in RULE_LOOKS.items()}
OTHER_LOOKS = (
    Look(AXIS, "-", "<"),
    Look(INK, "--", ">"),
    Look(TRACE, ":", "h"),
    Look(STALE, "-.", "d"),
)
HOLLOW_DASH = (0, (2, 1.5))
"""Of a rule with options of its own, whose marks are hollow as well."""


def looks(rules: list[str]) -> dict[str, Look]:
    """A look for each of some rules; a rule with options is the plain one's, hollow."""
    found: dict[str, Look] = {}
    spare = iter(OTHER_LOOKS * (1 + len(rules)))
    taken: set[str] = set()
    for rule in rules:
        name = options_free(rule)
        base = RULE_LOOKS.get(name)
        if base is None:
            found[rule] = next(spare)
        elif rule == name:
            found[rule] = base
        else:
            dash = (0, (1, 2)) if name in taken else HOLLOW_DASH
            taken.add(name)
            found[rule] = Look(base.colour, dash, base.marker, hollow=True)
    return found


def options_free(text: str) -> str:
    """`recency` of `recency:window_transitions=20000`."""
    return text.partition(":")[0]


@contextmanager
def styled() -> Iterator[None]:
    """The project's style, for drawing and for saving alike."""
    inks = ("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor")
    own = {**dict.fromkeys(inks, INK), "xtick.color": AXIS, "ytick.color": AXIS}
    with style.context([STYLE, own]), rc_context(PLAIN):
        yield


def one_axes(height_in: float, width_in: float = WIDTH_IN) -> tuple[Figure, Axes]:
    """A new figure with one pair of axes, in inches; call it when styled."""
    figure = Figure(figsize=(width_in, height_in))
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
    """Lay a figure out once for all, so that saving it takes half as long."""
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
    drawn = file.getvalue()
    return drawn[drawn.index("<svg") :]


def for_page(drawn: str, label: str) -> str:
    """The same for a page: colours as CSS variables, and a label for who cannot see."""
    for colour, variable in VARIABLES.items():
        drawn = drawn.replace(colour, f"var({variable})")
    label = html.escape(label, quote=True)
    return drawn.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def as_svg(figure: Figure, label: str) -> str:
    """A figure as an SVG element for a page."""
    return for_page(plain_svg(figure), label)
