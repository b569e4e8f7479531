"""Two studies side by side, on one page of the same kind."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fallow.report.cells import MeanCell, ReportTable, TableCell, TextCell, digits_for
from fallow.report.figures.report_figure import ReportFigure, file_name
from fallow.report.figures.return_curves import return_figures
from fallow.report.names import (
    baseline_of,
    condition_name,
    rule_name,
    rule_order,
    setting_order,
)
from fallow.report.page import PageContent, PageTable, write_page
from fallow.report.sections import return_section
from fallow.report.study_page import answer_of
from fallow.report.table_builders import sign_text
from fallow.study.results import StudyResults, read_study_results
from fallow.study.statistics import Setting, difference
from fallow.study.summary import Summary

NO_OVERLAP = "The two studies have no setting and rule in common."
NOTES = (
    "Differences are paired by seed and trunk within a study, mean ± s.e. over its "
    "seeds. Same sign: whether both means lie on one side of 0, even where an interval "
    "contains 0.",
)


def write_comparison(
    folder: str | Path,
    other: str | Path,
    until_frame: int | None = None,
    out: Path | None = None,
) -> Path:
    """Write `compare-OTHER.html` into the first study's folder, or into `out`.

    Raises:
        FallowError: as `read_study_results` does, for one of them.
    """
    one, second = (read_study_results(path, until_frame) for path in (folder, other))
    path = (out or one.folder) / f"compare-{file_name(second.name)}.html"
    return write_page(content_of(one, second), path)


def content_of(one: StudyResults, other: StudyResults) -> PageContent:
    """The findings of both, the differences that both have, and their returns."""
    names = [one.name, other.name]
    if names[0] == names[1]:
        names = [f"{study.name} ({study.folder})" for study in (one, other)]
    table = differences(one, other, names)
    answers = [
        answer_of(study, title, name="")
        for study, title in zip((one, other), names, strict=True)
    ]
    caveats = [
        f"{answer.title}: {line}"
        for answer in answers
        for line in (*answer.caveats, *answer.missing)
    ]
    return PageContent(
        title=" and ".join(names),
        about="Two studies side by side",
        answers=answers,
        tables=[PageTable(table)] if table.rows else [],
        sections=[return_section(_figures((one, other), names))],
        caveats=caveats if table.rows else [NO_OVERLAP, *caveats],
    )


def differences(
    one: StudyResults, other: StudyResults, names: Sequence[str]
) -> ReportTable:
    """Differences of every rule from the baseline, in both studies."""
    found: list[tuple[Setting, str, str, list[Summary]]] = []
    both = [study.returns for study in (one, other)]
    for setting in sorted(
        {s for returns in both for s in returns.settings}, key=setting_order
    ):
        rules = {r for returns in both for r in returns.rules(setting)}
        against = baseline_of(both[0], setting) or baseline_of(both[1], setting)
        for rule in sorted(rules - {against}, key=rule_order):
            if against is None:
                continue
            pair = [difference(returns, setting, rule, against) for returns in both]
            if all(gap.mean is not None for gap in pair):
                found.append((setting, rule, against, pair))
    digits = digits_for([gap.mean for *_, pair in found for gap in pair])
    rows = tuple(_row(*line, digits) for line in found)
    head = ("Where", "Change", "Difference", *names, "same sign")
    return ReportTable("Differences in both studies", head, rows, NOTES, 3)


def _row(
    setting: Setting, rule: str, against: str, pair: Sequence[Summary], digits: int
) -> tuple[TableCell, ...]:
    place = f"{setting.task}, {setting.agent}, {setting.preset}"
    return (
        TextCell(place),
        TextCell(condition_name(setting.condition)),
        TextCell(f"{rule_name(rule)} - {rule_name(against)}"),
        *(MeanCell.of(gap, digits, signed=True) for gap in pair),
        TextCell(sign_text(pair[0].mean, pair[1].mean, digits)),
    )


def _figures(
    studies: Sequence[StudyResults], names: Sequence[str]
) -> list[ReportFigure]:
    """Figures of both studies, those of one setting next to each other."""
    by_title = [
        {figure.title: figure for figure in return_figures(study)} for study in studies
    ]
    titles = dict.fromkeys(title for figures in by_title for title in figures)
    return [
        replace(
            figures[title],
            name=f"compare-{place}-{figures[title].name}",
            title=f"{title}, {name}",
        )
        for title in titles
        for place, (figures, name) in enumerate(zip(by_title, names, strict=True), 1)
        if title in figures
    ]
