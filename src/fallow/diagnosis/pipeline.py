"""From logs to a decision: did the actuators change, when, by how much, and what now?

Imports neither jax nor mujoco; the page's figures are the only use of matplotlib.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fallow.core.errors import FallowError
from fallow.core.progress import Track, untracked
from fallow.diagnosis.decision import Decision, decide
from fallow.diagnosis.truth import Truth, truth_of
from fallow.logs.log import Log
from fallow.logs.readers import Columns, logs_in, read_log

KEEP, BAD_INPUT, DISCARD = 0, 2, 10
"""Exit codes of `fallow diagnose --ci`."""


@dataclass(frozen=True)
class Diagnosis:
    """One log, what was decided, and why."""

    log: Log
    decision: Decision
    truth: Truth | None


@dataclass(frozen=True)
class Failure:
    """One log among several that could not be diagnosed."""

    path: Path
    reason: str


def diagnose(
    path: str | Path,
    columns: Columns | None = None,
    variant: str = "joint",
    scale: str = "mad",
) -> Diagnosis:
    """Read a log and decide.

    Raises:
        FallowError: one sentence on what is wrong with the log.
    """
    log = read_log(path, columns)
    return diagnose_log(log, variant, scale)


def diagnose_log(log: Log, variant: str = "joint", scale: str = "mad") -> Diagnosis:
    """Decide from a log that is read already."""
    try:
        return Diagnosis(log, decide(log, variant, scale), truth_of(log))
    except FallowError as error:
        if str(error).startswith(log.source):
            raise
        raise FallowError(f"{log.source}: {error}") from None


def diagnose_all(
    paths: tuple[Path, ...],
    columns: Columns,
    variant: str,
    scale: str,
    track: Track = untracked,
) -> list[Diagnosis | Failure]:
    """Every log below some paths; among several, one that fails is a row as well.

    Raises:
        FallowError: there is no log, or the only one fails.
    """
    if not paths:
        raise FallowError("name a log, e.g. fallow diagnose run.fallow")
    found = logs_in(paths)
    results: list[Diagnosis | Failure] = []
    for path in track(found, "diagnosing"):
        try:
            results.append(diagnose(path, columns, variant, scale))
        except (FallowError, OSError) as error:
            if len(found) == 1:
                raise
            results.append(Failure(path, str(error)))
    return results


def exit_code(results: Iterable[Diagnosis | Failure], ci: bool) -> int:
    """2 if a log was bad; with `ci`, 10 if data should be discarded; else 0."""
    results = list(results)
    if any(isinstance(result, Failure) for result in results):
        return BAD_INPUT
    if ci and any(isinstance(r, Diagnosis) and r.decision.discard for r in results):
        return DISCARD
    return KEEP
