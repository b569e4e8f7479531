"""Whether to keep the old data: the tracker's verdict, checked against the response."""

from collections.abc import Sequence

import numpy as np

from fallow.diagnosis.joints import JointResponse
from fallow.diagnosis.pipeline import Diagnosis
from fallow.diagnosis.regimes import Regimes
from fallow.diagnosis.segments import Segment
from fallow.replay.staleness import interval_auc

MOST_LOST = 1.1
"""The largest share of a response that can be lost. A dead actuator loses 1, and
coupling between joints leaves it a response of either sign; beyond that the sign has
changed."""


def recommendation(diagnosis: Diagnosis) -> str:
    """`keep` all episodes, `discard` some, or `check` before you decide.

    It rests on the tracker: episodes of another regime than that in force are
    discarded. `check` where an actuator may be reversed, or where the tracker sees one
    regime and the response says that the old data should go. Without a tracker, or in a
    log too short for it, it is `by_response`.
    """
    found = diagnosis.regimes
    if found is None or not found.is_ready:
        return by_response(diagnosis)
    if reversed_joints(diagnosis):
        return "check"
    if found.discards:
        return "discard"
    contradicted = by_response(diagnosis) == "discard" or hidden_loss(diagnosis)
    return "check" if contradicted else "keep"


def by_response(diagnosis: Diagnosis) -> str:
    """`keep`, `discard`, or `check` where the selector and the joints disagree.

    They disagree if the selector discards although the response did not change abruptly
    or is back where it was, if it keeps although a joint lost, between the older data
    and the newer, as much as the gate asks of the mean, and if an actuator may be
    reversed.
    """
    if reversed_joints(diagnosis):
        return "check"
    if diagnosis.decision.discard:
        return "discard" if diagnosis.stretches[0].stale else "check"
    return "check" if hidden_loss(diagnosis) else "keep"


def state(joint: JointResponse) -> str:
    """The state of an actuator, in one or two words."""
    if joint.now is None:
        return "not commanded"
    if not joint.changed:
        return ""
    beyond = joint.interval is not None and joint.interval[0] > MOST_LOST
    return "changed its sign" if beyond else "changed"


def drift(diagnosis: Diagnosis) -> float:
    """Relative range of the mean response between two abrupt changes, at most."""
    inside = (
        [s for s in diagnosis.segments if stretch.start <= s.start < stretch.stop]
        for stretch in diagnosis.stretches
    )
    return max(relative_range(segments) for segments in inside)


def relative_range(segments: Sequence[Segment]) -> float:
    """Largest difference of mean responses, relative to the largest of them."""
    responses = [segment.response for segment in segments]
    largest = max(abs(response) for response in responses)
    return (max(responses) - min(responses)) / largest if largest > 0 else 0.0


def reversed_joints(diagnosis: Diagnosis) -> bool:
    """Whether the response of some joint changed its sign, and its gain may have.

    A policy that adapts to a new body can change the sign of a response. The tracker
    separates the two: the sign of a gain whose interval is above 0 did not change.
    """
    signs = [j for j in diagnosis.joints if state(j) == "changed its sign"]
    return any(not _gain_is_positive(diagnosis.regimes, joint) for joint in signs)


def _gain_is_positive(found: Regimes | None, joint: JointResponse) -> bool:
    """Whether the tracker knows the gain of a joint in a changed body, and its sign."""
    if found is None or not found.is_ready or not found.in_force:
        return False
    regime = found.regime(found.in_force)
    return regime.explained and bool(regime.low[joint.index] > 0)


def hidden_loss(diagnosis: Diagnosis) -> bool:
    """Whether some joint lost as much as the gate asks, and the older data is stale."""
    log, gate = diagnosis.log, diagnosis.decision.magnitude.threshold
    stale = np.zeros(log.n_episodes, bool)
    for stretch in diagnosis.stretches:
        stale[stretch.start : stretch.stop] = stretch.stale
    auc = interval_auc(log.start_step, log.end_step, stale)
    if auc is None or auc < diagnosis.decision.auc.threshold:
        return False
    return any(j.changed and (j.lost or 0.0) >= gate for j in diagnosis.joints)
