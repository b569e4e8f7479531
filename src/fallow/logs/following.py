"""Reads logs one after another, and the last of them while it grows.

Paths are parts of one run in the order given. The files of a folder are parts too, in
the order of their names (`run2` before `run10`), and new ones are taken as they come.
"""

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fallow.core.errors import FallowError, sentence_of
from fallow.core.files import is_leftover
from fallow.core.text import printable
from fallow.logs.columns import Columns
from fallow.logs.growing import (
    POLL_S,
    STDIN,
    TEXT_SUFFIXES,
    Growing,
    LoggedEpisode,
    growing,
)
from fallow.logs.limits import is_regular
from fallow.logs.readers import is_log, resolved
from fallow.logs.readers.recordings import recordings_in

_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class FollowedItem:
    """Something that was read: an episode of a log, or a log that cannot be read."""

    source: Path
    episode: LoggedEpisode | None
    reason: str = ""
    """Why the log cannot be read."""
    format: str = ""


@dataclass
class Following:
    """Reads episodes from logs, in bounded memory; iterate over it once.

    Raises:
        FallowError: a path is not a log, or nothing was read.
    """

    paths: Sequence[Path]
    columns: Columns
    follow: bool = False
    """Whether to wait for more."""
    idle_s: float | None = None
    """Seconds without a new episode after which to stop waiting; None: never."""
    _sources: dict[Path, Growing] = field(default_factory=dict)
    _done: set[Path] = field(default_factory=set)

    def __iter__(self) -> Iterator[FollowedItem]:
        is_found, waits = False, self.follow
        heard = time.monotonic()
        while True:
            pending = [path for path in self._found() if path not in self._done]
            is_found = is_found or bool(pending)
            for path in pending:
                for part in self._read(path, not waits or path != pending[-1]):
                    heard = time.monotonic()
                    yield part
            if not waits or (is_found and self._is_over()):
                break
            idle = time.monotonic() - heard
            waits = self.idle_s is None or idle < self.idle_s  # else once more, to end
            time.sleep(POLL_S if waits else 0)
        if not is_found:
            listed = ", ".join(printable(str(path), 100) for path in self.paths)
            raise FallowError(f"there is no log of a known format at {listed}")

    def _read(self, path: Path, is_final: bool) -> Iterator[FollowedItem]:
        """New episodes of one log; a bad one in a folder is reported and left."""
        try:
            if path not in self._sources:
                self._sources[path] = growing(path, self.columns)
            source = self._sources[path]
            for episode in source.read(is_final):
                yield FollowedItem(path, episode, format=source.format)
        except (FallowError, OSError) as error:
            if path in self.paths:
                raise
            self._done.add(path)
            yield FollowedItem(path, None, printable(sentence_of(error)))
            return
        if is_final or source.is_over:
            self._done.add(path)

    def _is_over(self) -> bool:
        """Whether the last path is a source that has ended for good."""
        last = self.paths[-1]
        return last in self._done and not last.is_dir()

    def _found(self) -> list[Path]:
        """The logs that there are now, in order."""
        found: list[Path] = []
        for path in self.paths:
            if path == STDIN:
                found.append(path)
            elif (folder := resolved(path)).is_dir() and not _is_data_set(folder):
                found += sorted(filter(_is_part, folder.iterdir()), key=_natural)
            elif folder.exists() and folder.stat().st_size:
                found.append(path)
            elif not self.follow:
                raise FallowError(
                    f"there is no log at {printable(str(path))}, or it is empty; "
                    "--follow waits for it"
                )
        return found


def _is_data_set(folder: Path) -> bool:
    """Whether a folder is one log, as those of LeRobot and Minari are."""
    return is_log(folder) and not recordings_in(folder)


def _is_part(path: Path) -> bool:
    if path.name.startswith(".") or is_leftover(path):
        return False
    is_text = path.suffix.lower() in TEXT_SUFFIXES and is_regular(path)
    return is_log(path) or (is_text and path.stat().st_size > 0)


def _natural(path: Path) -> list[tuple[int, str]]:
    """Numbers in a name in their order."""
    parts = _DIGITS.split(path.name)
    return [(int(p), "") if p.isdecimal() else (-1, p) for p in parts]
