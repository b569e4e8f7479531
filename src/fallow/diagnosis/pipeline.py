"""From logs to a diagnosis: did the actuators change, when and by how much?

Imports neither jax nor mujoco; the page's figures are the only use of matplotlib.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from fallow.core.errors import FallowError, sentence_of
from fallow.core.progress import Track, untracked
from fallow.core.text import printable
from fallow.diagnosis.changes import (
    ResponseChange,
    Stretch,
    boundaries_of,
    stretches_of,
)
from fallow.diagnosis.decision import Decision, decide
from fallow.diagnosis.joints import JointResponse, joints_of
from fallow.diagnosis.regimes import Regimes, regimes_of
from fallow.diagnosis.segments import Segment, segments_of
from fallow.diagnosis.truth import Truth, truth_of
from fallow.logs.log import Log
from fallow.logs.readers import Columns, logs_in, read_log

KEEP, BAD_INPUT, DISCARD = 0, 2, 10
"""Exit codes of `fallow diagnose --ci`."""


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """One log, its regimes, the selector's decision, and each actuator's response."""

    log: Log
    decision: Decision
    truth: Truth | None
    uses_tracker: bool = True
    """Whether the verdict rests on the tracker's regimes."""

    @cached_property
    def regimes(self) -> Regimes | None:
        """Regimes by the online tracker; None if it is not used."""
        return regimes_of(self.log) if self.uses_tracker else None

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The segments of the response in the unit of its steps; not the selector's."""
        response = self.decision.response
        return segments_of(response.series, response.mean, "steps")

    @cached_property
    def boundaries(self) -> tuple[ResponseChange, ...]:
        """Every boundary between two `segments`, abrupt or not."""
        return boundaries_of(self.decision.response, self.segments)

    @property
    def changes(self) -> tuple[ResponseChange, ...]:
        """The boundaries at which the response of some joint changes abruptly."""
        return tuple(change for change in self.boundaries if change.abrupt)

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """The episodes between abrupt changes."""
        return stretches_of(self.decision.response, self.boundaries)

    @cached_property
    def joints(self) -> tuple[JointResponse, ...]:
        """One row for each actuator: K before and now, and the share lost."""
        response = self.decision.response
        return joints_of(response, self.boundaries, self.log.actuators)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON; what `--json` prints."""
        from fallow.diagnosis.serialize import as_json

        return as_json(self)

    def __repr__(self) -> str:
        from fallow.diagnosis.phrases import advice

        return f"<Diagnosis of {self.log.source}: {advice(self)}>"

    def _repr_html_(self) -> str:
        """A summary for notebooks: no style sheet, no script, no colours."""
        from fallow.diagnosis.page import summary

        return summary(self)


@dataclass(frozen=True)
class Failure:
    """One log among several that could not be diagnosed."""

    source: str
    """Its path, printable."""
    reason: str
    """One sentence, printable."""

    @property
    def name(self) -> str:
        """The last part of its path."""
        return Path(self.source).name

    @classmethod
    def of(cls, path: Path, error: Exception) -> "Failure":
        """The failure to read or diagnose a path."""
        return cls(printable(str(path)), printable(sentence_of(error)))


def diagnose(
    data: Any,
    *,
    velocity: str | Sequence[str] | None = None,
    action: str | Sequence[str] | None = None,
    episode: str | None = None,
    time: str | None = None,
    episode_steps: int | None = None,
    **options: Any,
) -> Diagnosis:
    """Diagnose a log: a path, a DataFrame, a dictionary of arrays, or a `Log`.

    Args:
        data: what to read; formats of files as for `fallow diagnose`.
        velocity: velocity columns, in the order of the actions that drive them; a list
            of names or the text that the command line takes. Guessed unless given.
        action: action columns, likewise.
        episode: the column that numbers the episodes.
        time: the column of times in seconds.
        episode_steps: cuts a recording without episodes into pieces of so many rows.
        **options: other fields of `fallow.logs.columns.Columns`, and `variant`,
            `scale`, `stale_by` and `tracker`, as for `fallow diagnose`.

    Returns:
        The regimes and changes found, what each actuator lost, and the selector's
        decision.

    Raises:
        FallowError: one sentence on what is wrong with the log.
    """
    named = {field.name for field in fields(Columns)} & set(options)
    reading = {name: options.pop(name) for name in named}
    columns = Columns(
        _listed(velocity), _listed(action), episode, time, episode_steps, **reading
    )
    return diagnose_log(_log_of(data, columns), **options)


def diagnose_log(
    log: Log,
    variant: str = "joint",
    scale: str = "mad",
    stale_by: str = "mean",
    tracker: bool = True,
) -> Diagnosis:
    """Diagnose a log that is in memory; without `tracker` by its response alone.

    Raises:
        FallowError: one sentence that begins with the log's source.
    """
    try:
        decision = decide(log, variant, scale, stale_by)
        return Diagnosis(log, decision, truth_of(log), tracker)
    except FallowError as error:
        if str(error).startswith(log.source):
            raise
        raise FallowError(f"{log.source}: {error}") from None


def diagnose_all(
    paths: Sequence[Path], columns: Columns, track: Track = untracked, **settings: Any
) -> list[Diagnosis | Failure]:
    """Diagnose every log below some paths; among several, a bad one is a `Failure`.

    Raises:
        FallowError: there is no path, or the only log is bad.
    """
    if not paths:
        raise FallowError("name a log, e.g. fallow diagnose run.fallow")
    found: list[Path | Failure] = []
    for path in paths:
        try:
            found += logs_in((path,))
        except (FallowError, OSError) as error:
            found.append(Failure.of(path, error))
    results = [_result(path, columns, settings) for path in track(found, "diagnosing")]
    if len(results) == 1 and isinstance(results[0], Failure):
        raise FallowError(results[0].reason)
    return results


def exit_code(results: Iterable[Diagnosis | Failure], ci: bool) -> int:
    """2 if a log was bad; with `ci`, 10 if some episodes are to go; else 0."""
    from fallow.diagnosis.recommendation import recommendation

    results = list(results)
    if any(isinstance(result, Failure) for result in results):
        return BAD_INPUT
    found = [recommendation(r) for r in results if ci and isinstance(r, Diagnosis)]
    return DISCARD if "discard" in found else KEEP


def _result(
    path: Path | Failure, columns: Columns, settings: dict[str, Any]
) -> Diagnosis | Failure:
    if isinstance(path, Failure):
        return path
    try:
        found = diagnose_log(read_log(path, columns), **settings)
        _ = found.regimes  # while progress is shown
        return found
    except (FallowError, OSError) as error:
        return Failure.of(path, error)


def _log_of(data: Any, columns: Columns) -> Log:
    if isinstance(data, Log):
        if columns != Columns():
            raise FallowError(
                f"{data.source}: a Log has its columns already; give the columns to "
                "fallow.read_log instead"
            )
        return data
    if isinstance(data, str | os.PathLike):
        return read_log(Path(data), columns)
    from fallow.logs import from_data

    return from_data(data, columns)


def _listed(columns: str | Sequence[str] | None) -> str | None:
    """A list of columns as the command line writes it."""
    if columns is None or isinstance(columns, str):
        return columns
    return ",".join(str(column) for column in columns)
