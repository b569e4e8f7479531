"""How well the tracker follows the regime, beside K with PELT and K with BOCPD.

    python benchmarks/tracker.py trunk.fallow+branch.fallow other.fallow
    python benchmarks/tracker.py --scripted --first-seed 10 --keep FOLDER
    python benchmarks/tracker.py --ablation FILES   # the tracker with parts left out
    python benchmarks/tracker.py --pieces 2 FILES   # it decides inside episodes as well
    python benchmarks/tracker.py FILES --before 20 40   # logs that begin shortly before

`a+b` joins a trunk and its branch into one run. `--scripted` records its histories
first, into a folder that `--keep` names and reuses. Every method reads the past only. A
switch is found if an alarm comes with it or within three episodes after it; every other
alarm is false. PELT runs on each prefix and reports a change where none was reported
within two episodes; BOCPD (package `changepoint`) reports one where the most probable
run length falls to five or less. Gain error: mean over actuators of |gain - truth| with
the 20th episode of a regime. Damping, friction, payload: `unexplained` or `gain` as
reported ten episodes after the change. One Markdown table.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scripted_histories import SCRIPTED, record, recorded

from fallow.diagnosis.actuator import joint_response
from fallow.diagnosis.segments import MIN_EPISODES, change_points, standardise
from fallow.logs.log import Log
from fallow.logs.readers import read_log
from fallow.tracking import (
    Tracker,
    TrackerConfig,
    body,
    decision,
    features,
    hypotheses,
)

WITHIN = 3
"""Episodes after a switch in which an alarm finds it."""
SETTLED = 19
"""Episodes after a switch at which the gain is compared."""
NO_GAIN = ("damping", "friction", "payload")
Part = tuple[Any, str, float]
ABLATION: dict[str, tuple[dict[str, Any], tuple[Part, ...]]] = {
    "all": ({}, ()),
    "linear model": ({"n_state_features": 0, "n_command_features": 0}, ()),
    "no forgetting": ({"memory_steps": 1e9}, ()),
    "no slow memory": ({}, ((body, "SLOW_WEIGHT", 0.0),)),
    "no drift": ({"drift": 1.0}, ()),
    "no still joints": ({}, ((features, "STILL", 1e-6),)),
    "one episode decides": ({"min_episodes": 1}, ()),
    "no joint test": (
        {},
        ((decision, "NEW_FACTOR", -1e9), (decision, "KNOWN_FACTOR", -1e9)),
    ),
    "no prediction": (
        {},
        (
            (decision, "PREDICTION", 0.0),
            (decision, "MIN_BETTER", -1e9),
            (decision, "EXPLAINED", 1e9),
            (decision, "MAX_LEFT", 1e9),
            (decision, "NEW_EXCESS", 1e9),
        ),
    ),
    "better by 1.5": ({}, ((decision, "MIN_BETTER", 1.5),)),
    "evidence suffices": ({}, ((decision, "MIN_BETTER", -1e9),)),
    "no review": ({"trial_episodes": 10**6}, ()),
    "no correction": ({}, ((decision, "CORRECTED_EPISODES", 0),)),
    "a second new regime as the first": ({}, ((decision, "AGAIN_FACTOR", 1.0),)),
    "gains may leave much": ({}, ((decision, "STRONG", 0.0),)),
    "a young model as an old one": ({}, ((decision, "YOUNG_EPISODES", 0),)),
    "all gains free": ({}, ((hypotheses, "SIMPLE_SHARE", 1e9),)),
}


@dataclass
class Outcome:
    """What one method reported about one history."""

    name: str
    method: str
    alarms: list[int]
    truth: np.ndarray  # (k,) regimes
    cpu_s: float = 0.0
    pieces: int = 1
    """That each episode was read in; alarms and truth count them."""
    named: list[bool] = field(default_factory=list)
    """For each return: whether the first alarm named the old regime."""
    gain_error: list[float] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    """For changes that are no gain: what was reported."""

    @property
    def switches(self) -> list[int]:
        return [int(s) + 1 for s in np.flatnonzero(np.diff(self.truth))]

    def delays(self) -> list[int | None]:
        """Pieces to the first alarm of each switch; None if it is not found."""
        last = self.pieces * (WITHIN + 1)
        return [
            next((a - s for a in self.alarms if s <= a < s + last), None)
            for s in self.switches
        ]

    def n_false(self) -> int:
        return len(self.alarms) - sum(d is not None for d in self.delays())

    def n_unchanged(self) -> int:
        n_episodes = len(self.truth) // self.pieces
        return n_episodes - (WITHIN + 1) * len(self.switches)


def joined(text: str) -> Log:
    """One log from `trunk+branch`."""
    logs = [read_log(Path(part)) for part in text.split("+")]
    if len(logs) == 1:
        return logs[0]

    def both(name: str) -> Any:
        parts = [getattr(log, name) for log in logs]
        return None if any(p is None for p in parts) else np.concatenate(parts)

    names = ("velocity", "action", "n_transitions", "start_step", "regime", "gain")
    return replace(logs[0], source=text, **{name: both(name) for name in names})


def shortened(log: Log, n_before: int) -> Log:
    """From so many episodes before the first change on; all of it if that is 0."""
    changes = np.flatnonzero(np.diff(np.asarray(log.regime)))
    if not n_before or not len(changes):
        return log
    first = max(int(changes[0]) + 1 - n_before, 0)
    row = int(log.n_transitions[:first].sum())
    cuts = {"velocity": row + first, "action": row}
    cuts |= dict.fromkeys(("n_transitions", "start_step", "regime", "gain"), first)
    given = {name: getattr(log, name) for name in cuts}
    return replace(
        log, **{n: v if v is None else v[cuts[n] :] for n, v in given.items()}
    )


def in_pieces(log: Log, pieces: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(velocities, actions) of every episode, or of equal parts of each."""
    for velocities, actions in log.episodes():
        cuts = np.linspace(0, len(actions), pieces + 1).astype(int)
        for start, stop in pairwise(cuts):
            yield velocities[start : stop + 1], actions[start:stop]


