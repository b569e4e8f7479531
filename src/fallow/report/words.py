"""A diagnosis in sentences."""

from fallow.diagnose import Diagnosis
from fallow.response.decision import Decision

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


def number(value: float | None) -> str:
    """Two decimals, or a dash for what is not defined."""
    return "–" if value is None else f"{value:.2f}"


def interval(decision: Decision) -> str:
    """The interval of m_hat, or nothing."""
    if decision.interval is None:
        return ""
    return f"{decision.interval[0]:.2f} to {decision.interval[1]:.2f}"


def listed(values: tuple[int, ...], most: int = 12) -> str:
    """Numbers for people, the rest counted; a dash for none."""
    if not values:
        return "–"
    rest = f" and {len(values) - most} more" if len(values) > most else ""
    return ", ".join(str(value) for value in values[:most]) + rest


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
        f"{decision.magnitude.threshold:.0%} or more is lost"
    )


def _size(decision: Decision) -> str:
    value = decision.magnitude.value
    if value is None:
        return "by an amount that cannot be told"
    if value < 0:
        return f"it grew by {-value:.0%}"
    within = f" (95 % interval {interval(decision)})" if decision.interval else ""
    return f"{value:.0%} of it was lost{within}"


def _close(decision: Decision) -> str:
    share = decision.share_beyond
    beyond = (
        "" if share is None else f"; m_hat is beyond it in {share:.0%} of resamples"
    )
    return f"It is a close call: a number lies near its gate{beyond}."


def _count(number_of: int, what: str) -> str:
    return f"{number_of} {what}{'' if number_of == 1 else 's'}"
