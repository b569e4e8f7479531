"""The status of a study, read from its folder alone; imports no jax."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fallow.core.lock import is_held
from fallow.study.fleets import PlannedFleet
from fallow.study.plan import Plan
from fallow.study.store import FAILED, Study, is_done, read_status, read_study


@dataclass(frozen=True)
class FleetStatus:
    """The status of one fleet."""

    planned: PlannedFleet
    state: str
    """`done`, `running`, `stopped` (no process at work), `failed` or `left`."""
    stage: str = ""
    """`trunks`, `prefixes` or `branches`; empty before it starts."""
    frame: int = 0
    until_frame: int = 0
    updates_done: int = 0
    """Of its prefixes and branches."""
    updates_per_s: float = 0.0
    """Of all that it trains together, in the last session."""
    spent_s: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Of each stage's last session, by what they were spent on, and in total."""


@dataclass(frozen=True)
class Status:
    """The status of a study."""

    plan: Plan
    fleets: tuple[FleetStatus, ...]
    is_running: bool
    updates_done: int
    updates_total: int
    """Of all branches, and of the trunks and prefixes that they need."""

    def n_branches(self, *states: str) -> int:
        """Branches of the fleets in some states."""
        return sum(
            len(fleet.planned.branches)
            for fleet in self.fleets
            if fleet.state in states
        )

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return all(fleet.state == "done" for fleet in self.fleets)

    @property
    def updates_per_s(self) -> float:
        """Of the fleets running now; else of the one that ran last."""
        rates = [fleet.updates_per_s for fleet in self.fleets if fleet.updates_per_s]
        running = [
            fleet.updates_per_s for fleet in self.fleets if fleet.state == "running"
        ]
        return sum(running) or (rates[-1] if rates else 0.0)

    @property
    def seconds_left(self) -> float | None:
        """At the present pace; None where none is known."""
        left = self.updates_total - self.updates_done
        return left / self.updates_per_s if self.updates_per_s else None


def status_of(study: Study | str | Path) -> Status:
    """The status of the study in a folder.

    Raises:
        FallowError: there is no study.
    """
    if not isinstance(study, Study):
        study = read_study(study)
    fleets = tuple(_fleet(study, fleet) for fleet in study.fleets)
    trunks = {
        t.id: fleet.planned.cost.trunk_updates
        for fleet in fleets
        for t in fleet.planned.trunks
    }
    begun = {
        t.id for fleet in fleets if fleet.updates_done for t in fleet.planned.trunks
    }
    made = sum(
        n for id_, n in trunks.items() if id_ in begun or (study.store / id_).is_dir()
    )
    made += sum(_trunks_done(study, fleet) for fleet in fleets)
    return Status(
        plan=study.plan,
        fleets=fleets,
        is_running=is_held(study.lock),
        updates_done=made + sum(fleet.updates_done for fleet in fleets),
        updates_total=sum(trunks.values()) + sum(f.n_updates for f in study.fleets),
    )


def _fleet(study: Study, fleet: PlannedFleet) -> FleetStatus:
    folder = study.fleet_folder(fleet)
    saved = read_status(folder)
    rate = saved.get("session_updates", 0) / max(saved.get("session_s", 0.0), 1e-9)
    if is_done(folder):
        return FleetStatus(
            fleet,
            "done",
            updates_done=fleet.n_updates,
            updates_per_s=rate,
            spent_s=saved.get("spent_s", {}),
        )
    at_work = is_held(folder.with_name(f"{fleet.id}.lock"))
    idle = "failed" if (folder / FAILED).exists() else "stopped" if saved else "left"
    state = "running" if at_work else idle
    if not saved:
        return FleetStatus(fleet, state)
    return FleetStatus(
        fleet,
        state,
        saved["stage"],
        saved["frame"],
        saved["until_frame"],
        _updates_done(fleet, saved),
        rate,
        saved.get("spent_s", {}),
    )


def _updates_done(fleet: PlannedFleet, saved: Mapping[str, Any]) -> int:
    """Of prefixes and branches, when a learner had made as many as was saved."""
    done, left = 0, max(saved["n_updates"] - fleet.cost.trunk_updates, 0)
    for stage, company, each in fleet.stages()[1:]:
        if saved["stage"] in (stage, "branches"):
            done += min(left, each) * company
        left = max(left - each, 0)
    return done


def _trunks_done(study: Study, status: FleetStatus) -> int:
    """Updates of trunks that are still being trained."""
    if status.stage != "trunks":
        return 0
    saved: dict[str, Any] = read_status(study.fleet_folder(status.planned))
    missing = [t for t in status.planned.trunks if not (study.store / t.id).is_dir()]
    return int(saved.get("n_updates", 0)) * len(missing)
