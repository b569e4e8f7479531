"""How visible changes that are no gain are to the tracker's body model.

    python benchmarks/tracker.py --scripted --first-seed 20 --keep FOLDER
    python benchmarks/visibility.py FOLDER/*@20.fallow

Of each history of a change that is no gain, beside that of the same policy on the
unchanged body, one row: the gains that the first six changed episodes fit best; nats a
step, with their standard error, by which the gains of one half of them predict the
other half better; and those by which ten changed episodes predict ten others better
than ten unchanged ones do. An unchanged body has gains of 1 and 0 nats.
"""

import argparse
from pathlib import Path

import numpy as np
from tracker import NO_GAIN, in_pieces, joined

from fallow.tracking import Tracker
from fallow.tracking.body import BodyModel
from fallow.tracking.features import Design, stacked
from fallow.tracking.hypotheses import MAX_GAIN
from fallow.tracking.signals import signals_of

FEW, MANY = 6, 20
"""Episodes after the change for gains, and for a model of the changed body."""
PRECISION, N_ROUNDS, MIN_GAIN = 5.0, 3, 0.02
"""Of gains before any data; Gauss-Newton steps; the smallest gain that is fitted."""


def designs_of(path: Path, other: Path) -> tuple[BodyModel, list[Design], list[Design]]:
    """A body model before the change, and episodes of both bodies after it."""
    log = joined(str(path))
    truth = np.asarray(log.regime)
    change = int(np.flatnonzero(np.diff(truth))[0]) + 1
    episodes = list(in_pieces(log, 1))
    tracker = Tracker(len(log.actuators), log.control_step_s or 1.0)
    for velocities, actions in episodes[:change]:
        tracker.update(velocities, actions)
    scaling = tracker.scaling
    assert scaling is not None and tracker.present == 0
    after = slice(change, change + MANY)
    same = list(in_pieces(joined(str(other)), 1))[after]
    changed, unchanged = (
        [tracker.basis.design(signals_of(v, a), scaling) for v, a in part]
        for part in (episodes[after], same)
    )
    return tracker.body, changed, unchanged


def pooled_gains(body: BodyModel, design: Design, base: np.ndarray) -> np.ndarray:
    """(d,) gains that some episodes together fit best."""
    gain, prior = base, PRECISION * np.eye(len(base))
    for _ in range(N_ROUNDS):
        fit = body.fit(design, gain)
        step = np.linalg.solve(fit.information + prior, fit.score)
        gain = np.clip(gain + step, MIN_GAIN, MAX_GAIN)
    return gain


def better_by_gains(body: BodyModel, designs: list[Design]) -> np.ndarray:
    """(n,) nats a step by which gains of the other half predict each episode better."""
    one, better = np.ones(designs[0].change.shape[1]), np.zeros(len(designs))
    for half in range(2):
        read = designs[1 - half :: 2]
        gain = pooled_gains(body, stacked(read), one)
        same = body.robust_weights(body.sums, read, one)
        other = body.robust_weights(body.sums, read, gain)
        for i in range(half, len(designs), 2):
            loss = body.loss(designs[i], one, same)
            better[i] = loss - body.loss(designs[i], gain, other)
    return better


def better_by_body(
    body: BodyModel, changed: list[Design], unchanged: list[Design]
) -> np.ndarray:
    """(n,) nats a step by which a model of the changed body predicts it better."""
    one, none = np.ones(changed[0].change.shape[1]), body.sums * 0.0
    old, new = (body.robust_weights(none, d[::2], one) for d in (unchanged, changed))
    found = [body.loss(d, one, old) - body.loss(d, one, new) for d in changed[1::2]]
    return np.array(found)


def row(path: Path) -> str:
    task, condition, seed = path.stem.split("@")
    other = path.with_name(f"{task}@none@{seed}.fallow")
    body, changed, unchanged = designs_of(path, other)
    few = changed[:FEW]
    gain = pooled_gains(body, stacked(few), np.ones(few[0].change.shape[1]))
    cells = [task, condition, " ".join(f"{g:.2f}" for g in gain)]
    for nats in (
        better_by_gains(body, few),
        better_by_body(body, changed, unchanged),
    ):
        error = nats.std(ddof=1) / np.sqrt(len(nats))
        cells.append(f"{nats.mean():.2f} ± {error:.2f}")
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("histories", nargs="+", type=Path)
    print("| task | change | gains that fit best | gains predict better | body |")
    print("|" + " --- |" * 5)
    for path in parser.parse_args().histories:
        if any(word in path.stem for word in NO_GAIN):
            print(row(path))


if __name__ == "__main__":
    main()
