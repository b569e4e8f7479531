"""A diagnosis for machines: plain values, ready for JSON."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fallow.diagnosis.changes import (
    ABRUPT_Z,
    GONE_EFFECT,
    GONE_Z,
    SMALL_EFFECT,
    WINDOW,
    ResponseChange,
)
from fallow.diagnosis.decision import Decision, Gate
from fallow.diagnosis.phrases import advice
from fallow.diagnosis.pipeline import Diagnosis, Failure
from fallow.diagnosis.recommendation import recommendation, state
from fallow.diagnosis.regimes import Regimes, SeenRegime
from fallow.diagnosis.segments import MIN_SEGMENT, PENALTY_FACTOR, Z_LIMIT


def dumps(results: Sequence[Diagnosis | Failure]) -> str:
    """One log as a JSON object, several as a list."""
    found = [as_json(result) for result in results]
    content = found[0] if len(found) == 1 else found
    return json.dumps(content, indent=1, allow_nan=False)


def as_json(result: Diagnosis | Failure) -> dict[str, Any]:
    """All of a diagnosis, or the reason why there is none."""
    if isinstance(result, Failure):
        return {"path": result.source, "error": result.reason}
    found: dict[str, Any] = plain(
        _log(result)
        | _selector(result.decision)
        | _changes(result)
        | {"tracker": _tracker(result.regimes)}
    )
    return found


def plain(value: Any) -> Any:
    """Values that JSON has: NaN and infinity become None, arrays and tuples lists."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _log(diagnosis: Diagnosis) -> dict[str, Any]:
    log, truth = diagnosis.log, diagnosis.truth
    return {
        "path": log.source,
        "format": log.format,
        "n_episodes": log.n_episodes,
        "n_transitions": log.n_transitions.sum(),
        "control_step_s": log.control_step_s,
        "notes": log.notes,
        "truth": None if truth is None else vars(truth),
    }


def _selector(decision: Decision) -> dict[str, Any]:
    """The paper's selector and all that it rests on."""
    return {
        "decision": decision.word,
        "rule": decision.rule,
        "auc": decision.auc.value,
        "magnitude": decision.magnitude.value,
        "magnitude_interval": decision.interval,
        "magnitude_share_beyond_gate": decision.share_beyond,
        "change_points": decision.change_points,
        "stale": decision.stale,
        "near": decision.near,
        "gates": {"auc": _gate(decision.auc), "magnitude": _gate(decision.magnitude)},
        "segments": [vars(segment) for segment in decision.segments],
        "settings": _settings(decision),
        "left_out_episodes": decision.left_out,
        "silent_actuators": decision.response.silent,
    }


def _changes(diagnosis: Diagnosis) -> dict[str, Any]:
    """The actuators, the abrupt changes, and the advice."""
    return {
        "recommendation": recommendation(diagnosis),
        "advice": advice(diagnosis),
        "abrupt_change_points": [change.episode for change in diagnosis.changes],
        "stretches": [vars(stretch) for stretch in diagnosis.stretches],
        "boundaries": [_boundary(boundary) for boundary in diagnosis.boundaries],
        "joints": [vars(j) | {"state": state(j)} for j in diagnosis.joints],
    }


def _tracker(found: Regimes | None) -> dict[str, Any] | None:
    """The regimes; `keep` has [start, stop) of the episodes of the one in force."""
    if found is None:
        return None
    return {
        "ready": found.is_ready,
        "state": found.state,
        "regime": found.in_force,
        "certainty": found.certainty,
        "labels": found.labels,
        "keep": found.keep,
        "changes": [vars(change) for change in found.changes],
        "regimes": [_regime(regime) for regime in found.seen],
        "n_skipped": found.n_skipped,
    }


def _regime(regime: SeenRegime) -> dict[str, Any]:
    ends = zip(regime.low, regime.high, strict=True)
    return {
        "id": regime.id,
        "gain": regime.gain,
        "interval": [list(pair) for pair in ends],
        "changed": regime.changed,
        "explained": regime.explained,
        "calibrated": regime.calibrated,
    }


def _boundary(change: ResponseChange) -> dict[str, Any]:
    return {
        "episode": change.episode,
        "abrupt": change.abrupt,
        "effect": change.effect,
        "z": change.z,
    }


def _gate(gate: Gate) -> dict[str, Any]:
    return {"threshold": gate.threshold, "passed": gate.passed, "margin": gate.margin}


def _settings(decision: Decision) -> dict[str, Any]:
    return {
        "variant": decision.response.variant,
        "channels": decision.response.channels,
        "scale": decision.scale,
        "stale_by": decision.stale_by,
        "penalty_factor": PENALTY_FACTOR,
        "min_segment_episodes": MIN_SEGMENT,
        "z_limit": Z_LIMIT,
        "abrupt_window_episodes": WINDOW,
        "abrupt_effect": SMALL_EFFECT,
        "abrupt_z": ABRUPT_Z,
        "gone_effect": GONE_EFFECT,
        "gone_z": GONE_Z,
    }
