"""Tracked regimes as a section of a page, or as a page."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from fallow.diagnosis import regime_figures as figures
from fallow.diagnosis.regime_phrases import (
    gains_table,
    regimes_table,
    summary,
    too_short,
)
from fallow.diagnosis.regimes import Regimes
from fallow.views.page import render_template
from fallow.views.plotting import as_svg

FOLDER = Path(__file__).parent
MOST_JOINTS = 12
"""Gains drawn; of more actuators, those that changed most."""


def section(found: Regimes, true_changes: tuple[int, ...] = ()) -> Markup:
    """A fragment of HTML: tables of regimes and gains, and both over episodes."""
    template = FOLDER / "regimes.html"
    if not found.is_ready:
        text = render_template(template, regimes=None, reason=f"{too_short(found)}.")
        return Markup(text)
    joints = figures.drawn_joints(found, MOST_JOINTS)
    strip = figures.regimes_figure(found, true_changes)
    drawn = [as_svg(strip, "the regime in force over episodes")]
    drawn += [
        as_svg(figures.gain_figure(found, j), f"gain of {found.actuators[j]}")
        for j in joints
    ]
    text = render_template(
        template,
        regimes=regimes_table(found),
        gains=gains_table(found),
        figures=[Markup(figure) for figure in drawn],
        has_truth=bool(true_changes),
        n_hidden=len(found.actuators) - len(joints) if joints else 0,
    )
    return Markup(text)


def render(found: Regimes, opening: str, events: Sequence[str], n_bad: int = 0) -> str:
    """The page of `fallow track`."""
    return render_template(
        FOLDER / "track.html",
        opening=opening,
        summary=summary(found, n_bad),
        discards=found.is_ready and found.discards,
        section=section(found),
        events=events,
    )
