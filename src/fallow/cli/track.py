"""`fallow track`: which regime a robot is in, while its log grows."""

import json
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from fallow.cli.columns import ColumnOptions
from fallow.core.errors import FallowError

if TYPE_CHECKING:
    from fallow.diagnosis.follow import LogFollower

KEEP, BAD_INPUT, DISCARD = 0, 2, 10


@dataclass(frozen=True, kw_only=True)
class TrackCommand(ColumnOptions):
    """Which regime is the robot in, what did it lose, and which episodes to keep?

    Prints a line when the regime changes or returns. Exit codes: 0, 2 for bad input and
    130 after Ctrl-C; with --ci also 10 if some episodes are not of the regime in force.
    """

    paths: tyro.conf.Positional[tuple[Path, ...]]
    """Logs of one run in order, or a folder of them; - is CSV or JSON lines on stdin.
    """
    follow: bool = False
    """Wait for more, until Ctrl-C or --idle-s."""
    idle_s: float | None = None
    """With --follow: stop after so many seconds without a new episode."""
    json: bool = False
    """Print one JSON object for each episode."""
    html: Path | None = None
    """Write one self-contained page, at every change and at the end."""
    state: Path | None = None
    """Save the tracker there; a later call continues after what was read."""
    ci: bool = False
    """Exit with 10 if some episodes do not belong to the regime in force."""
    false_alarms_per_1000: float = 1.0
    """False alarms that are acceptable in 1,000 episodes of an unchanged body."""

    def run(self) -> int:
        from fallow.diagnosis.follow import LogFollower
        from fallow.logs.following import Following
        from fallow.tracking import TrackerConfig

        if not self.paths:
            raise FallowError("name a log, e.g. fallow track run.fallow --follow")
        if self.idle_s is not None and not self.idle_s >= 0:
            raise FallowError(f"--idle-s is {self.idle_s:g}; choose 0 or more")
        config = TrackerConfig(false_alarms_per_1000=self.false_alarms_per_1000)
        following = Following(self.paths, self.columns(), self.follow, self.idle_s)
        log = LogFollower(following, self.state, config)
        try:
            self._follow(log)
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # until all is written
            self._end(log)
            raise
        return self._end(log)

    def _follow(self, log: "LogFollower") -> None:
        is_open = False
        for report in log:
            if self.json:
                print(json.dumps(report.content, allow_nan=False), flush=True)
            else:
                if log.opening and not is_open:
                    is_open = True
                    print(log.opening)
                    for note in log.notes:
                        print(f"note: {note}")
                if report.line:
                    print(report.line)
                sys.stdout.flush()
            if report.changed and self.html is not None and self.follow:
                self._write_page(log)

    def _end(self, log: "LogFollower") -> int:
        """Save, write the page, and print the summary; returns the exit code."""
        from fallow.diagnosis.regime_phrases import summary

        log.save()
        found = log.regimes()
        if self.html is not None:
            self._write_page(log)
        if not self.json:
            print(summary(found, log.n_bad))
        if log.n_bad:
            return BAD_INPUT
        return DISCARD if self.ci and found.is_ready and found.discards else KEEP

    def _write_page(self, log: "LogFollower") -> None:
        from fallow.core import files
        from fallow.diagnosis.regime_page import render

        assert self.html is not None
        page = render(log.regimes(), log.opening, list(log.events), log.n_bad)
        files.write_text(self.html, page)
