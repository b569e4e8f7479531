"""A diagnosis in sentences."""

from collections.abc import Sequence

import numpy as np

from fallow.core.text import sentence
from fallow.diagnosis import regime_phrases
from fallow.diagnosis.changes import SMALL_EFFECT
from fallow.diagnosis.decision import Decision
from fallow.diagnosis.joints import JointResponse
from fallow.diagnosis.pipeline import Diagnosis
from fallow.diagnosis.recommendation import (
    drift,
    hidden_loss,
    recommendation,
    relative_range,
    reversed_joints,
    state,
)
from fallow.logs.log import Log
from fallow.views.numbers import listed, number

NOISE = 3.0
"""Standard errors; a K nearer to 0 may be none."""
LONG_STEP_S = 60.0
"""No robot is controlled so slowly; the times are in another unit."""
CAVEAT = (
    "Response is not gain: K also moves with the policy and with the states visited, "
    "so look at the traces before you discard data."
)
SIGN = (
    "A response changes its sign if an actuator is reversed, if a column is wrong "
    "(--velocity, --action), or if the policy starts to follow the joint's velocity."
)
HIDDEN = (
    "Its gate reads the mean over joints, which hides the loss of a single joint and "
    "moves with the policy."
)
VERBS = {
    "keep": "Keep the old data",
    "discard": "Discard the old data",
    "check": "Check before you decide",
}
MOST_NAMED = 3
"""Actuators that a sentence names."""


def advice(diagnosis: Diagnosis) -> str:
    """The recommendation, what happened, and the selector's verdict, in sentences."""
    return f"{verb(diagnosis)}: {reasons(diagnosis)}"


def verb(diagnosis: Diagnosis) -> str:
    """The verdict in a few words."""
    found, word = diagnosis.regimes, recommendation(diagnosis)
    if word == "discard" and found is not None and found.is_ready:
        return f"Keep episodes {regime_phrases.spans_text(found.keep)}"
    return VERBS[word]


def reasons(diagnosis: Diagnosis) -> str:
    """The advice without the recommendation."""
    finding, found = f"{_finding(diagnosis)}.", diagnosis.regimes
    remarks = _remarks(diagnosis)
    if found is None:
        return " ".join([finding, *remarks])
    tracked = regime_phrases.finding(found)
    if found.is_ready and recommendation(diagnosis) == "discard":
        return " ".join([tracked, sentence(finding), *remarks])
    return " ".join([finding, sentence(tracked), *remarks])


def selector(decision: Decision) -> str:
    """The verdict of the paper's selector and its reason, in one sentence."""
    auc, lost = decision.auc, decision.magnitude
    if auc.value is None:
        reason = "no earlier segment has another mean response"
    elif not auc.passed:
        reason = f"stale data is not the older data (AUC {number(auc.value)}"
        reason += f", gate {auc.threshold:.2f})"
    else:
        reason = f"the mean over joints {_lost(lost.value)}, gate "
        reason += _percent(lost.threshold)
    return f"The paper's selector says {decision.word}: {reason}."


def head(log: Log) -> str:
    """Numbers of the log that was read."""
    step = "" if log.control_step_s is None else f", {log.control_step_s:.4g} s a step"
    return (
        f"{log.n_episodes} episodes, {log.n_transitions.sum():,} transitions, "
        f"{_count(len(log.actuators), 'actuator')}{step} ({log.format})"
    )


def caveats(diagnosis: Diagnosis) -> list[str]:
    """Caveats if the response changed."""
    quiet = not diagnosis.changes and drift(diagnosis) < SMALL_EFFECT
    return [] if quiet else [CAVEAT]


def notes(diagnosis: Diagnosis) -> list[str]:
    """Facts about how the log was read."""
    decision, found = diagnosis.decision, list(diagnosis.log.notes)
    if decision.left_out:
        found.append(
            f"{_count(len(decision.left_out), 'episode')} without action energy left "
            f"out: {listed(decision.left_out)}"
        )
    if decision.response.silent:
        found.append(f"never commanded: {', '.join(decision.response.silent)}")
    step_s = diagnosis.log.control_step_s
    if step_s is not None and step_s > LONG_STEP_S:
        found.append(f"a step takes {step_s:.4g} s: are the times in seconds (--time)?")
    if not diagnosis.changes and is_unanswered(decision.response.joint):
        found.append(
            "the response of every joint is within noise of 0: does each velocity "
            "belong to its action (--velocity, --action)?"
        )
    return found


