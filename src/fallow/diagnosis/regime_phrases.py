"""The tracker's regimes in sentences and tables."""

from collections.abc import Sequence

import numpy as np

from fallow.core.text import counted
from fallow.diagnosis.regimes import RegimeChange, Regimes, SeenRegime
from fallow.diagnosis.text_table import TextTable
from fallow.logs.growing import LoggedEpisode
from fallow.tracking import TrackerUpdate

MOST_NAMED = 3
"""Actuators that a sentence names."""
MOST_SPANS = 8
"""Spans of episodes that a sentence lists, the newest ones."""
UNEXPLAINED = "no gains explain it (friction, damping, load?)"
UNEQUAL = "other damping or load looks alike"
DOUBTFUL = "The last episodes do not fit that regime; more are needed to decide."
HEADS = ("regime", "episodes", "data", "actuators, relative to regime 0")


def opening(source: str, episode: LoggedEpisode, format: str) -> str:
    """The actuators and the control step."""
    n, shown = len(episode.actuators), ", ".join(episode.actuators[:8])
    more = f" and {n - 8} more" if n > 8 else ""
    step = "no times"
    if episode.step_s is not None:
        step = f"{episode.step_s:.4g} s a step"
    return f"{source} ({format}): {n} actuators ({shown}{more}), {step}"


def event(
    update: TrackerUpdate,
    change: RegimeChange | None,
    found: Regimes,
    is_revised: bool = False,
) -> str:
    """One line if an episode changed the regime, revised it or was skipped."""
    if change is not None:
        since = "" if change.since == change.episode else f", since {change.since}"
        kind = ", new" if change.is_new else " again"
        text = f"episode {change.episode}: regime {change.regime}{kind}{since}"
        if change.regime == 0:
            return text
        return f"{text}: {lost(found.regime(change.regime), found.actuators)}"
    if update.note.startswith("skipped"):
        return f"episode {update.episode}: {update.note}"
    if is_revised:
        what = lost(found.regime(update.regime), found.actuators)
        return f"episode {update.episode}: regime {update.regime}, revised: {what}"
    return ""


def lost(regime: SeenRegime, actuators: Sequence[str]) -> str:
    """`left_knee lost 48 % (31 to 60)`, for the actuators that changed most."""
    if not regime.explained:
        return UNEXPLAINED
    size = np.where(regime.changed, np.abs(regime.gain - 1), -1.0)
    chosen = [int(j) for j in np.argsort(-size, kind="stable") if size[j] >= 0]
    chosen = chosen or [int(np.argmax(np.abs(regime.gain - 1)))]
    alike = np.ptp(regime.gain) < 0.005 and len(actuators) > 1
    if alike and len(chosen) == len(actuators):
        every = "both" if len(actuators) == 2 else f"all {len(actuators)}"
        text = f"{every} actuators {loss(regime, chosen[0])}"
    else:
        named = [f"{actuators[j]} {loss(regime, j)}" for j in chosen[:MOST_NAMED]]
        rest = len(chosen) - len(named)
        text = ", ".join(named) + (f", and {rest} more" if rest else "")
        if len(chosen) > 1 and not alike and (regime.gain[chosen] > 0).all():
            text += f" ({UNEQUAL})"
    return text if regime.calibrated else f"{text}, uncalibrated"


def loss(regime: SeenRegime, joint: int) -> str:
    """`lost 48 % (31 to 60)` of one actuator's gain, or `grew by` so much.

    Of a reversed one `reversed, gain -0.97 (-1.04 to -0.91)`.
    """
    gain, low, high = (x[joint] for x in (regime.gain, regime.low, regime.high))
    if gain < 0:
        return f"reversed, gain {gain:.2f} ({low:.2f} to {high:.2f})"
    ends = (1 - high, 1 - low) if gain <= 1 else (low - 1, high - 1)
    within = "" if low == high else f" ({100 * ends[0]:.0f} to {100 * ends[1]:.0f})"
    verb = "lost" if gain <= 1 else "grew by"
    return f"{verb} {abs(100 * (1 - gain)):.0f} %{within}"


def spans_text(spans: Sequence[tuple[int, int]]) -> str:
    """`0 to 39, 60 to 99` of [start, stop) spans; of many, the newest."""
    shown = [str(a) if b == a + 1 else f"{a} to {b - 1}" for a, b in spans]
    cut = len(shown) - MOST_SPANS
    more = f"{cut} earlier spans, " if cut > 0 else ""
    return more + ", ".join(shown[-MOST_SPANS:])


def too_short(found: Regimes) -> str:
    """Why the tracker has no result."""
    usable = len(found.labels) - found.n_skipped
    return (
        f"the tracker needs {found.warm_up_episodes} usable episodes before its first "
        f"decision and has {usable}"
    )


def finding(found: Regimes) -> str:
    """Which regime is in force and since when, or why that is not known."""
    if not found.is_ready:
        return f"{too_short(found)}, so the verdict rests on the response alone."
    doubt = f" {DOUBTFUL}" if found.is_doubtful else ""
    if not found.discards:
        return f"the tracker sees one regime in {len(found.labels)} episodes.{doubt}"
    start, _, _ = found.spans[-1]
    regime = found.regime(found.in_force)
    what = ", as at first"
    if regime.id:
        what = f"; {lost(regime, found.actuators)}"
    return f"regime {regime.id} is in force since episode {start}{what}.{doubt}"


def verdict(found: Regimes) -> str:
    """Which episodes to keep, and why."""
    if not found.is_ready:
        return f"Nothing is decided: {too_short(found)}."
    if not found.discards:
        return f"Keep all: {finding(found)}"
    return f"Keep episodes {spans_text(found.keep)}: {finding(found)}"


def summary(found: Regimes, n_bad: int = 0) -> str:
    """Numbers of the log that was read, and the verdict."""
    n, n_regimes = len(found.labels), len(set(found.labels.tolist()))
    skipped = f" ({found.n_skipped} skipped)" if found.n_skipped else ""
    bad = f", {counted(n_bad, 'log')} left out" if n_bad else ""
    regimes = f"{n_regimes} regime{'' if n_regimes == 1 else 's'}"
    return f"{n} episodes{skipped}, {regimes}{bad}. {verdict(found)}"


def regimes_table(found: Regimes) -> TextTable:
    """Every regime: its episodes, whether it is in force, and what it lost."""
    rows = []
    for regime in found.seen:
        spans = [(a, b) for a, b, label in found.spans if label == regime.id]
        if not spans:
            continue  # merged into another
        what = "the first body" if regime.id == 0 else lost(regime, found.actuators)
        data = "keep" if regime.id == found.in_force else "discard"
        rows.append((str(regime.id), spans_text(spans), data, what))
    return TextTable(HEADS, tuple(rows))


def gains_table(found: Regimes) -> TextTable:
    """Every actuator in the regime in force: what its gain lost, with an interval.

    No rows where no gains explain that regime.
    """
    regime = found.regime(found.in_force)
    joints = found.actuators if regime.explained else ()
    rows = tuple(
        (
            f"{j} {name}",
            f"{regime.gain[j]:.2f} ({regime.low[j]:.2f} to {regime.high[j]:.2f})",
            loss(regime, j) if regime.changed[j] else "",
        )
        for j, name in enumerate(joints)
    )
    return TextTable(("actuator", "gain now (95 %)", "since regime 0"), rows)
