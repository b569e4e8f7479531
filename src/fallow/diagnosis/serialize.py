"""A diagnosis for machines: plain values, ready for JSON."""

import math
from typing import Any

from fallow.diagnosis.decision import Decision, Gate
from fallow.diagnosis.phrases import advice
from fallow.diagnosis.pipeline import Diagnosis, Failure
from fallow.diagnosis.segments import MIN_SEGMENT, PENALTY_FACTOR, Z_LIMIT, Segment
from fallow.diagnosis.truth import Truth


def as_json(result: Diagnosis | Failure) -> dict[str, Any]:
    """All of a diagnosis, or the reason why there is none."""
    if isinstance(result, Failure):
        return {"path": str(result.path), "error": result.reason}
    log, decision = result.log, result.decision
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
        "gates": {"auc": _gate(decision.auc), "magnitude": _gate(decision.magnitude)},
        "segments": [_segment(segment) for segment in decision.segments],
        "settings": _settings(decision),
        "n_episodes": log.n_episodes,
        "n_transitions": int(log.n_transitions.sum()),
        "control_step_s": log.control_step_s,
        "left_out_episodes": decision.left_out,
        "silent_actuators": decision.response.silent,
        "advice": advice(result),
        "notes": log.notes,
        "truth": None if result.truth is None else _truth(result.truth),
    }


def _gate(gate: Gate) -> dict[str, Any]:
    return {"threshold": gate.threshold, "passed": gate.passed, "margin": gate.margin}


def _segment(segment: Segment) -> dict[str, Any]:
    """JSON has no infinity, which z is between two constant segments: null."""
    return {
        "start": segment.start,
        "stop": segment.stop,
        "stale": segment.stale,
        "z": segment.z if math.isfinite(segment.z) else None,
        "response": segment.response,
    }


def _settings(decision: Decision) -> dict[str, Any]:
    return {
        "variant": decision.response.variant,
        "channels": decision.response.channels,
        "scale": decision.scale,
        "penalty_factor": PENALTY_FACTOR,
        "min_segment_episodes": MIN_SEGMENT,
        "z_limit": Z_LIMIT,
    }


def _truth(truth: Truth) -> dict[str, Any]:
    return {
        "change_points": truth.change_points,
        "auc": truth.auc,
        "magnitude": truth.magnitude,
    }
