"""From logs to a decision: did the actuators change, when, by how much, and what now?

Imports neither jax nor mujoco; the page's figures are the only use of matplotlib.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fallow.errors import FallowError
from fallow.logs.log import Log
from fallow.logs.readers import Columns, logs_in, read_log
from fallow.replay.staleness import interval_auc
from fallow.response.decision import Decision, decide
from fallow.response.segments import MIN_SEGMENT, PENALTY_FACTOR, Z_LIMIT

KEEP, BAD_INPUT, DISCARD = 0, 2, 10
"""Exit codes of `fallow diagnose --ci`."""


@dataclass(frozen=True)
class Truth:
    """What a log says about itself, for comparison; no estimate reads it."""

    change_points: tuple[int, ...]
    auc: float | None
    magnitude: float | None
    """Share of the mean gain that was lost, as eq. (8) would have it."""


@dataclass(frozen=True)
class Diagnosis:
    """One log, what was decided, and why."""

    log: Log
    decision: Decision
    truth: Truth | None


@dataclass(frozen=True)
class Failure:
    """One log among several that could not be diagnosed."""

    path: Path
    reason: str


def diagnose(
    path: str | Path,
    columns: Columns | None = None,
    variant: str = "joint",
    scale: str = "mad",
) -> Diagnosis:
    """Read a log and decide.

    Raises:
        FallowError: one sentence on what is wrong with the log.
    """
    log = read_log(path, columns)
    return diagnose_log(log, variant, scale)


def diagnose_log(log: Log, variant: str = "joint", scale: str = "mad") -> Diagnosis:
    """Decide from a log that is read already."""
    try:
        return Diagnosis(log, decide(log, variant, scale), truth_of(log))
    except FallowError as error:
        if str(error).startswith(log.source):
            raise
        raise FallowError(f"{log.source}: {error}") from None


def diagnose_all(
    paths: tuple[Path, ...], columns: Columns, variant: str, scale: str
) -> list[Diagnosis | Failure]:
    """Every log below some paths; among several, one that fails is a row as well.

    Raises:
        FallowError: there is no log, or the only one fails.
    """
    from fallow.report.progress import progress

    if not paths:
        raise FallowError("name a log, e.g. fallow diagnose run.fallow")
    found = logs_in(paths)
    results: list[Diagnosis | Failure] = []
    with progress(len(found), "diagnosing") as tick:
        for path in found:
            try:
                results.append(diagnose(path, columns, variant, scale))
            except (FallowError, OSError) as error:
                if len(found) == 1:
                    raise
                results.append(Failure(path, str(error)))
            tick()
    return results


def truth_of(log: Log) -> Truth | None:
    """Changes, AUC and magnitude by the log's own regimes; None where it has none."""
    if log.regime is None:
        return None
    stale = log.regime != log.regime[-1]
    changes = np.flatnonzero(log.regime[1:] != log.regime[:-1]) + 1
    magnitude = None
    if log.gain is not None and stale.any():
        gain = log.gain.mean(axis=1)
        magnitude = float(1 - np.median(gain[~stale]) / np.median(gain[stale]))
    return Truth(
        change_points=tuple(int(change) for change in changes),
        auc=interval_auc(log.start_step, log.end_step, stale),
        magnitude=magnitude,
    )


def exit_code(results: Iterable[Diagnosis | Failure], ci: bool) -> int:
    """2 if a log was bad; with `ci`, 10 if data should be discarded; else 0."""
    results = list(results)
    if any(isinstance(result, Failure) for result in results):
        return BAD_INPUT
    if ci and any(isinstance(r, Diagnosis) and r.decision.discard for r in results):
        return DISCARD
    return KEEP


def as_json(result: Diagnosis | Failure) -> dict[str, Any]:
    """All of a diagnosis as plain values; JSON has no infinity, so that is null."""
    if isinstance(result, Failure):
        return {"path": str(result.path), "error": result.reason}
    from fallow.report.words import advice

    log, decision, truth = result.log, result.decision, result.truth
    return {
        "path": log.source,
        "format": log.format,
        "decision": decision.word,
        "rule": decision.rule,
        "auc": decision.auc.value,
        "magnitude": decision.magnitude.value,
        "magnitude_interval": decision.interval,
        "magnitude_share_beyond_gate": decision.share_beyond,
        "change_points": decision.change_points,
        "stale": decision.stale.tolist(),
        "near": decision.near,
        "gates": {
            name: {
                "threshold": gate.threshold,
                "passed": gate.passed,
                "margin": gate.margin,
            }
            for name, gate in (("auc", decision.auc), ("magnitude", decision.magnitude))
        },
        "segments": [
            {
                "start": segment.start,
                "stop": segment.stop,
                "stale": segment.stale,
                "z": segment.z if np.isfinite(segment.z) else None,
                "response": segment.response,
            }
            for segment in decision.segments
        ],
        "settings": {
            "variant": decision.response.variant,
            "channels": decision.response.channels,
            "scale": decision.scale,
            "penalty_factor": PENALTY_FACTOR,
            "min_segment_episodes": MIN_SEGMENT,
            "z_limit": Z_LIMIT,
        },
        "n_episodes": log.n_episodes,
        "n_transitions": int(log.n_transitions.sum()),
        "control_step_s": log.control_step_s,
        "left_out_episodes": decision.left_out,
        "silent_actuators": decision.response.silent,
        "advice": advice(result),
        "notes": log.notes,
        "truth": None
        if truth is None
        else {
            "change_points": truth.change_points,
            "auc": truth.auc,
            "magnitude": truth.magnitude,
        },
    }
