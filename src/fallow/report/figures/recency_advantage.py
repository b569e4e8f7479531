"""The Recency advantage against recurrence, gain and window: the paper's Fig. 4.

A point is a paired mean over seeds, D = J_recency - J_passive; above 0 Recency wins.
Diamonds are points of the second set of trunks, as in the paper.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from fallow.report.figures.report_figure import ReportFigure, file_name
from fallow.report.names import recency_rules
from fallow.study.estimator import RECENCY
from fallow.study.plan import FIRST_SET
from fallow.study.results import StudyResults
from fallow.study.statistics import NO_CHANGE, Setting, difference, setting_auc
from fallow.study.sweeps import PERMANENT, gain_of, period_of, window_of
from fallow.views.plotting import (
    AXIS,
    INK,
    WIDTH_IN,
    PageFigure,
    SeriesStyle,
    legend_above,
    styled,
    thousands,
)
from fallow.views.rule_styles import rule_colour

SWEEP_HEIGHT_IN = 2.9
COLOURS = tuple(rule_colour(rule) for rule in ("recency", "passive", "graded"))
"""By window, the smallest first."""
DASHES = ("-", "--", "-.")
FEWEST_POINTS = 3
"""A sweep of fewer settings is not drawn."""
AUC_STYLE = SeriesStyle(AXIS, (0, (1, 1.2)), "x")


@dataclass(frozen=True)
class SweepPoint:
    """The advantage at one setting of the swept quantity."""

    x: float
    """A period in frames, `PERMANENT`, or a gain."""
    mean: float
    error: float | None
    """Standard error over seeds; None: one seed."""
    auc: float | None = None
    """Age–staleness AUC, averaged over evaluations and seeds."""


@dataclass(frozen=True)
class Series:
    """Points of one window of Recency and one set of trunks."""

    window_transitions: int
    trunk_set: str
    """Empty where a study has one set only."""
    points: tuple[SweepPoint, ...]

    @property
    def name(self) -> str:
        """The name in a legend."""
        trunks = f", trunks {self.trunk_set}" if self.trunk_set else ""
        return f"window {thousands(self.window_transitions)}{trunks}"


Sweep = Sequence[Series]
SweptValue = Callable[[str], float | None]
"""The place of a condition along a sweep; None: it has none."""


def plot_by_period(axes: Axes, sweep: Sweep) -> None:
    """Against the recurrence period, with the age–staleness AUC on a second axis."""
    places = _plot_periods(axes, sweep)
    second = axes.twinx()
    second.spines["right"].set_visible(True)
    second.grid(False)
    seen = {p.x: p.auc for p in _points(sweep) if p.auc is not None}
    known = [x for x in places if x in seen]
    second.plot(
        [places[x] for x in known], [seen[x] for x in known], **AUC_STYLE.line()
    )
    second.set(ylim=(0.4, 1.02), ylabel="age–staleness AUC")
    if known:
        axes.plot([], [], label="AUC (right axis)", **AUC_STYLE.line())


def plot_by_gain(axes: Axes, sweep: Sweep) -> None:
    """Against the gain left after a permanent change; larger changes to the right."""
    gains = sorted({point.x for point in _points(sweep)})
    _plot(axes, sweep, {gain: gain for gain in gains})
    axes.set_xlabel("gain g left after the change")
    axes.set_xticks(gains, [f"{gain:g}" for gain in gains])
    axes.invert_xaxis()


def plot_by_window(axes: Axes, sweep: Sweep) -> None:
    """Against the recurrence period, one line for each window."""
    _plot_periods(axes, sweep)


Panel = tuple[Callable[[Axes, Sweep], None], Sweep]


def sweep_figure(panels: Sequence[Panel]) -> PageFigure:
    """The panels side by side, named (a), (b), (c) where there are several."""
    with styled():
        figure = PageFigure(figsize=(WIDTH_IN * len(panels), SWEEP_HEIGHT_IN))
        every = []
        for place, (plot, sweep) in enumerate(panels):
            axes = figure.add_subplot(1, len(panels), place + 1)
            plot(axes, sweep)
            _add_hover(figure, axes)
            if len(panels) > 1:
                axes.set_title(f"({'abc'[place]})", loc="left", fontsize=9.5)
            every.append(axes)
        n_series = {label for a in every for label in a.get_legend_handles_labels()[1]}
        if len(n_series) > 1:
            legend_above(figure, *every, columns=6)
        return figure


def _add_hover(figure: PageFigure, axes: Axes) -> None:
    """The value of every point that has an error bar."""
    ticks = [text.get_text() for text in axes.get_xticklabels()]
    names = dict(zip(axes.get_xticks(), ticks, strict=True))
    for container in axes.containers:
        line, _, bars = container
        for (x, y), ends in zip(line.get_xydata(), bars[0].get_segments(), strict=True):
            error = (ends[1][1] - ends[0][1]) / 2
            text = f"{container.get_label()}, {names[x]}: D = {y:+.0f} ± {error:.0f}"
            figure.add_hover(axes, x, y, text)


def _points(sweep: Sweep) -> Iterable[SweepPoint]:
    return (point for series in sweep for point in series.points)


def _plot_periods(axes: Axes, sweep: Sweep) -> dict[float, float]:
    """Periods side by side, evenly, the permanent change last."""
    periods = sorted({point.x for point in _points(sweep)})
    places: dict[float, float] = {x: place for place, x in enumerate(periods)}
    _plot(axes, sweep, places)
    names = ["never" if x == PERMANENT else thousands(x) for x in places]
    axes.set_xticks(list(places.values()), names)
    axes.set_xlabel("frames until the original body returns")
    return places


def _plot(axes: Axes, sweep: Sweep, places: Mapping[float, float]) -> None:
    axes.axhline(0, color=INK, linewidth=1)
    windows = sorted({series.window_transitions for series in sweep})
    for series in sweep:
        place = windows.index(series.window_transitions) % len(COLOURS)
        is_other = series.trunk_set not in ("", FIRST_SET)
        marker = "D" if is_other else "o"
        style = SeriesStyle(COLOURS[place], DASHES[place], marker, hollow=is_other)
        ordered = sorted(series.points, key=lambda p: places[p.x])
        axes.errorbar(
            [places[p.x] for p in ordered],
            [p.mean for p in ordered],
            [p.error or 0.0 for p in ordered],
            label=series.name,
            capsize=2.5,
            elinewidth=1.2,
            **style.line(),
        )
    axes.set_ylabel("Recency advantage D")
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.margins(x=0.08, y=0.12)


def sweep_figures(study: StudyResults) -> list[ReportFigure]:
    """The Recency advantage against recurrence, gain and window."""
    places = _places(study)
    found: list[ReportFigure] = []
    for place, settings in places.items():
        ending = f" ({', '.join(place)})" if len(places) > 1 else ""
        found += _sweeps_of(study, settings, file_name(" ".join(place)), ending)
    return found


def _sweeps_of(
    study: StudyResults, settings: Sequence[Setting], file: str, ending: str
) -> list[ReportFigure]:
    """The figure of one task, agent and preset, with a panel for each sweep."""
    windows = recency_rules(study.returns, settings)
    plain = [RECENCY] if RECENCY in windows else windows[:1]
    periods = _series(study, settings, plain, period_of)
    gains = _series(study, settings, plain, gain_of)
    by_window = _series(study, settings, windows, period_of)
    panels: list[Panel] = []
    captions = []
    if _n_places(periods) >= FEWEST_POINTS:
        panels.append((plot_by_period, periods))
        captions.append(
            "By recurrence period. The dotted line is the age–staleness AUC: 1 where "
            "all stale data is older than all fresh data, 0.5 where age carries no "
            "information. The period also sets how long each regime lasts."
        )
    if _n_places(gains) >= FEWEST_POINTS:
        panels.append((plot_by_gain, gains))
        captions.append("By the gain that a permanent change leaves.")
    if len(windows) > 1 and sum(len(s.points) > 1 for s in by_window) > 1:
        panels.append((plot_by_window, by_window))
        captions.append("By recurrence period and window.")
    if not panels:
        return []
    if len(panels) > 1:
        captions = [
            f"({letter}) {c}" for letter, c in zip("abc", captions, strict=False)
        ]
    if any(series.trunk_set for _, sweep in panels for series in sweep):
        captions.append("Diamonds are the second set of trunks.")
    return [
        ReportFigure(
            f"advantage-{file}",
            f"Recency advantage{ending}",
            " ".join(captions),
            sweep_figure(panels),
            wide=len(panels) > 1,
        )
    ]


def _series(
    study: StudyResults,
    settings: Sequence[Setting],
    rules: Sequence[str],
    swept: SweptValue,
) -> list[Series]:
    """By window and set of trunks; `none` gives way to a gain of 1 that was run."""
    found: dict[tuple[int, str], dict[float, SweepPoint]] = defaultdict(dict)
    ordered = sorted(settings, key=lambda setting: setting.condition != NO_CHANGE)
    for rule in rules:
        for setting in ordered:
            x = swept(setting.condition)
            advantage = difference(study.returns, setting, rule)
            if x is None or advantage.mean is None:
                continue
            auc = setting_auc(study.returns, setting)
            point = SweepPoint(x, advantage.mean, advantage.se, auc)
            found[window_of(rule) or 0, setting.trunk_set][x] = point
    return [Series(*key, tuple(points.values())) for key, points in found.items()]


Place = tuple[str, str, str]


def _places(study: StudyResults) -> dict[Place, list[Setting]]:
    """Settings by task, agent and preset."""
    found: dict[Place, list[Setting]] = defaultdict(list)
    for setting in study.returns.settings:
        found[setting.task, setting.agent, setting.preset].append(setting)
    return found


def _n_places(sweep: Sweep) -> int:
    return len({point.x for series in sweep for point in series.points})
