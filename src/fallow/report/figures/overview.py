"""The learning loop and two rules in one diagram (after the paper's Fig. 1)."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from fallow.report.names import rule_name
from fallow.views.plotting import (
    AXIS,
    FRESH,
    INK,
    PAPER,
    SHADE,
    STALE,
    WIDTH_IN,
    styled,
)
from fallow.views.rule_styles import rule_colour, rule_style

HEIGHT_IN = 4.0
N_BLOCKS = 12
CHANGE = 7
"""Of the blocks of history, so many are older than the change."""
BEGIN, WIDTH = 0.95, 8.95
"""Of a history, in units of the diagram, which is 10 wide."""


def overview() -> Figure:
    """The loop of learning above; below, which data two rules use after a change."""
    with styled():
        figure = Figure(figsize=(WIDTH_IN * 1.25, HEIGHT_IN))
        axes = figure.add_subplot()
        axes.set(xlim=(0, 10), ylim=(0.2, 8.15), xticks=[], yticks=[])
        axes.grid(False)
        for side in axes.spines.values():
            side.set_visible(False)
        _loop(axes)
        _histories(axes)
        return figure


def _loop(axes: Axes) -> None:
    _box(axes, 0.1, 6.3, 2.1, "robot", "its body changes")
    _box(axes, 2.75, 6.3, 2.1, "history", "all that was stored")
    _box(axes, 5.4, 6.3, 2.1, "rule", "what is sampled", rule_colour("recency"))
    _box(axes, 8.05, 6.3, 1.85, "agent", "model and policy")
    for begin in (2.2, 4.85, 7.5):
        _arrow(axes, (begin, 6.85), (begin + 0.55, 6.85))
    _arrow(axes, (8.95, 6.25), (1.15, 6.25), bend=-0.12)
    axes.text(5.0, 5.3, "acts", ha="center", va="center", fontsize=9, color=AXIS)
    _arrow(axes, (3.8, 7.45), (6.45, 7.45), bend=-0.25)
    text = "response of the actuators: did they change, and should old data go?"
    axes.text(5.1, 8.02, text, ha="center", va="center", fontsize=8.5, color=INK)


def _histories(axes: Axes) -> None:
    """A change that stays, and one that comes and goes, each with two rules."""
    stays = [block < CHANGE for block in range(N_BLOCKS)]
    comes_and_goes = [block < CHANGE or block in (8, 10) for block in range(N_BLOCKS)]
    fresh_again = [not old for old in comes_and_goes]
    fresh_again[-1] = False
    _history(axes, 3.15, stays, "the change stays: old data is stale")
    _history(axes, 0.95, fresh_again, "the change comes and goes: old data fits again")


def _history(axes: Axes, y: float, stale: list[bool], title: str) -> None:
    size = WIDTH / N_BLOCKS
    axes.text(BEGIN, y + 1.0, title, fontsize=9.5, color=INK, va="center")
    for block, is_stale in enumerate(stale):
        colour = STALE if is_stale else FRESH
        place = (BEGIN + block * size, y)
        box = Rectangle(
            place, size * 0.9, 0.6, facecolor=colour, linewidth=0, alpha=0.8
        )
        box.set_hatch("////" if is_stale else "")
        box.set_edgecolor(PAPER)  # of the hatch
        axes.add_patch(box)
    change = BEGIN + CHANGE * size - 0.04
    axes.plot([change, change], [y - 0.1, y + 0.75], color=INK, linewidth=1.4)
    _bracket(axes, BEGIN, BEGIN + WIDTH, y - 0.16, "passive")
    _bracket(axes, BEGIN + (N_BLOCKS - 2) * size, BEGIN + WIDTH, y - 0.42, "recency")


def _bracket(axes: Axes, left: float, right: float, y: float, rule: str) -> None:
    style = rule_style(rule)
    line: dict[str, Any] = {"color": style.colour, "linewidth": 2.2}
    axes.plot([left, right - 0.08], [y, y], linestyle=style.dash, **line)
    text: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": 8.5}
    axes.text(left - 0.08, y, rule_name(rule), color=style.colour, **text)


def _box(
    axes: Axes,
    x: float,
    y: float,
    width: float,
    title: str,
    text: str,
    colour: str = SHADE,
) -> None:
    box = FancyBboxPatch(
        (x + 0.08, y + 0.08),
        width - 0.16,
        0.94,
        boxstyle="round,pad=0.08",
        facecolor=colour,
        alpha=0.16,
        edgecolor="none",
    )
    axes.add_patch(box)
    middle = x + width / 2
    axes.text(middle, y + 0.76, title, ha="center", va="center", weight="bold")
    axes.text(middle, y + 0.32, text, ha="center", va="center", fontsize=8, color=AXIS)


def _arrow(
    axes: Axes, begin: tuple[float, float], end: tuple[float, float], bend: float = 0.0
) -> None:
    style = f"arc3,rad={bend}"
    arrow = FancyArrowPatch(
        begin,
        end,
        arrowstyle="-|>",
        mutation_scale=10,
        connectionstyle=style,
        color=AXIS,
        linewidth=1.3,
    )
    axes.add_patch(arrow)
