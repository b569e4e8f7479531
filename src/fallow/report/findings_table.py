"""The findings as a table: difference, probability of improvement, mean and IQM."""

from fallow.report.cells import (
    DASH,
    CountCell,
    IntervalCell,
    MeanCell,
    NumberCell,
    ReportTable,
    TableCell,
    TextCell,
)
from fallow.report.findings import (
    Finding,
    SettingFindings,
    StudyFindings,
    interquartile_mean,
)
from fallow.report.names import condition_name, rule_name, where
from fallow.report.phrases import certainty, overall

TITLE = "Returns and differences"
HEAD = (
    "95 % interval",
    "result",
    "seeds higher",
    "P(improvement)",
    "mean return",
    "IQM",
)
NOTE = (
    "Return is the mean over the evaluations after the change; mean ± s.e. and "
    "interquartile mean (IQM) over seeds. Differences are paired by seed and trunk. "
    "Clear: the 95 % t interval of the difference excludes 0. P(improvement): share of "
    "all pairs of seeds in which the rule has the higher return; ties count half."
)


def findings_table(found: StudyFindings) -> ReportTable:
    """A row for each setting and rule, the rule compared with first."""
    several = len({where(part.setting) for part in found.settings}) > 1
    labels = ("Where", "Change", "Rule") if several else ("Change", "Rule")
    against = {part.against for part in found.settings}
    name = rule_name(against.pop()) if len(against) == 1 else "first rule"
    head = (*labels, f"difference from {name}", *HEAD)
    rows = [
        row
        for part in found.settings
        for row in _rows(part, several, found.digits)
        if part.findings
    ]
    return ReportTable(
        TITLE, head, tuple(rows), (NOTE, *overall(found.findings)), len(labels)
    )


def _rows(
    part: SettingFindings, several: bool, digits: int
) -> list[tuple[TableCell, ...]]:
    compared: dict[str, Finding | None] = {part.against: None}
    compared |= {one.rule: one for one in part.findings}
    place = (where(part.setting),) if several else ()
    names = (*place, condition_name(part.setting.condition))
    rows = []
    for index, (rule, finding) in enumerate(compared.items()):
        reached = part.reached[rule]
        cells: list[TableCell] = [TextCell(name, blank=index > 0) for name in names]
        cells += [TextCell(rule_name(rule)), *_difference(finding, digits)]
        iqm = NumberCell(interquartile_mean(reached.values), digits)
        rows.append((*cells, MeanCell.of(reached, digits), iqm))
    return rows


def _difference(finding: Finding | None, digits: int) -> tuple[TableCell, ...]:
    if finding is None:
        return (
            MeanCell(None),
            IntervalCell(None),
            TextCell(DASH),
            CountCell(0, 0),
            NumberCell(None),
        )
    return (
        MeanCell.of(finding.difference, digits, signed=True),
        IntervalCell(finding.interval, digits),
        TextCell("equal" if finding.equal else certainty(finding) or DASH),
        CountCell(*finding.signs),
        NumberCell(finding.improvement),
    )
