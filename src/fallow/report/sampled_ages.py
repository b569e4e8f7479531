"""Ages of the steps that a rule samples, reconstructed from histories.

A history records when every step was stored and under which regime, which is all that
most rules read. So the ledger of a branch can be rebuilt without its data and queried
at any frame. Rules that weigh by the model's error cannot be reconstructed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fallow.core.errors import FallowError
from fallow.core.records import Episode
from fallow.logs.history import History
from fallow.replay.composition import AGE_EDGES, of_spans
from fallow.replay.ledger import Ledger
from fallow.replay.rules import Rule
from fallow.replay.sampler import Sampler

CAPACITY_TRANSITIONS = 1_000_000
"""Of the paper's buffer; no branch stores more."""


@dataclass(frozen=True)
class SampledAges:
    """Distribution of the ages of the steps that a rule samples."""

    age_frames: np.ndarray  # (b + 1,), edges of bins, in frames of the agent
    share: np.ndarray  # (b,), of sampled steps
    stale_share: float | None
    """Share of steps from other regimes than the present one, where there are any."""


def is_known(rule: str) -> bool:
    """Whether what a rule samples follows from a history alone."""
    parsed = Rule.parse(rule)
    return not (parsed.needs_errors or parsed.needs_visits or parsed.needs_tracker)


def sampled_ages(
    trunk: History | None, branch: History, rule: str, frames: Sequence[int]
) -> SampledAges:
    """Ages of what `rule` would sample, averaged over frames of the agent's clock.

    The rule begins with the branch; the trunk, if any, was stored before it.

    Raises:
        FallowError: histories do not hold what the rule weighs by, no frame is in the
            history, or its worlds do not step together.
    """
    if not is_known(rule):
        raise FallowError(
            f"rule '{rule}' weighs steps by the model's error, by visits or by a "
            "tracker's labels, which no history holds; read the recorded stale share "
            "instead"
        )
    frames_per_step = branch.header.frames_per_step
    wanted = sorted(set(frames))
    episodes = [*(trunk.episodes if trunk else ()), *branch.episodes]
    ledger = Ledger(1 + max(e.world for e in episodes), CAPACITY_TRANSITIONS)
    sampler = Sampler(ledger, rule)
    found = []
    for frame in _replayed(ledger, sampler, episodes, frames_per_step):
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
    return SampledAges(
        age_frames=edges * frames_per_step,
        share=histogram[: last + 1],
        stale_share=float(np.mean(stale)) if stale else None,
    )


def _replayed(
    ledger: Ledger, sampler: Sampler, episodes: Sequence[Episode], frames_per_step: int
) -> Iterator[int]:
    """Store all steps as a fleet does; yield the clock after each transition."""
    groups = _concurrent(episodes, ledger.n_worlds)
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


def _concurrent(episodes: Sequence[Episode], n_worlds: int) -> list[list[Episode]]:
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
            "so what was sampled cannot be reconstructed from it"
        )
    return groups
