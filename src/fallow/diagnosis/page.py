"""A diagnosis as one self-contained page: no script, no font, no network."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from fallow.diagnosis import figures
from fallow.diagnosis.phrases import CAVEAT, advice, interval, notes
from fallow.diagnosis.pipeline import Diagnosis, Failure
from fallow.diagnosis.segments import MIN_SEGMENT, PENALTY_FACTOR, Z_LIMIT
from fallow.views.page import render_template
from fallow.views.plotting import as_svg

TEMPLATE = Path(__file__).with_name("page.html")
PLANE = "age-staleness AUC against magnitude, with both gates"
MOST_JOINTS = 12
"""Traces drawn for one log; of more joints, those that changed most."""


def render(results: Sequence[Diagnosis | Failure]) -> str:
    """The page for one log or several."""
    diagnoses = [r for r in results if isinstance(r, Diagnosis)]
    return render_template(
        TEMPLATE,
        caveat=CAVEAT,
        logs=[_view(diagnosis) for diagnosis in diagnoses],
        failures=[r for r in results if isinstance(r, Failure)],
        plane=_svg(figures.plane([d.decision for d in diagnoses]), PLANE)
        if diagnoses
        else "",
        penalty=PENALTY_FACTOR,
        min_segment=MIN_SEGMENT,
        z_limit=Z_LIMIT,
    )


def _svg(figure: Figure, label: str) -> Markup:
    return Markup(as_svg(figure, label))


def _trace(diagnosis: Diagnosis, values: np.ndarray, title: str) -> Markup:
    figure = figures.trace(diagnosis.decision, diagnosis.truth, values, title)
    return _svg(figure, f"response of {title} over episodes")


def _view(diagnosis: Diagnosis) -> dict[str, Any]:
    """What the template shows of one log; only the drawings are not escaped."""
    decision, log = diagnosis.decision, diagnosis.log
    mean = decision.response.mean
    traces = [_trace(diagnosis, mean, f"K, {_mean_name(diagnosis)}")]
    shown = _joints(diagnosis)
    for joint in shown:
        series = decision.response.joint[:, joint]
        traces.append(_trace(diagnosis, series, f"K, {log.actuators[joint]}"))
    return {
        "log": log,
        "name": Path(log.source).name,
        "decision": decision,
        "truth": diagnosis.truth,
        "advice": advice(diagnosis),
        "notes": notes(diagnosis),
        "interval": interval(decision),
        "traces": traces,
        "n_hidden": len(log.actuators) - len(decision.response.silent) - len(shown),
    }


def _mean_name(diagnosis: Diagnosis) -> str:
    large = diagnosis.decision.response.variant == "large"
    return "mean over joints, large actions" if large else "mean over joints"


def _joints(diagnosis: Diagnosis) -> list[int]:
    """Which joints are drawn, in their order."""
    decision = diagnosis.decision
    joint = decision.response.joint
    heard = np.flatnonzero(~np.isnan(joint).all(axis=0))
    if len(heard) <= MOST_JOINTS:
        return [int(j) for j in heard]
    stale = decision.stale if decision.stale.any() else np.arange(len(joint)) % 2 == 0
    gap = np.nanmedian(joint[~stale], axis=0) - np.nanmedian(joint[stale], axis=0)
    relative = np.abs(gap[heard]) / np.nanstd(joint[:, heard], axis=0).clip(1e-12)
    return sorted(int(heard[i]) for i in np.argsort(-relative)[:MOST_JOINTS])
