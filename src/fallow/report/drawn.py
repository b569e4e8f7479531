"""What each rule draws: ages, worked out again from histories, and the stale share.

A history says when every step was stored and under which regime, which is all that a
rule reads of most steps. So the book of a branch can be kept again without a byte of
it, and asked at any frame. Rules that weigh by the model's error cannot be.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fallow.core.errors import FallowError
from fallow.core.records import Episode
from fallow.logs.history import History
from fallow.replay.composition import AGE_EDGES, of_spans
from fallow.replay.ledger import Ledger
from fallow.replay.rules import Rule
from fallow.replay.sampler import Sampler
from fallow.report.names import rule_name, rule_order
from fallow.views.plotting import (
    legend_above,
    looks,
    one_axes,
    styled,
    thousands,
)

CAPACITY_TRANSITIONS = 1_000_000
"""Of the paper's buffer; no branch stores as many."""
AGE_HEIGHT_IN = 2.6


@dataclass(frozen=True)
class Ages:
    """Of what age the steps are that a rule draws."""

    age_frames: np.ndarray  # (b + 1,), edges of bins, in frames of the agent
    share: np.ndarray  # (b,), of drawn steps
    stale_share: float | None
    """Share of steps from other regimes than the present one, where there are any."""


def can_tell(rule: str) -> bool:
    """Whether what a rule draws follows from a history alone."""
    parsed = Rule.parse(rule)
    return not (parsed.needs_errors or parsed.needs_visits)


def drawn_ages(
    trunk: History | None, branch: History, rule: str, frames: Sequence[int]
) -> Ages:
    """Ages of what `rule` would draw, averaged over frames of the agent's clock.

    The rule begins with the branch; the trunk, if any, was stored before it.

    Raises:
        FallowError: the rule weighs by errors, no frame is in the history, or its
            worlds do not step together.
    """
    if not can_tell(rule):
        raise FallowError(
            f"rule '{rule}' weighs steps by the model's error or its visits, which no "
            "history holds; look at the stale share that was recorded"
        )
    frames_per_step = branch.header.frames_per_step
    wanted = sorted(set(frames))
    episodes = [*(trunk.episodes if trunk else ()), *branch.episodes]
    ledger = Ledger(1 + max(e.world for e in episodes), CAPACITY_TRANSITIONS)
    sampler = Sampler(ledger, rule)
    found = []
    for frame in _kept_again(ledger, sampler, episodes, frames_per_step):
        while wanted and wanted[0] <= frame:
            found.append(of_spans(ledger, sampler.parts()))
            wanted.pop(0)
        if not wanted:
            break
    if not found:
        raise FallowError(
            f"the history ends before frame {min(frames, default=0):,}; choose an "
            "earlier one"
        )
    histogram = np.mean([one.age_histogram for one in found], axis=0)
    stale = [one.stale_share for one in found if one.stale_share is not None]
    last = int(np.flatnonzero(histogram)[-1])
    edges = np.append(AGE_EDGES, 2 * AGE_EDGES[-1])[: last + 2]
    return Ages(
        age_frames=edges * frames_per_step,
        share=histogram[: last + 1],
        stale_share=float(np.mean(stale)) if stale else None,
    )


def _kept_again(
    ledger: Ledger, sampler: Sampler, episodes: Sequence[Episode], frames_per_step: int
) -> Iterator[int]:
    """Store all steps as a fleet does; yields the clock after each transition."""
    groups = _together(episodes, ledger.n_worlds)
    for index, group in enumerate(groups):
        regime = group[0].regime
        for step in range(group[0].n_transitions + 1):
            ledger.advance_all([step == 0] * ledger.n_worlds, sampler.victim)
            if regime is None:
                now = after = None
            else:
                now = int(regime[max(step - 1, 0)])
                after = int(regime[min(step, len(regime) - 1)])
                if step == len(regime) and index + 1 < len(groups):
                    following = groups[index + 1][0].regime
                    after = now if following is None else int(following[0])
            if now is not None and now != ledger.present_regime:
                sampler.set_present_regime(now)
            if step and after is not None and after != now:
                ledger.note_change()
            if step:
                yield group[0].start_frame + step * frames_per_step


def _together(episodes: Sequence[Episode], n_worlds: int) -> list[list[Episode]]:
    """Episodes of all worlds that ran at once, in order of time.

    The last ones are left out where a run ended before all worlds had written theirs.
    """
    by_start: dict[int, list[Episode]] = {}
    for episode in episodes:
        by_start.setdefault(episode.start_frame, []).append(episode)
    groups = [sorted(by_start[s], key=lambda e: e.world) for s in sorted(by_start)]
    if len(groups[-1]) < n_worlds:
        groups.pop()
    lengths = {len(g) for g in groups} | {e.world + 1 for g in groups for e in g[-1:]}
    if lengths != {n_worlds} or any(
        len({e.n_transitions for e in group}) > 1 for group in groups
    ):
        raise FallowError(
            "the worlds of this history do not begin and end their episodes together, "
            "so what was drawn cannot be told from it"
        )
    return groups


def ages(by_rule: Mapping[str, Ages]) -> Figure:
    """The share of drawn steps by their age, one outline for each rule."""
    with styled():
        figure, axes = one_axes(AGE_HEIGHT_IN)
        rules = sorted(by_rule, key=rule_order)
        look = looks(rules)
        for rule in rules:
            one, style = by_rule[rule], look[rule]
            centre = np.sqrt(np.maximum(one.age_frames[:-1], 1) * one.age_frames[1:])
            name = rule_name(rule)
            axes.plot(centre, 100 * one.share, label=name, **style.line())
        axes.set(xscale="log", xlabel="age of a drawn step, in frames")
        axes.set(ylabel="share of draws [%]", ylim=(0, None))
        axes.xaxis.set_major_formatter(FuncFormatter(_frames))
        legend_above(figure, axes, columns=3)
        return figure


def _frames(value: float, _: object = None) -> str:
    return thousands(value) if value >= 1000 else f"{value:g}"