def by_tracker(
    name: str, log: Log, config: TrackerConfig, label: str, pieces: int = 1
) -> Outcome:
    truth = np.repeat(np.asarray(log.regime), pieces)
    gains = None if log.gain is None else np.repeat(log.gain, pieces, axis=0)
    tracker = Tracker(len(log.actuators), log.control_step_s or 1.0, config)
    outcome = Outcome(name, label, [], truth, pieces=pieces)
    known = gains is not None and not any(word in name for word in NO_GAIN)
    ids: dict[int, list[int]] = {}
    within = pieces * WITHIN
    start = time.process_time()
    for e, (velocities, actions) in enumerate(in_pieces(log, pieces)):
        update = tracker.update(velocities, actions)
        true = int(truth[e])
        since = e - max([s for s in outcome.switches if s <= e], default=0)
        if update.state == "changed":
            outcome.alarms.append(e)
            earlier = ids.get(true)
            if since <= within and earlier and true != truth[e - since - 1]:
                outcome.named.append(update.regime == statistics.mode(earlier))
        if since >= within:
            ids.setdefault(true, []).append(update.regime)
        if known and true and since == pieces * SETTLED:
            error = np.abs(update.gain - gains[e]).mean()
            outcome.gain_error.append(float(error))
        if not known and true and since == 10 * pieces:
            kind = "gain" if tracker.regime.is_gain else "unexplained"
            outcome.kinds.append(kind if tracker.present else "unseen")
    outcome.cpu_s = pieces * (time.process_time() - start) / len(truth)
    return outcome


def by_pelt(name: str, log: Log) -> Outcome:
    response = joint_response(log)
    alarms: list[int] = []
    reported: list[int] = []
    start = time.process_time()
    for e in range(MIN_EPISODES, len(response) + 1):
        for found in change_points(standardise(response[:e])):
            if all(abs(found - old) > 2 for old in reported):
                reported.append(found)
                alarms.append(e - 1)
    cpu_s = (time.process_time() - start) / len(response)
    return Outcome(name, "K, PELT", alarms, np.asarray(log.regime), cpu_s)


def by_bocpd(name: str, log: Log) -> Outcome | None:
    try:
        import changepoint
    except ImportError:
        return None
    response = joint_response(log)
    scale = response[:40].std(axis=0) + 1e-12
    series = (response - np.median(response[:40], axis=0)) / scale
    d = response.shape[1]
    if d == 1:
        prior = changepoint.NormalGamma(0.0, 1.0, 1.0, 1.0)
    else:
        prior = changepoint.NormalInvWishart(np.zeros(d), 1.0, d + 2, np.eye(d))
    model = changepoint.Bocpd(prior, 100.0)
    alarms, last = [], 0
    start = time.process_time()
    for e, row in enumerate(series):
        length = int(np.argmax(model.step(float(row[0]) if d == 1 else row)))
        if length <= 5 < last and e >= 8:
            alarms.append(e)
        last = length
    cpu_s = (time.process_time() - start) / len(series)
    return Outcome(name, "K, BOCPD", alarms, np.asarray(log.regime), cpu_s)


