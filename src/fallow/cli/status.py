"""`fallow status`: the progress of a study."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

if TYPE_CHECKING:
    from fallow.study.status import Status


@dataclass(frozen=True)
class StatusCommand:
    """Show the status of a study: done, running, left, and the time left."""

    folder: tyro.conf.Positional[Path]
    """The study's folder."""
    json: bool = False
    """Print it as JSON."""

    def run(self) -> None:
        from rich.console import Console

        from fallow.console.study import show_status
        from fallow.study.status import status_of

        status = status_of(self.folder)
        if self.json:
            print(json.dumps(_numbers(status), indent=1))
        else:
            show_status(status, Console(highlight=False))


def _numbers(status: "Status") -> dict[str, Any]:
    """The status of a study, for programs."""
    states = ("done", "running", "stopped", "left", "failed")
    return {
        "study": status.plan.name,
        "branches": {state: status.n_branches(state) for state in states},
        "is_running": status.is_running,
        "is_done": status.is_done,
        "updates_done": status.updates_done,
        "updates_total": status.updates_total,
        "updates_per_s": status.updates_per_s,
        "seconds_left": status.seconds_left,
        "fleets": [
            {
                "id": each.planned.id,
                "state": each.state,
                "stage": each.stage,
                "frame": each.frame,
                "until_frame": each.until_frame,
                "branches": len(each.planned.branches),
                "spent_s": {stage: dict(s) for stage, s in each.spent_s.items()},
            }
            for each in status.fleets
        ],
    }
