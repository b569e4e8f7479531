"""The Recency advantage against recurrence, gain and window: the paper's Fig. 4.

A point is a paired mean over seeds, D = J_recency - J_passive; above 0 Recency wins.
Diamonds are points of another set of trunks than the first, as in the paper.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fallow.study.plan import FIRST_SET
from fallow.study.sweeps import PERMANENT
from fallow.views.plotting import (
    AXIS,
    INK,
    RULE_LOOKS,
    WIDTH_IN,
    Look,
    legend_above,
    styled,
    thousands,
)

SWEEP_HEIGHT_IN = 2.9
COLOURS = tuple(RULE_LOOKS[rule].colour for rule in ("recency", "passive", "graded"))
"""By window, the smallest first."""
DASHES = ("-", "--", "-.")
AUC_LOOK = Look(AXIS, (0, (1, 1.2)), "x")


@dataclass(frozen=True)
class SweepPoint:
    """The advantage at one setting of what is varied."""

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
        """What a legend calls it."""
        trunks = f", trunks {self.trunk_set}" if self.trunk_set else ""
        return f"window {thousands(self.window_transitions)}{trunks}"


Sweep = Sequence[Series]


def by_period(axes: Axes, sweep: Sweep) -> None:
    """Against the recurrence period, with the age–staleness AUC on a second axis."""
    places = _draw_periods(axes, sweep)
    second = axes.twinx()
    second.spines["right"].set_visible(True)
    second.grid(False)
    seen = {p.x: p.auc for p in _points(sweep) if p.auc is not None}
    known = [x for x in places if x in seen]
    second.plot([places[x] for x in known], [seen[x] for x in known], **AUC_LOOK.line())
    second.set(ylim=(0.4, 1.02), ylabel="age–staleness AUC")
    if known:
        axes.plot([], [], label="AUC (right axis)", **AUC_LOOK.line())


def by_gain(axes: Axes, sweep: Sweep) -> None:
    """Against the gain left after a permanent change; larger changes to the right."""
    gains = sorted({point.x for point in _points(sweep)})
    _draw(axes, sweep, {gain: gain for gain in gains})
    axes.set_xlabel("gain g left after the change")
    axes.set_xticks(gains, [f"{gain:g}" for gain in gains])
    axes.invert_xaxis()


def by_window(axes: Axes, sweep: Sweep) -> None:
    """Against the recurrence period, one line for each window."""
    _draw_periods(axes, sweep)


Panel = tuple[Callable[[Axes, Sweep], None], Sweep]


def figure(panels: Sequence[Panel]) -> Figure:
    """The panels side by side, named (a), (b), (c) where there are several."""
    with styled():
        drawn = Figure(figsize=(WIDTH_IN * len(panels), SWEEP_HEIGHT_IN))
        every = []
        for place, (draw, sweep) in enumerate(panels):
            axes = drawn.add_subplot(1, len(panels), place + 1)
            draw(axes, sweep)
            if len(panels) > 1:
                axes.set_title(f"({'abc'[place]})", loc="left", fontsize=9.5)
            every.append(axes)
        n_series = {label for a in every for label in a.get_legend_handles_labels()[1]}
        if len(n_series) > 1:
            legend_above(drawn, *every, columns=6)
        return drawn


def _points(sweep: Sweep) -> Iterable[SweepPoint]:
    return (point for series in sweep for point in series.points)


def _draw_periods(axes: Axes, sweep: Sweep) -> dict[float, float]:
    """Periods side by side, evenly, the permanent change last."""
    periods = sorted({point.x for point in _points(sweep)})
    places: dict[float, float] = {x: place for place, x in enumerate(periods)}
    _draw(axes, sweep, places)
    names = ["never" if x == PERMANENT else thousands(x) for x in places]
    axes.set_xticks(list(places.values()), names)
    axes.set_xlabel("frames until the original body returns")
    return places


def _draw(axes: Axes, sweep: Sweep, places: Mapping[float, float]) -> None:
    axes.axhline(0, color=INK, linewidth=1)
    windows = sorted({series.window_transitions for series in sweep})
    for series in sweep:
        place = windows.index(series.window_transitions) % len(COLOURS)
        is_other = series.trunk_set not in ("", FIRST_SET)
        marker = "D" if is_other else "o"
        look = Look(COLOURS[place], DASHES[place], marker, hollow=is_other)
        ordered = sorted(series.points, key=lambda p: places[p.x])
        axes.errorbar(
            [places[p.x] for p in ordered],
            [p.mean for p in ordered],
            [p.error or 0.0 for p in ordered],
            label=series.name,
            capsize=2.5,
            elinewidth=1.2,
            **look.line(),
        )
    axes.set_ylabel("Recency advantage D")
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.margins(x=0.08, y=0.12)
