"""Which regime trackers reported over a run, against the truth."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from fallow.agents.beliefs import Belief
from fallow.dynamics.tasks import EPISODE_FRAMES
from fallow.report.figures.report_figure import ReportFigure, file_name
from fallow.report.names import condition_name, condition_order, rule_name
from fallow.study.planned import PlannedBranch
from fallow.study.results import StudyResults
from fallow.views.plotting import (
    AXIS,
    FRESH,
    HEIGHT_IN,
    INK,
    STALE,
    TRACE,
    legend_above,
    one_axes,
    styled,
)

MARKS = {"suspicious": (STALE, "^"), "unexplained": (INK, "x")}
"""Colour and marker of the states that are marked."""


def belief_figures(study: StudyResults) -> list[ReportFigure]:
    """One figure a condition and rule, of its first seed; none without trackers."""
    first = study.trunk_frames // EPISODE_FRAMES
    branches = [branch for branch in study.branches if branch.id in study.beliefs]
    groups: dict[tuple[str, str], list[PlannedBranch]] = {}
    for branch in sorted(branches, key=lambda one: condition_order(one.condition)):
        groups.setdefault((branch.condition, branch.rule), []).append(branch)
    return [
        _of_group(study, condition, rule, members, first)
        for (condition, rule), members in groups.items()
    ]


def _of_group(
    study: StudyResults,
    condition: str,
    rule: str,
    members: Sequence[PlannedBranch],
    first: int,
) -> ReportFigure:
    shares = [share_right(study.beliefs[branch.id], first) for branch in members]
    right = [100 * share for share in shares if share is not None]
    caption = f"{rule_name(rule)}, seed {members[0].seed}."
    if right:
        caption += (
            f" Right labels of the branch's episodes at its end, {len(right)} "
            f"seed{'' if len(right) == 1 else 's'}: {np.mean(right):.0f} % "
            f"({min(right):.0f} to {max(right):.0f})."
        )
    return ReportFigure(
        f"tracker-{file_name(f'{condition}-{rule}')}",
        condition_name(condition),
        caption,
        belief_figure(study.beliefs[members[0].id], first),
    )


def share_right(reports: Sequence[Belief], first: int) -> float | None:
    """Share of the episodes from `first` on whose final label is the true regime."""
    of_branch = [b for b in reports if b.episode >= first]
    if not of_branch:
        return None
    return sum(b.label == b.true_regime for b in of_branch) / len(of_branch)


def belief_figure(reports: Sequence[Belief], first: int) -> Figure:
    """Regimes over episodes: the truth as an area, the tracker's as a line."""
    episode = np.array([b.episode for b in reports])
    true = np.array([b.true_regime for b in reports])
    regime = np.array([b.regime for b in reports])
    top = max(int(true.max()), int(regime.max()), 1)
    with styled():
        figure, axes = one_axes(HEIGHT_IN)
        axes.fill_between(
            episode, 0, true, step="mid", color=FRESH, alpha=0.3, lw=0, label="truth"
        )
        axes.step(episode, regime, where="mid", color=TRACE, label="tracker")
        for state, (colour, marker) in MARKS.items():
            at = np.array([b.state == state for b in reports])
            if at.any():
                axes.plot(
                    episode[at],
                    np.full(int(at.sum()), top + 0.25),
                    linestyle="",
                    marker=marker,
                    markersize=3.5,
                    color=colour,
                    label=state,
                )
        axes.axvline(first, color=AXIS, linewidth=1, linestyle=(0, (2, 2)))
        axes.set(xlabel="episode, trunk included", ylabel="regime")
        axes.set_yticks(range(top + 1))
        axes.set_ylim(-0.15, top + 0.5)
        legend_above(figure, axes)
        return figure