def is_unanswered(joint: np.ndarray) -> bool:
    """Whether no K (k, d) of d joints differs from 0, by three standard errors."""
    heard = joint[~np.isnan(joint).any(axis=1)]
    if len(heard) < 2:
        return False
    error = heard.std(axis=0, ddof=1) / np.sqrt(len(heard))
    return bool((np.abs(heard.mean(axis=0)) <= NOISE * error).all())


def interval(decision: Decision) -> str:
    """The resampling interval of m_hat, `(0.61 to 0.67)`, or nothing."""
    if decision.interval is None:
        return ""
    return f"({decision.interval[0]:.2f} to {decision.interval[1]:.2f})"


def lost(joint: JointResponse) -> str:
    """`98 % (95 to 101)`; empty where there is no ratio or K changed its sign."""
    if joint.lost is None or state(joint) == "changed its sign":
        return ""
    return f"{_percent(joint.lost)}{_within(joint)}"


def _within(joint: JointResponse) -> str:
    if joint.interval is None:
        return ""
    low, high = (f"{100 * end:.0f}" for end in joint.interval)
    return f" ({low} to {high})"


def _finding(diagnosis: Diagnosis) -> str:
    changes, n_episodes = diagnosis.changes, diagnosis.log.n_episodes
    if not changes:
        how = "abruptly " if drift(diagnosis) >= SMALL_EFFECT else ""
        return f"the actuator response did not change {how}in {n_episodes} episodes"
    at = tuple(change.episode for change in changes)
    where = f"the response changed at episode{'s' if len(at) > 1 else ''} {listed(at)}"
    if not diagnosis.stretches[0].stale:
        return f"{where} and is back where it was at first"
    return f"{where}; {_who(diagnosis.joints)}"


def _who(joints: Sequence[JointResponse]) -> str:
    """Which actuators changed, the most changed first."""
    changed = [joint for joint in joints if joint.changed]
    changed.sort(key=lambda joint: -abs(joint.effect))
    named = [f"{joint.label} {_lost_of(joint)}" for joint in changed[:MOST_NAMED]]
    rest = len(changed) - len(named)
    more = f", and {_count(rest, 'other')} changed" if rest else ""
    return ", ".join(named) + more


def _lost_of(joint: JointResponse) -> str:
    if joint.lost is None:
        return f"responds again (K {joint.now:.3g})"
    if state(joint) == "changed its sign":
        return f"changed its sign (K {joint.before:.3g} to {joint.now:.3g})"
    return f"{_lost(joint.lost)}{'' if joint.lost < 0 else _within(joint)}"


def _remarks(diagnosis: Diagnosis) -> list[str]:
    decision, found = diagnosis.decision, []
    moved = drift(diagnosis)
    if moved >= SMALL_EFFECT:
        also = "also " if diagnosis.changes else ""
        found.append(
            f"The mean over joints {also}moved gradually, by up to {_percent(moved)}, "
            "as it does when a policy changes."
        )
    elif decision.change_points and not diagnosis.changes:
        most = _percent(relative_range(decision.segments))
        found.append(
            f"The selector has {len(decision.segments)} segments, whose mean response "
            f"differs by at most {most}."
        )
    if reversed_joints(diagnosis):
        found.append(SIGN)
    if diagnosis.changes or decision.change_points:
        found.append(selector(decision))
    if not decision.discard and hidden_loss(diagnosis):
        found.append(HIDDEN)
    if decision.near:
        found.append(_close(decision))
    return found


def _close(decision: Decision) -> str:
    if decision.auc_is_close:
        near = f"the AUC is {number(decision.auc.value)}, its gate "
        return f"It is a close call: {near}{decision.auc.threshold}."
    share = _percent(decision.share_beyond or 0.0)
    return f"It is a close call: m_hat passes its gate in {share} of resamples."


def _lost(value: float | None) -> str:
    if value is None:
        return "had next to no response before"
    if value < -1:
        return f"grew {1 - value:.1f}-fold"
    return f"lost {_percent(value)}" if value >= 0 else f"grew by {_percent(-value)}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _count(number_of: int, what: str) -> str:
    return f"{number_of} {what}{'' if number_of == 1 else 's'}"
