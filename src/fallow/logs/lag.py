"""How long commands take from their message to the motion: estimated from the log.

The lag is the one at which commands explain velocity changes best: the mean over joints
of their squared correlation, where it has the sign of the response. It is needed
because the same command may be logged just before or just after the state that it was
computed from, and because drives are slow.

Two readings of "the command in force between two states" are compared by that score.
`held` is the command in force in the middle of the interval, which fills the larger
part of it: right where commands take effect with the states, as in a simulator, however
they are logged. `mean` is the mean over the interval, weighted by time: right where
commands take effect as they come, or come more often than states.
"""

from collections.abc import Callable, Sequence

import numpy as np

from fallow.logs.commands import Commands

MAX_LAG_S = 0.2
"""Slower than any robot's drive; hobby servos on USB take about 0.1 s."""
EARLIEST_STEPS = {"held": 0.49, "mean": 0.25}
"""By how many steps the interval may begin later: a held command may then be logged
until just before the next state. A later one answers that state, and must not count."""
GRID_STEPS = 0.25
"""Steps between two lags that are tried first."""
EDGE_STEPS = 0.02
"""Steps from the end of the range within which a maximum is none."""
MAX_TRIED = 400
"""Lags that are tried first."""
N_INTERVALS, N_RECORDINGS = 5_000, 40
"""Intervals between states, and recordings, that the lag is estimated from."""
USUAL_LAG_S = 0.05
"""Of an industrial drive and its bus; a step may be longer."""
SHORT_LAG_GAIN, LONG_LAG_GAIN = 1.05, 1.5
"""How many times more a usual lag, or a longer one, must explain to be believed: a free
parameter always explains a little more, and a gait repeats itself."""
REBOUND_SHARE = 0.15
"""Of the largest squared correlation; an earlier one with so much is the answer."""
GOLDEN = (5**0.5 - 1) / 2

Intervals = tuple[Commands, np.ndarray, np.ndarray, np.ndarray]
"""Commands, the start and stop (n,) of intervals between two states, and the velocity
changes (n, d) over them."""


def find_lag(
    recordings: Sequence[Intervals], given_ms: float | None
) -> tuple[str, float, tuple[str, ...]]:
    """`held` or `mean`, the lag in seconds, and a note on it."""
    n_kept = min(len(recordings), N_RECORDINGS)
    kept = np.linspace(0, len(recordings) - 1, n_kept).astype(int)
    n_all = sum(len(recordings[place][1]) for place in kept)
    sampled = [_sampled(recordings[place], n_all) for place in kept]
    steps = np.concatenate([stop - start for _, start, stop, _ in sampled])

    def correlation(method: str, lag_s: float) -> np.ndarray:
        return _correlation(
            [
                (getattr(commands, method)(start - lag_s, stop - lag_s), change)
                for commands, start, stop, change in sampled
            ]
        )

    if given_ms is None:
        method, lag_s = _best(correlation, float(np.median(steps)))
    else:
        lag_s = given_ms / 1e3
        scores = {m: np.square(correlation(m, lag_s)).mean() for m in ("held", "mean")}
        method = "mean" if scores["mean"] > scores["held"] else "held"
    return method, lag_s, (_note(method, lag_s, sampled),)


def _sampled(intervals: Intervals, n_all: int) -> Intervals:
    commands, start_s, stop_s, change = intervals
    n = len(start_s)
    n_kept = max(1, min(n, N_INTERVALS * n // n_all + 1))
    kept = np.linspace(0, n - 1, n_kept).astype(int)
    return commands, start_s[kept], stop_s[kept], change[kept]


def _best(
    correlation: Callable[[str, float], np.ndarray], step_s: float
) -> tuple[str, float]:
    """The reading and the lag that explain most; without a clear one: held, no lag."""
    width_s = max(GRID_STEPS * step_s, MAX_LAG_S / MAX_TRIED)

    def lags(method: str) -> np.ndarray:
        return np.arange(-EARLIEST_STEPS[method] * step_s, MAX_LAG_S, width_s)

    signs = _signs(np.array([correlation("held", lag) for lag in lags("held")]))

    def score(method: str, lag_s: float) -> float:
        kept = np.maximum(signs * correlation(method, lag_s), 0.0)
        return float(np.square(kept).mean())

    def highest(method: str) -> float:
        tried = lags(method)
        tried = tried[np.argsort(np.abs(tried), kind="stable")]  # of equals: next to 0
        return float(tried[np.argmax([score(method, lag) for lag in tried])])

    candidates = [("held", highest("held"))]
    first, last = lags("mean")[[0, -1]]
    middle = highest("mean")
    low, high = max(first, middle - width_s), min(last, middle + width_s)
    refined = _refined(lambda lag: score("mean", lag), low, high)
    if first + EDGE_STEPS * step_s < refined < last - EDGE_STEPS * step_s:
        candidates.append(("mean", refined))  # at an end there is no maximum
    best = ("held", 0.0)
    for candidate in candidates:
        is_usual = candidate[1] <= max(USUAL_LAG_S, step_s)
        wanted = SHORT_LAG_GAIN if is_usual else LONG_LAG_GAIN
        if score(*candidate) > wanted * score(*best):
            best = candidate
    return best


def _signs(correlations: np.ndarray) -> np.ndarray:
    """(d,) the sign of each joint's response, from correlations (lags, d).

    A light joint with much drag gives back with the next step what it gained with this
    one, so the answer to a command is the first of the large correlations, not the
    largest.
    """
    shares = np.square(correlations)
    is_large = shares >= REBOUND_SHARE * shares.max(axis=0)
    first = is_large.argmax(axis=0)
    return np.sign(correlations[first, np.arange(len(first))])


def _refined(score: Callable[[float], float], low: float, high: float) -> float:
    """The lag of the highest score between two, by golden section, to 0.1 %."""
    inner = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)]
    scores = [score(lag) for lag in inner]
    for _ in range(15):
        if scores[0] >= scores[1]:
            high, inner[1], scores[1] = inner[1], inner[0], scores[0]
            inner[0] = high - GOLDEN * (high - low)
            scores[0] = score(inner[0])
        else:
            low, inner[0], scores[0] = inner[0], inner[1], scores[1]
            inner[1] = low + GOLDEN * (high - low)
            scores[1] = score(inner[1])
    return (low + high) / 2


def _correlation(samples: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """(d,) of commands and velocity changes, over all samples; 0 without either."""
    moments = np.zeros((3, samples[0][1].shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        for action, change in samples:
            known = np.isfinite(action) & np.isfinite(change)
            a, c = np.where(known, action, 0.0), np.where(known, change, 0.0)
            moments += [(a * c).sum(axis=0), (a * a).sum(axis=0), (c * c).sum(axis=0)]
        power = np.sqrt(moments[1]) * np.sqrt(moments[2])
        found = moments[0] / np.where(power > 0, power, 1.0)
    return np.nan_to_num(found, posinf=0.0, neginf=0.0)


def _note(method: str, lag_s: float, sampled: Sequence[Intervals]) -> str:
    if method == "mean":
        return (
            f"commands act about {1e3 * lag_s:.3g} ms after they are logged; an action "
            "is their mean between two states"
        )
    leads = [
        (start - commands.since((start + stop) / 2 - lag_s)).ravel()
        for commands, start, stop, _ in sampled
    ]
    known = np.concatenate(leads)
    known = known[np.isfinite(known)]
    lead_ms = 1e3 * float(np.median(known)) if len(known) else 0.0
    word = "precede" if lead_ms >= 0 else "follow"
    return f"commands {word} states by about {abs(lead_ms):.3g} ms"