def one(case: tuple[str, str, int, int]) -> list[Outcome]:
    """All outcomes of (history, what to run, pieces of an episode, episodes before)."""
    source, what, pieces, n_before = case
    name = source.split("/")[-1].removesuffix(".fallow")
    name += f", {n_before} before" if n_before else ""
    log = shortened(joined(source), n_before)
    if what == "ablation":
        return [ablated(name, log, part) for part in ABLATION]
    others = [by_pelt(name, log), by_bocpd(name, log)]
    tracked = by_tracker(name, log, TrackerConfig(), "tracker", pieces)
    return [o for o in others if o is not None] + [tracked]


def ablated(name: str, log: Log, part: str) -> Outcome:
    overrides, constants = ABLATION[part]
    old = [(module, key, getattr(module, key)) for module, key, _ in constants]
    for module, key, value in constants:
        setattr(module, key, value)
    try:
        return by_tracker(name, log, TrackerConfig(**overrides), part)
    finally:
        for module, key, value in old:
            setattr(module, key, value)


HEAD = (
    "histories",
    "method",
    f"switches within {WITHIN}",
    "delay, median (max)",
    "false alarms",
    "per 1,000",
    "returns named",
    "gain error",
    "no gain: unexplained / gain / unseen",
    "CPU s/episode",
)


def row(name: str, method: str, outcomes: list[Outcome]) -> str:
    delays = [d / o.pieces if d else d for o in outcomes for d in o.delays()]
    found = [d for d in delays if d is not None]
    n_false = sum(o.n_false() for o in outcomes)
    n_unchanged = sum(o.n_unchanged() for o in outcomes)
    named = [n for o in outcomes for n in o.named]
    errors = [e for o in outcomes for e in o.gain_error]
    kinds = [k for o in outcomes for k in o.kinds]
    counts = [str(kinds.count(k)) for k in ("unexplained", "gain", "unseen")]
    cells = (
        name,
        method,
        f"{len(found)}/{len(delays)}" if delays else "–",
        f"{statistics.median(found):g} ({max(found):g})" if found else "–",
        f"{n_false} in {n_unchanged}",
        f"{1000 * n_false / n_unchanged:.1f}",
        f"{sum(named)}/{len(named)}" if named else "–",
        f"{statistics.mean(errors):.2f}" if errors else "–",
        " / ".join(counts) if kinds else "–",
        f"{statistics.mean(o.cpu_s for o in outcomes):.4f}",
    )
    return "| " + " | ".join(cells) + " |"


def show(outcomes: list[Outcome], rows_of: str) -> None:
    print("| " + " | ".join(HEAD) + " |")
    print("|" + " --- |" * len(HEAD))
    for outcome in outcomes:
        if outcome.method == rows_of:
            print(row(outcome.name, outcome.method, [outcome]))
    for method in dict.fromkeys(o.method for o in outcomes):
        all_ = [o for o in outcomes if o.method == method]
        print(row(f"all {len(all_)}", method, all_))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("histories", nargs="*", help="files; trunk+branch joins two")
    parser.add_argument("--scripted", action="store_true")
    parser.add_argument("--ablation", action="store_true")
    parser.add_argument("--seeds", type=int, default=1, help="of scripted histories")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--tasks", nargs="*", default=list(SCRIPTED))
    parser.add_argument("--keep", type=Path, help="folder of scripted histories")
    parser.add_argument("--pieces", type=int, default=1, help="of each episode")
    parser.add_argument(
        "--before", nargs="*", type=int, default=[0], help="episodes before the change"
    )
    parser.add_argument("--processes", type=int, default=1)
    chosen = parser.parse_args()
    what = "ablation" if chosen.ablation else "methods"
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(chosen.processes) as pool,
    ):
        paths = [str(path) for path in chosen.histories]
        if chosen.scripted:
            keep = chosen.keep or Path(folder)
            keep.mkdir(parents=True, exist_ok=True)
            last = chosen.first_seed + chosen.seeds
            for seed in range(chosen.first_seed, last):
                for task in chosen.tasks:
                    texts = SCRIPTED[task]
                    paths += map(str, recorded(record, task, texts, seed, keep))
        cases = [
            (path, what, chosen.pieces, n) for path in paths for n in chosen.before
        ]
        found = pool.map(one, cases)
        outcomes = [outcome for each in found for outcome in each]
    show(outcomes, "" if chosen.ablation else "tracker")


if __name__ == "__main__":
    main()
