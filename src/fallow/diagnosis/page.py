"""A diagnosis as one self-contained page, or as a summary for notebooks."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from fallow.diagnosis import figures, regime_page, tables
from fallow.diagnosis.changes import (
    ABRUPT_Z,
    GONE_EFFECT,
    GONE_Z,
    SMALL_EFFECT,
    WINDOW,
)
from fallow.diagnosis.phrases import (
    CAVEAT,
    advice,
    caveats,
    head,
    notes,
    reasons,
    verb,
)
from fallow.diagnosis.pipeline import Diagnosis, Failure
from fallow.diagnosis.recommendation import recommendation
from fallow.diagnosis.regime_phrases import regimes_table
from fallow.diagnosis.segments import MIN_SEGMENT, PENALTY_FACTOR, Z_LIMIT
from fallow.diagnosis.text_table import TextTable
from fallow.views.page import render_template
from fallow.views.plotting import as_svg

FOLDER = Path(__file__).parent
PLANE = "age-staleness AUC against magnitude, with both gates"
MOST_JOINTS = 12
"""Traces drawn for one log; of more joints, those that changed most."""


def render(results: Sequence[Diagnosis | Failure]) -> str:
    """The page for one log or several."""
    diagnoses = [r for r in results if isinstance(r, Diagnosis)]
    place = itertools.count(1)
    return render_template(
        FOLDER / "page.html",
        caveat=CAVEAT,
        overview=tables.overview_table(results),
        logs=[_view(diagnosis) for diagnosis in diagnoses],
        places=[next(place) if isinstance(r, Diagnosis) else None for r in results],
        failures=[r for r in results if isinstance(r, Failure)],
        plane=_svg(figures.plane([d.decision for d in diagnoses]), PLANE)
        if diagnoses
        else "",
        penalty=PENALTY_FACTOR,
        min_segment=MIN_SEGMENT,
        z_limit=Z_LIMIT,
        abrupt_z=ABRUPT_Z,
        gone=GONE_EFFECT,
        gone_z=GONE_Z,
        small=SMALL_EFFECT,
        window=WINDOW,
    )


def summary(diagnosis: Diagnosis) -> str:
    """A fragment of HTML that inherits its colours."""
    return render_template(
        FOLDER / "summary.html",
        source=diagnosis.log.source,
        head=head(diagnosis.log),
        advice=advice(diagnosis),
        caveats=caveats(diagnosis),
        notes=notes(diagnosis),
        tables=[
            *_summary_regimes(diagnosis),
            tables.stretches_table(diagnosis),
            tables.joints_table(diagnosis),
            tables.gates_table(diagnosis),
        ],
    )


def _summary_regimes(diagnosis: Diagnosis) -> list[TextTable]:
    found = diagnosis.regimes
    return [regimes_table(found)] if found is not None and found.is_ready else []


def _svg(figure: Figure, label: str) -> Markup:
    return Markup(as_svg(figure, label))


def _trace(diagnosis: Diagnosis, values: np.ndarray, title: str) -> Markup:
    figure = figures.spans_trace(diagnosis.stretches, diagnosis.truth, values, title)
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
        "head": head(log),
        "decision": decision,
        "truth": diagnosis.truth,
        "recommendation": recommendation(diagnosis),
        "verb": verb(diagnosis),
        "regimes": _regimes(diagnosis),
        "reasons": reasons(diagnosis),
        "notes": notes(diagnosis),
        "stretches": tables.stretches_table(diagnosis),
        "joints": tables.joints_table(diagnosis),
        "gates": tables.gates_table(diagnosis),
        "segments": tables.segments_table(diagnosis),
        "traces": traces,
        "n_hidden": len(log.actuators) - len(decision.response.silent) - len(shown),
    }


def _regimes(diagnosis: Diagnosis) -> Markup | None:
    found, truth = diagnosis.regimes, diagnosis.truth
    if found is None:
        return None
    return regime_page.section(found, truth.change_points if truth else ())


def _mean_name(diagnosis: Diagnosis) -> str:
    large = diagnosis.decision.response.variant == "large"
    return "mean over joints, large actions" if large else "mean over joints"


def _joints(diagnosis: Diagnosis) -> list[int]:
    """Which joints are drawn, in their order: of many, those that changed most."""
    commanded = [joint for joint in diagnosis.joints if joint.now is not None]
    commanded.sort(key=lambda joint: (not joint.changed, -abs(joint.effect)))
    return sorted(joint.index for joint in commanded[:MOST_JOINTS])
