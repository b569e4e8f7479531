"""Figures of a study: what is on them, against numbers worked out another way."""

import re
from pathlib import Path

import made_up
import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from fallow.dynamics import Condition
from fallow.replay.rules import RULES
from fallow.report.figures import recency_advantage as sweeps
from fallow.report.figures import report_figure, return_curves
from fallow.report.figures.overview import overview
from fallow.report.figures.recency_advantage import PERMANENT, Series, SweepPoint
from fallow.report.figures.selector_agreement import agreement_bars
from fallow.report.names import condition_name, rule_name
from fallow.study.estimator import Agreement
from fallow.views import plotting
from fallow.views.rule_styles import (
    FALLBACK_COLOURS,
    colour_sheet,
    colour_variables,
    lighter,
    rule_style,
    rule_styles,
)

DEUTERANOPE = np.array(
    [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]
)
"""What most colour-blind eyes make of linear RGB (Machado and others, 2009)."""


def legend(figure: Figure) -> list[str]:
    return [t.get_text() for one in figure.legends for t in one.get_texts()]


def lines(figure: Figure) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The data of every named line of the first axes."""
    found = {}
    for line in figure.axes[0].get_lines():
        if not line.get_label().startswith("_"):
            found[line.get_label()] = (line.get_xdata(), line.get_ydata())
    return found


# -------------------------------------------------------------------- returns


def test_a_curve_is_the_mean_over_seeds_with_its_standard_error() -> None:
    rows = made_up.rows([made_up.Level("gain", "passive", 177, 20.0)])
    (curve,) = return_curves.curves_of(rows)
    assert curve.rule == "passive" and curve.n_seeds == 5
    assert curve.branch_frame.tolist() == list(made_up.FRAMES)
    # the nine evaluations since the shift rise by 10 around J; before it, 930 + seed
    assert curve.mean[:4].tolist() == [932.0] * 4
    np.testing.assert_allclose(curve.mean[4:], 177 + 10 * np.arange(-4, 5))
    # J of the seeds is 20 apart: variance 1000, so the error of the mean of five is
    np.testing.assert_allclose(curve.error[4:], np.sqrt(1000 / 5))


def test_returns_show_every_rule_the_change_and_where_the_gain_is_reduced() -> None:
    rows = [r for r in made_up.rows(made_up.table1()) if r.condition == "recurring"]
    figure = return_curves.curve_figure(
        return_curves.curves_of(rows), Condition.parse("recurring")
    )
    (axes,) = figure.axes
    assert list(lines(figure)) == [
        "Passive",
        "Recency",
        "Graded",
        "WMAR",
        "first change",
    ]
    assert legend(figure) == [*lines(figure), "changed body"]
    np.testing.assert_allclose(lines(figure)["Recency"][1][4:].mean(), 290)
    assert lines(figure)["first change"][0] == [40_000, 40_000]
    shades = [
        (patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches
    ]
    assert shades == [(40_000, 60_000), (80_000, 100_000), (120_000, 130_000)]
    bands = [c for c in axes.collections if isinstance(c, PolyCollection)]
    assert sum(len(band.get_paths()) > 0 for band in bands) == 4
    assert axes.get_xlabel() == "frames since the branch point"
    assert axes.get_ylabel() == "evaluation return"


@pytest.mark.parametrize(
    ("condition", "intervals"),
    [
        ("none", []),
        ("gain", [(40_000, 125_000)]),
        ("damage:shift_frame=10000", [(10_000, 125_000)]),
        (
            "recurring:period_frames=60000,shift_frame=20000",
            [(20_000, 80_000)],
        ),
        ("friction", []),
    ],
)
def test_shaded_intervals(condition: str, intervals: list) -> None:
    assert (
        return_curves.shifted_intervals(Condition.parse(condition), 125_000)
        == intervals
    )


def test_one_seed_has_a_line_and_no_band() -> None:
    rows = made_up.rows(made_up.table1()[:2], seeds=(3,))
    found = return_curves.curves_of(rows)
    assert all(np.isnan(curve.error).all() for curve in found)
    figure = return_curves.curve_figure(found, None)
    bands = [
        c for c in figure.axes[0].collections if any(len(p) for p in c.get_paths())
    ]
    assert bands == [] and len(lines(figure)) == 2


def test_the_highest_mark_is_not_cut() -> None:
    """Not even where a study has one evaluation yet."""
    frame, unknown = np.array([2]), np.array([np.nan])
    curves = [
        return_curves.Curve(rule, frame, np.array([mean]), unknown, 1)
        for rule, mean in (("passive", 244.0), ("recency", 224.0))
    ]
    (axes,) = return_curves.curve_figure(curves, None).axes
    mark = axes.transData.transform((2, 244))[1] + 3 * axes.figure.dpi / 72
    assert mark < axes.get_window_extent().y1


# -------------------------------------------------------------------- sweeps


POINTS = [
    SweepPoint(20_000, -191, 17, 0.54),
    SweepPoint(PERMANENT, 146, 38, 1.0),
    SweepPoint(80_000, -19, None, 0.87),
]


def drawn(draw, *series: Series) -> Figure:
    return sweeps.sweep_figure([(draw, series)])


def test_the_advantage_against_recurrence_has_the_auc_on_a_second_axis() -> None:
    figure = drawn(sweeps.plot_by_period, Series(10_000, "", tuple(POINTS)))
    first, second = figure.axes
    assert [t.get_text() for t in first.get_xticklabels()] == ["20k", "80k", "never"]
    (container,) = first.containers
    assert container[0].get_ydata().tolist() == [-191, -19, 146]
    ends = container[2][0].get_segments()
    np.testing.assert_allclose(ends[0][:, 1], [-208, -174])
    (auc,) = second.get_lines()
    assert list(auc.get_ydata()) == [0.54, 0.87, 1.0]
    assert second.get_ylabel() == "age–staleness AUC"
    assert first.get_ylabel() == "Recency advantage D"
    assert sorted(legend(figure)) == ["AUC (right axis)", "window 10k"]


def test_the_advantage_against_gain_grows_to_the_right() -> None:
    """Diamonds are the second set of trunks, in whatever order it comes."""
    first = Series(10_000, "A", (SweepPoint(1.0, -201, 25), SweepPoint(0.5, 146, 38)))
    second = Series(10_000, "B", (SweepPoint(0.6, -154, 36),))
    for order in ((first, second), (second, first)):
        (axes,) = drawn(sweeps.plot_by_gain, *order).axes
        assert axes.xaxis_inverted()
        assert {t.get_text() for t in axes.get_xticklabels()} == {"1", "0.6", "0.5"}
        markers = {c.get_label(): c[0].get_marker() for c in axes.containers}
        assert markers == {"window 10k, trunks A": "o", "window 10k, trunks B": "D"}


def test_the_advantage_against_window_has_a_line_for_each() -> None:
    narrow = Series(10_000, "", tuple(POINTS))
    wide = Series(20_000, "", tuple(POINTS[:1]))
    figure = drawn(sweeps.plot_by_window, narrow, wide)
    looks = [c[0] for c in figure.axes[0].containers]
    assert looks[0].get_color() != looks[1].get_color()
    assert looks[0].get_linestyle() != looks[1].get_linestyle()


def test_figure_4_is_one_figure_of_three_panels() -> None:
    gain = Series(10_000, "B", (SweepPoint(0.6, -154, 36),))
    period = Series(10_000, "A", tuple(POINTS))
    wide = Series(20_000, "B", tuple(POINTS[:2]))
    figure = sweeps.sweep_figure(
        [
            (sweeps.plot_by_period, [period]),
            (sweeps.plot_by_gain, [gain]),
            (sweeps.plot_by_window, [gain_like(gain), wide]),
        ]
    )
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert [title for title in titles if title] == ["(a)", "(b)", "(c)"]
    assert sorted(legend(figure)) == [
        "AUC (right axis)",
        "window 10k, trunks A",
        "window 10k, trunks B",
        "window 20k, trunks B",
    ]


def gain_like(series: Series) -> Series:
    return Series(series.window_transitions, series.trunk_set, tuple(POINTS[:2]))


# -------------------------------------------------------------------- the rest


def test_agreement_bars_end_in_fractions() -> None:
    bars = [Agreement("gain", 3, 5), Agreement("recurring", 0, 0)]
    (axes,) = agreement_bars([*bars, Agreement(None, 3, 5)]).axes
    assert [t.get_text() for t in axes.texts] == ["3/5", "0/0", "3/5"]
    assert [p.get_width() for p in axes.patches[3:]] == pytest.approx([0.6, 0.0, 0.6])
    names = [t.get_text() for t in axes.get_yticklabels()]
    assert names == ["Gain reduction", "Recurring", "all changes"]


def test_the_overview_names_what_it_shows() -> None:
    texts = {text.get_text() for text in overview().axes[0].texts}
    assert {"robot", "history", "rule", "agent", "Passive", "Recency"} <= texts


def test_rules_differ_in_colour_and_without_it() -> None:
    found = rule_styles([*RULES, "recency:window_transitions=20000"])
    signs = {(str(look.dash), look.marker, look.hollow) for look in found.values()}
    assert len(signs) == len(found)
    assert len({found[rule].colour for rule in RULES}) == len(RULES)
    assert all(RULES[rule].label and RULES[rule].colour for rule in RULES)
    paper = [to_rgb(found[rule].colour) for rule in list(found)[:4]]
    for eye in (np.eye(3), DEUTERANOPE):
        seen = np.array(paper) ** 2.2 @ eye.T
        gaps = np.linalg.norm(seen[:, None] - seen[None], axis=2)
        assert gaps[np.triu_indices(4, 1)].min() > 0.12


def test_unknown_rules_get_styles_that_depend_on_their_order_only() -> None:
    rules = ["mine", "recency:window_transitions=5", *(f"r{i}" for i in range(9))]
    found = rule_styles(rules)
    assert set(found) == set(rules) and found == rule_styles(rules)
    assert found["mine"].colour == FALLBACK_COLOURS[0]
    assert found["r0"] != found["r1"] != found["r2"]


def test_a_rule_without_a_colour_has_one_of_the_palette(monkeypatch) -> None:
    monkeypatch.setattr(RULES["graded"], "colour", "")
    assert rule_style("graded").colour in FALLBACK_COLOURS


def luminance(colour: str) -> float:
    """Relative luminance of WCAG."""
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4
              for c in to_rgb(colour)]  # fmt: skip
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def test_every_rule_colour_can_be_read_on_light_and_dark_pages() -> None:
    light, dark = luminance("#ffffff"), luminance("#14171a")
    for colour, name in colour_variables().items():
        assert (light + 0.05) / (luminance(colour) + 0.05) > 3.8, colour
        assert (luminance(lighter(colour)) + 0.05) / (dark + 0.05) > 4.5, colour
        assert colour_sheet().count(f"{name}: ") == 2


def test_points_say_their_values_where_they_are() -> None:
    rows = made_up.rows(made_up.table1()[:1])
    figure = return_curves.curve_figure(return_curves.curves_of(rows), None)
    svg = plotting.plain_svg(figure)
    marks = plotting.hover_marks(figure)
    assert marks.count("<title>") == len(made_up.FRAMES)
    assert "Passive, frame 90,000: 177 ± 14" in marks
    centres = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', marks)
    drawn = re.findall(r'<use [^>]*x="([\d.]+)" y="([\d.]+)"', svg)
    places = {(round(float(x)), round(float(y))) for x, y in drawn}
    near = {(x + i, y + j) for x, y in places for i in (-1, 0, 1) for j in (-1, 0, 1)}
    assert {(round(float(x)), round(float(y))) for x, y in centres} <= near
    page = plotting.for_page(svg, "x", marks=marks)
    assert page.index("<title>") < page.rindex("</svg>")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("recency:window_transitions=20000", "Recency (window 20k)"),
        ("recency:window_transitions=2048", "Recency (window 2,048)"),
        ("reset", "Reset-once"),
        ("adaptive:labels=true", "Adaptive (labels=true)"),
        ("mine:a=1", "mine (a=1)"),
        ("<b>:broken", "<b>:broken"),
    ],
)
def test_names_for_people(text: str, shown: str) -> None:
    assert rule_name(text) == shown


def test_names_of_conditions() -> None:
    assert condition_name("gain:g=0.7") == "Gain reduction (g=0.7)"
    assert condition_name("recurring:period_frames=60000") == "Recurring (period 60k)"
    assert condition_name("none") == "No change"


def test_a_picture_is_saved_in_three_formats_the_same_every_time(
    tmp_path: Path,
) -> None:
    def made(folder: str) -> list[bytes]:
        one = Series(10_000, "A", (SweepPoint(0.5, 146, 38),))
        figure = drawn(sweeps.plot_by_gain, one)
        picture = report_figure.ReportFigure("one", "title", "caption", figure)
        return [
            path.read_bytes() for path in report_figure.save(picture, tmp_path / folder)
        ]

    svg, png, pdf = made("a")
    assert svg.startswith(b"<?xml") and b"Recency advantage D" in svg
    assert pdf.startswith(b"%PDF")
    with Image.open(tmp_path / "a" / "one.png") as image:
        assert image.width == pytest.approx(200 * plotting.WIDTH_IN, abs=2)
        assert image.getpixel((0, 0))[:3] == (255, 255, 255)
    assert made("b") == [svg, png, pdf]
