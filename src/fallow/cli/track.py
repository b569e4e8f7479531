"""`fallow track`: which regime a robot is in, while its log grows."""

import contextlib
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from fallow.cli.columns import ColumnOptions
from fallow.core import files
from fallow.core.errors import FallowError
from fallow.core.interrupts import deferred_interrupts, ended_like_ctrl_c

if TYPE_CHECKING:
    from fallow.diagnosis.follow import LogFollower

KEEP, BAD_INPUT, DISCARD = 0, 2, 10
SAVE_S = 30.0
"""Between two times that a followed log's state is saved without a change."""


@dataclass(frozen=True, kw_only=True)
class TrackCommand(ColumnOptions):
    """Which regime is the robot in, what did it lose, and which episodes to keep?

    Prints a line when the regime changes or returns. Exit codes: 0, 2 for bad input,
    and 130 after Ctrl-C; with --ci also 10 if some episodes are not of the regime in
    force.
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
    """Save the tracker there, also while following; a later call continues from it."""
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
        if self.idle_s is not None and not self.follow:
            raise FallowError("--idle-s ends the waiting of --follow; add --follow")
        for flag, path in (("--html", self.html), ("--state", self.state)):
            if path is not None:
                files.require_place(path, flag)
        config = TrackerConfig(false_alarms_per_1000=self.false_alarms_per_1000)
        following = Following(self.paths, self.columns(), self.follow, self.idle_s)
        log = LogFollower(following, self.state, config)
        try:
            with ended_like_ctrl_c():
                self._follow(log)
        except KeyboardInterrupt:
            if log.follower is not None:
                with deferred_interrupts():  # until all is written
                    self._end(log)
            raise
        except (FallowError, OSError):  # what was tracked so far is kept
            if log.follower is not None:
                with contextlib.suppress(FallowError, OSError):
                    self._keep(log)
            raise
        return self._end(log)

    def _follow(self, log: "LogFollower") -> None:
        is_open, saved_s = False, time.monotonic()
        missing = [str(path) for path in self.paths if path != Path("-")]
        if self.follow and not any(map(os.path.exists, missing)) and missing:
            print(f"waiting for {', '.join(missing)}", file=sys.stderr)
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
            if self.follow and report.changed:
                self._keep(log)
                saved_s = time.monotonic()
            elif self.follow and time.monotonic() - saved_s > SAVE_S:
                log.save()
                saved_s = time.monotonic()

    def _keep(self, log: "LogFollower") -> None:
        """Save the state and write the page."""
        log.save()
        if self.html is not None:
            self._write_page(log)

    def _end(self, log: "LogFollower") -> int:
        """Save, write the page, and print the summary; returns the exit code."""
        from fallow.diagnosis.regime_phrases import summary

        found = log.regimes()
        self._keep(log)
        if not self.json:
            print(summary(found, log.n_bad))
        if log.n_bad:
            return BAD_INPUT
        return DISCARD if self.ci and found.is_ready and found.discards else KEEP

    def _write_page(self, log: "LogFollower") -> None:
        from fallow.diagnosis.regime_page import render

        assert self.html is not None
        page = render(log.regimes(), log.opening, list(log.events), log.n_bad)
        files.write_text(self.html, page)
