"""A diagnosis in sentences."""

from fallow.diagnosis.decision import Decision
from fallow.diagnosis.pipeline import Diagnosis
from fallow.views.numbers import listed, number

CAVEAT = (
    "Response is not gain: it also moves with the policy and with the states visited, "
    "so look at the traces before you throw data away."
)


def advice(diagnosis: Diagnosis) -> str:
    """What to do and why, in one sentence; a second one if the call is close."""
    decision = diagnosis.decision
    sentence = f"{_verb(decision)}: {_reason(diagnosis)}."
    return f"{sentence} {_close(decision)}" if decision.near else sentence


def notes(diagnosis: Diagnosis) -> list[str]:
    """What a reader should know of how the log was read."""
    decision, found = diagnosis.decision, list(diagnosis.log.notes)
    if decision.left_out:
        found.append(
            f"{_count(len(decision.left_out), 'episode')} without action energy left "
            f"out: {listed(decision.left_out)}"
        )
    if decision.response.silent:
        found.append(f"never commanded: {', '.join(decision.response.silent)}")
    return found


def interval(decision: Decision) -> str:
    """The interval of m_hat, or nothing."""
    if decision.interval is None:
        return ""
    return f"{decision.interval[0]:.2f} to {decision.interval[1]:.2f}"


def _verb(decision: Decision) -> str:
    return "Discard the old data" if decision.discard else "Keep the old data"


def _reason(diagnosis: Diagnosis) -> str:
    decision = diagnosis.decision
    n_episodes = diagnosis.log.n_episodes
    changes = decision.change_points
    if not changes:
        return f"no change of the actuator response in {n_episodes} episodes"
    where = f"episode{'s' if len(changes) > 1 else ''} {listed(changes)}"
    if not decision.stale.any():
        return f"the response changed at {where} and is now where it was"
    size = _size(decision)
    if decision.discard:
        return (
            f"the response changed at {where}, {size}, and the stale data is the older "
            f"data (AUC {number(decision.auc.value)})"
        )
    if not decision.auc.passed:
        return (
            f"the response changed at {where}, and age does not tell stale data from "
            f"fresh (AUC {number(decision.auc.value)}, below {decision.auc.threshold})"
        )
    return (
        f"the response changed at {where}, {size}, and forgetting pays only where "
        f"{_percent(decision.magnitude.threshold)} or more is lost"
    )


def _size(decision: Decision) -> str:
    value = decision.magnitude.value
    if value is None:
        return "by an amount that cannot be told"
    if value < 0:
        return f"it grew by {_percent(-value)}"
    low, high = decision.interval or (value, value)
    within = f"95 % interval {_percent(low)} to {_percent(high)}"
    return f"{_percent(value)} of it was lost ({within})"


def _close(decision: Decision) -> str:
    if decision.auc_is_close:
        near = f"the AUC is {number(decision.auc.value)}, its gate "
        return f"It is a close call: {near}{decision.auc.threshold}."
    share = _percent(decision.share_beyond or 0.0)
    return f"It is a close call: m_hat passes its gate in {share} of resamples."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _count(number_of: int, what: str) -> str:
    return f"{number_of} {what}{'' if number_of == 1 else 's'}"
