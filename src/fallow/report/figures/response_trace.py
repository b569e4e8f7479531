"""The actuator response over episodes, with detected and recorded changes (Fig. 5a)."""

from collections.abc import Sequence

from fallow.diagnosis import figures
from fallow.report.figures.report_figure import ReportFigure, file_name
from fallow.report.names import condition_name
from fallow.study.estimator import SelectorResult
from fallow.views.numbers import listed

N_PREFILL = 5
"""Episodes of random actions, which are read and not shown."""
MOST_TRACES = 4


def trace_figures(evaluated: Sequence[SelectorResult]) -> list[ReportFigure]:
    """The first history of each condition."""
    first: dict[str, SelectorResult] = {}
    for result in evaluated:
        first.setdefault(result.case.setting.condition, result)
    return [_trace(result) for result in list(first.values())[:MOST_TRACES]]


def _trace(result: SelectorResult) -> ReportFigure:
    case = result.case
    condition = case.setting.condition
    figure = figures.trace(
        result.decision,
        result.truth,
        result.decision.response.mean,
        f"K, mean over joints, seed {case.seed}",
        N_PREFILL,
    )
    true = result.truth.change_points if result.truth else ()
    caption = (
        f"Changes: {_changes('detected', result.decision.change_points)}; "
        f"{_changes('recorded', true)}. "
        f"The selector would {result.decision.word} the old data."
    )
    name = f"response-{file_name(condition)}"
    return ReportFigure(name, condition_name(condition), caption, figure)


def _changes(word: str, episodes: tuple[int, ...]) -> str:
    return f"{word} at episode {listed(episodes)}" if episodes else f"none {word}"
