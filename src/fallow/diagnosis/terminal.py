"""A diagnosis on the terminal: tables and advice."""

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.text import Text

from fallow.core.text import counted
from fallow.diagnosis import tables
from fallow.diagnosis.phrases import advice, caveats, head, notes
from fallow.diagnosis.pipeline import Diagnosis, Failure
from fallow.diagnosis.regime_phrases import gains_table, regimes_table
from fallow.diagnosis.text_table import TextTable
from fallow.views.terminal_table import TerminalTable


def show(results: Sequence[Diagnosis | Failure], console: Console) -> None:
    """One log in full, several as one table of decisions."""
    only = results[0]
    if len(results) == 1 and isinstance(only, Diagnosis):
        console.print(in_full(only))
    else:
        console.print(overview(results))


def in_full(diagnosis: Diagnosis) -> RenderableType:
    """What was read, changes, actuators, the selector's gates, and the advice."""
    decision = diagnosis.decision
    settings = (
        f"series: {decision.response.variant}; scale: {decision.scale}; "
        f"stale by: {decision.stale_by}; {counted(len(decision.segments), 'segment')}"
    )
    return Group(
        Text(f"{diagnosis.log.source}: {head(diagnosis.log)}"),
        *(Text(f"note: {note}") for note in notes(diagnosis)),
        *_regimes(diagnosis),
        Text(),
        _rendered(tables.stretches_table(diagnosis)),
        Text(),
        _rendered(tables.joints_table(diagnosis)),
        Text(),
        _rendered(tables.gates_table(diagnosis)),
        Text(settings, style="dim"),
        Text(),
        Text(advice(diagnosis), style="bold"),
        *(Text(caveat, style="dim") for caveat in caveats(diagnosis)),
    )


def _regimes(diagnosis: Diagnosis) -> list[RenderableType]:
    """The tracker's regimes, where it had enough episodes."""
    found = diagnosis.regimes
    if found is None or not found.is_ready:
        return []
    shown: list[RenderableType] = [Text(), _rendered(regimes_table(found))]
    if found.in_force and gains_table(found).rows:
        shown += [Text(), _rendered(gains_table(found))]
    return shown


def overview(results: Sequence[Diagnosis | Failure]) -> RenderableType:
    """One row for each log, and what is wrong with the bad ones."""
    failures = [r for r in results if isinstance(r, Failure)]
    return Group(
        _rendered(tables.overview_table(results)),
        *(Text(f"bad input: {failure.reason}") for failure in failures),
    )


def _rendered(table: TextTable) -> TerminalTable:
    return TerminalTable(table.heads, table.rows)
