"""Two studies side by side, on one page of the same kind."""

from collections.abc import Sequence
from pathlib import Path

from fallow.report.cells import MeanCell, ReportTable, TableCell, Words, digits_for
from fallow.report.comparing import sign_words
from fallow.report.names import (
    baseline_of,
    condition_name,
    rule_name,
    rule_order,
    setting_order,
)
from fallow.report.pictures import return_pictures
from fallow.report.saving import Picture, file_name
from fallow.report.study_page import (
    HOW_TO_READ,
    RETURNS,
    Content,
    Section,
    verdict_of,
    write_page,
)
from fallow.study.results import StudyResults, read_study_results
from fallow.study.statistics import Setting, difference
from fallow.study.summary import Summary

NO_OVERLAP = "The two studies have no setting and rule in common."
NOTES = (
    "Differences are paired by seed and trunk within a study, mean ± s.e. over its "
    "seeds. Same sign: whether both means lie on one side of 0, even where an interval "
    "holds 0.",
)


def write_comparison(
    folder: str | Path, other: str | Path, until_frame: int | None = None
) -> Path:
    """Write `compare-OTHER.html` into the first study's folder.

    Raises:
        FallowError: as `read_study_results` does, for one of them.
    """
    studies = (
        read_study_results(folder, until_frame),
        read_study_results(other, until_frame),
    )
    second = file_name(studies[1].name)
    return write_page(
        content_of(*studies), studies[0].folder / f"compare-{second}.html"
    )


def content_of(one: StudyResults, other: StudyResults) -> Content:
    """Both verdicts, the differences they share, and their returns."""
    names = [one.name, other.name]
    if names[0] == names[1]:
        names = [f"{study.name} ({study.folder})" for study in (one, other)]
    table = differences(one, other, names)
    return Content(
        title=" and ".join(names),
        about="Two studies side by side",
        verdicts=[
            verdict_of(study, name)
            for study, name in zip((one, other), names, strict=True)
        ],
        tables=[table] if table.rows else [],
        sections=[_returns((one, other), names)],
        notes=() if table.rows else (NO_OVERLAP,),
    )


def differences(
    one: StudyResults, other: StudyResults, names: Sequence[str]
) -> ReportTable:
    """What every rule gained over the baseline, in both studies."""
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
            pair = [difference(own, setting, rule, against) for own in both]
            if all(own.mean is not None for own in pair):
                found.append((setting, rule, against, pair))
    digits = digits_for([own.mean for *_, pair in found for own in pair])
    rows = tuple(_row(*line, digits) for line in found)
    head = ("Where", "Change", "Difference", *names, "same sign")
    return ReportTable("What each rule gained, in both studies", head, rows, NOTES, 3)


def _row(
    setting: Setting, rule: str, against: str, pair: Sequence[Summary], digits: int
) -> tuple[TableCell, ...]:
    place = f"{setting.task}, {setting.agent}, {setting.preset}"
    return (
        Words(place),
        Words(condition_name(setting.condition)),
        Words(f"{rule_name(rule)} - {rule_name(against)}"),
        *(MeanCell.of(own, digits, signed=True) for own in pair),
        Words(sign_words(pair[0].mean, pair[1].mean, digits)),
    )


def _returns(studies: Sequence[StudyResults], names: Sequence[str]) -> Section:
    """Pictures of both studies, those of one setting next to each other."""
    drawn = [
        {picture.title: picture for picture in return_pictures(study)}
        for study in studies
    ]
    titles = dict.fromkeys(title for own in drawn for title in own)
    shown = [
        Picture(
            f"compare-{place}-{own[title].name}",
            f"{title}, {name}",
            own[title].caption,
            own[title].figure,
        )
        for title in titles
        for place, (own, name) in enumerate(zip(drawn, names, strict=True), start=1)
        if title in own
    ]
    return Section(RETURNS, HOW_TO_READ[RETURNS], shown)
