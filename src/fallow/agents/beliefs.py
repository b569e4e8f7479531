"""What the trackers of a fleet reported, episode by episode, beside the truth.

A branch under the rule `adaptive` has a tracker. At the end of a phase its reports are
written to one CSV beside the fleet's table, so that pages need no histories for them.
"""

import csv
import io
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from fallow.core.errors import FallowError
from fallow.core.files import write_text

if TYPE_CHECKING:
    from fallow.agents.fleet import Fleet

BELIEFS = "beliefs.csv"


@dataclass(frozen=True)
class Belief:
    """One report of a branch's tracker."""

    branch: int
    """Index in the fleet."""
    episode: int
    """Index in the branch's replay, the trunk's episodes included."""
    state: str
    regime: int
    """Reported to be in force."""
    true_regime: int
    """Of the episode."""
    label: int
    """Of the episode at the end of the phase, after all corrections."""
    probability: float
    """Of the reported regime."""
    gain: str
    """Of every actuator, separated by slashes."""


def beliefs_of(fleet: "Fleet") -> list[Belief]:
    """All reports of a fleet's trackers, by branch and time."""
    found = []
    for branch, sampler in enumerate(fleet.buffer.samplers):
        if sampler.labeler is None:
            continue
        sampler.labeler.wait()
        ledger = sampler.ledger
        true, label = ledger.episode_regimes(), ledger.episode_labels()
        for report in sampler.labeler.log:
            episode = int(report["episode"])
            found.append(
                Belief(
                    branch,
                    episode,
                    report["state"],
                    int(report["regime"]),
                    int(true[episode]),
                    int(label[episode]),
                    round(float(report["probability"]), 6),
                    "/".join(f"{gain:g}" for gain in report["gain"]),
                )
            )
    return found


def write_beliefs(fleet: "Fleet", folder: Path) -> None:
    """Write the reports of a fleet's trackers; nothing where it has none."""
    beliefs = beliefs_of(fleet)
    if not beliefs:
        return
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(field.name for field in fields(Belief))
    table.writerows(astuple(belief) for belief in beliefs)
    write_text(folder / BELIEFS, text.getvalue())


def read_beliefs(path: Path) -> list[Belief]:
    """Read what `write_beliefs` wrote; empty where there is no file.

    Raises:
        FallowError: the file is damaged.
    """
    if not path.exists():
        return []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [_parsed(row) for row in csv.DictReader(file)]
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise FallowError(
            f"{path} cannot be read ({error}); remove it, and beliefs are left out"
        ) from None


def _parsed(row: dict[str, str]) -> Belief:
    return Belief(**{f.name: f.type(row[f.name]) for f in fields(Belief)})  # type: ignore[operator]
