"""Ages of the steps that each rule samples, as shares of doubling bins."""

from collections.abc import Mapping

import numpy as np
from matplotlib.ticker import FuncFormatter

from fallow.report.names import rule_name, rule_order
from fallow.report.sampled_ages import SampledAges
from fallow.views.plotting import (
    PageFigure,
    legend_above,
    one_axes,
    styled,
    thousands,
)
from fallow.views.rule_styles import rule_styles

AGE_HEIGHT_IN = 2.6


def age_figure(by_rule: Mapping[str, SampledAges]) -> PageFigure:
    """The share of sampled steps by their age, one line for each rule."""
    with styled():
        figure, axes = one_axes(AGE_HEIGHT_IN)
        rules = sorted(by_rule, key=rule_order)
        styles = rule_styles(rules)
        for rule in rules:
            one, style = by_rule[rule], styles[rule]
            centre = np.sqrt(np.maximum(one.age_frames[:-1], 1) * one.age_frames[1:])
            name = rule_name(rule)
            axes.plot(centre, 100 * one.share, label=name, **style.line())
            for age, share in zip(centre, 100 * one.share, strict=True):
                text = f"{name}: {share:.0f} % at about {age:,.0f} frames"
                figure.add_hover(axes, age, share, text)
        axes.set(xscale="log", xlabel="age of a sampled step, in frames")
        axes.set(ylabel="share of samples [%]", ylim=(0, None))
        axes.xaxis.set_major_formatter(FuncFormatter(_frames))
        legend_above(figure, axes, columns=3)
        return figure


def _frames(value: float, _: object = None) -> str:
    return thousands(value) if value >= 1000 else f"{value:g}"
