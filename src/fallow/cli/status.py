"""`fallow status`: how far a study is."""

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class StatusCommand:
    """Show the status of a study: done, running, left, and the time left."""

    folder: tyro.conf.Positional[Path]
    """Of the study."""

    def run(self) -> None:
        from rich.console import Console

        from fallow.console.study import show_status
        from fallow.study.status import status_of

        show_status(status_of(self.folder), Console(highlight=False))
