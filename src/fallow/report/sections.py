"""The sections of a study's page: figures of each kind, and how to read them."""

from dataclasses import replace

from fallow.report.figures.beliefs import belief_figures
from fallow.report.figures.overview import overview
from fallow.report.figures.recency_advantage import sweep_figures
from fallow.report.figures.report_figure import ReportFigure, unique_names
from fallow.report.figures.return_curves import return_figures
from fallow.report.figures.stale_share import stale_figures
from fallow.report.figures.theory import theory_figures
from fallow.report.history_sections import age_section, film_section, selector_section
from fallow.report.page import Section
from fallow.study.results import StudyResults


def sections(study: StudyResults) -> list[Section]:
    """All sections in the order of the page; some may be empty."""
    found = [
        return_section(return_figures(study)),
        Section(
            "Recency advantage",
            "D is the return of Recency less that of Passive: above 0, training on "
            "recent data only gives more return than training on all data. Points are "
            "means over seeds of paired differences, bars one standard error.",
            sweep_figures(study),
        ),
        film_section(study),
        Section(
            "Stale share of samples",
            "Share of the sampled steps that were recorded under another regime than "
            "the present one, counted during training: 0 is all fresh, 1 all stale.",
            stale_figures(study),
        ),
        age_section(study),
        selector_section(study),
        Section(
            "Regimes that the tracker reported",
            "The rule Adaptive has no labels: a tracker recognises the regime from "
            "velocities and actions while the agent trains. The green area is the true "
            "regime, the line the reported one; the dotted line is the branch point.",
            belief_figures(study),
        ),
        Section(
            "Theory",
            "A bias–variance argument for when a window of recent data is better.",
            theory_figures(study),
        ),
        Section(
            "How replay rules work",
            "A rule selects which part of the history the agent samples. Blocks are "
            "history, oldest left, hatched where stale under the present body; the "
            "lines below show what two rules sample. After a permanent change, recent "
            "data is fresh data. When the change recurs, old data becomes valid again.",
            [ReportFigure("overview", "", "", overview())],
        ),
    ]
    return [replace(one, figures=unique_names(one.figures)) for one in found]


def return_section(figures: list[ReportFigure]) -> Section:
    """Evaluation returns over branch frames."""
    return Section(
        "Return before and after the change",
        "Evaluation return of each rule. Lines are means over seeds, bands one "
        "standard error; point at a mark to read its value. The vertical line is the "
        "first change; the body is changed where the background is shaded.",
        figures,
    )
