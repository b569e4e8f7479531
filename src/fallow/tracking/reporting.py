"""What a tracker reports of its state."""

from typing import TYPE_CHECKING

from fallow.tracking.update import TrackerUpdate

if TYPE_CHECKING:
    from fallow.tracking.tracker import Tracker

MAX_ERROR = 0.15
"""Half width of an interval up to which gains count as calibrated."""


def report(tracker: "Tracker", before: dict[int, int], note: str) -> TrackerUpdate:
    """The update after an episode; `before` has the labels that it may have changed."""
    regime = tracker.regime
    low, high = regime.interval(tracker.spread)
    labels = tracker.label_list
    return TrackerUpdate(
        episode=max(tracker.n_episodes - (not tracker.blocks), 0),
        state=_state(tracker, note),
        regime=regime.id,
        probabilities=tracker.suspicion.probabilities(regime, len(tracker.regimes)),
        gain=regime.gain.copy(),
        gain_low=low,
        gain_high=high,
        calibrated=regime.is_gain and float((high - low).max()) <= 2 * MAX_ERROR,
        relabelled=tuple(
            (e, labels[e]) for e, was in before.items() if labels[e] != was
        ),
        note=note,
    )


def _state(tracker: "Tracker", note: str) -> str:
    if tracker.scaling is None:
        return "warming_up"
    if note.startswith("changed"):
        return "changed"
    if tracker.held:
        return "suspicious"
    return "settled" if tracker.regime.is_gain else "unexplained"
