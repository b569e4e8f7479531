"""A diagnosis as one self-contained page: no script, no font, no network."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from fallow import __version__
from fallow.diagnose import Diagnosis, Failure
from fallow.report import figures
from fallow.report.drawing import as_svg
from fallow.report.words import CAVEAT, advice, interval, listed, notes, number
from fallow.response.segments import MIN_SEGMENT, PENALTY_FACTOR, Z_LIMIT

TEMPLATE = Path(__file__).with_name("page.html")
SHEET = Path(__file__).with_name("page.css")
PLANE = "age-staleness AUC against magnitude, with both gates"
MOST_JOINTS = 12
"""Traces drawn for one log; of more joints, those that changed most."""


def render(results: Sequence[Diagnosis | Failure]) -> str:
    """The page for one log or several."""
    diagnoses = [r for r in results if isinstance(r, Diagnosis)]
    return filled(
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


def filled(template: Path, **content: Any) -> str:
    """A template with the common style sheet; all content is escaped but `Markup`."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters |= {"number": number, "listed": listed}
    sheet = Markup(SHEET.read_text(encoding="utf-8"))
    found = environment.from_string(template.read_text(encoding="utf-8"))
    return found.render(sheet=sheet, version=__version__, **content)


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
