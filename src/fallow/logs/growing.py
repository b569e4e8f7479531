"""Logs that grow while they are read, an episode at a time, in bounded memory.

`read` of a source yields the episodes that have ended since the last
call, and with `is_final` also the one that is still running.
"""

import contextlib
import os
import select
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from fallow.core.errors import FallowError
from fallow.core.records import Episode
from fallow.core.text import printable
from fallow.logs import blocks
from fallow.logs.assemble import pair_up
from fallow.logs.columns import Columns, names
from fallow.logs.guess import choose
from fallow.logs.history import MAGIC, Header, History, episode_of
from fallow.logs.limits import Budget
from fallow.logs.readers import mcap, one_sentence, reader_of, recordings
from fallow.logs.readers.flat import episode_columns, episode_steps_s
from fallow.logs.readers.history import check_columns, table_of
from fallow.logs.readers.reader import head_of
from fallow.logs.table import MIN_ROWS, Array, LogTable, pieces
from fallow.logs.text_rows import RowFormat, filled, format_of

STDIN = Path("-")
TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson")
BLOCK_BYTES = 1 << 20
"""Text read at a time."""
MAX_LINE_BYTES = 1 << 20
MAX_BROKEN_LINES = 100
"""One after another; the rest of a text has other columns then."""
POLL_S = 0.2
"""Between two looks at a log that did not grow."""
REST_FACTOR = 5.0
"""A file that must be read completely is read again after this multiple of the time
that it took."""


@dataclass(frozen=True)
class LoggedEpisode:
    """One episode of T transitions and d actuators."""

    actuators: tuple[str, ...]
    velocity: np.ndarray  # (T + 1, d)
    action: np.ndarray  # (T, d)
    step_s: float | None = None
    """Time from one velocity to the next, where the log has it."""
    defect: str = ""
    """Why it cannot be used; it then has no transitions."""
    notes: tuple[str, ...] = ()
    """How the log was read."""


class Growing(Protocol):
    """A log that grows."""

    path: Path
    format: str
    is_over: bool
    """Whether nothing more can come."""

    def read(self, is_final: bool) -> Iterator[LoggedEpisode]:
        """The episodes that are new."""


def growing(path: Path, columns: Columns) -> Growing:
    """The source of a path, by its content; `-` is standard input.

    Raises:
        FallowError: it is not a log.
    """
    if path == STDIN:
        return GrowingRows(path, columns)
    with one_sentence(path):
        head = head_of(path)
        if head.startswith(MAGIC):
            return GrowingHistory(path, columns)
        if path.suffix.lower() in TEXT_SUFFIXES and b"\0" not in head:
            return GrowingRows(path, columns)
        return GrowingFile(path, columns, reader_of(path).name)


def _episodes(
    table: LogTable, columns: Columns, budget: Budget | None = None
) -> Iterator[LoggedEpisode]:
    chosen = choose(table, columns)
    paired = pair_up(table, chosen, budget)
    actuators = names(table, chosen.action)
    ends = np.cumsum(paired.n_velocities)
    steps = paired.step_s
    if steps is None or len(steps) != len(ends):
        steps = np.full(len(ends), table.control_step_s or np.nan)
    velocity = np.split(paired.velocity, ends[:-1])
    n_actions = np.maximum(paired.n_velocities - 1, 0)
    action = np.split(paired.action, np.cumsum(n_actions)[:-1])
    notes = table.notes + chosen.notes + paired.notes
    for v, a, step_s in zip(velocity, action, steps.tolist(), strict=True):
        known = step_s if np.isfinite(step_s) else None
        yield LoggedEpisode(actuators, v, a, known, notes=notes)


class GrowingHistory:
    """A history that a run is writing."""

    format = "history"

    def __init__(self, path: Path, columns: Columns) -> None:
        check_columns(path, columns)
        self.path, self._columns = path, columns
        self._scan = blocks.Scan()
        self._header: Header | None = None
        self.is_over = False

    def read(self, is_final: bool) -> Iterator[LoggedEpisode]:
        """A block that is not finished is left for later."""
        scan = self._scan
        _check_grown(self.path, scan.good_bytes)
        for payload in blocks.read(self.path, MAGIC, scan):
            if self._header is None:
                self._header = Header.from_json(payload)
                continue
            yield from self._episode(payload, self._header)
        if scan.damage and (is_final or not scan.cut_short):
            self.is_over = True
            if self._header is None:
                raise FallowError(f"{self.path} has no readable header: {scan.damage}")
            yield self._broken(f"{scan.damage}; the rest of {self.path} is not read")

    def _episode(self, payload: bytes, header: Header) -> Iterator[LoggedEpisode]:
        try:
            episode: Episode = replace(episode_of(payload, header), regime=None)
        except FallowError as error:
            yield self._broken(f"block {self._scan.n_blocks - 1} {error}")
            return
        history = History(header, (episode,))
        yield from _episodes(table_of(history, str(self.path)), self._columns)

    def _broken(self, reason: str) -> LoggedEpisode:
        assert self._header is not None
        d = len(self._header.actuators)
        empty = np.zeros((0, d))
        return LoggedEpisode(self._header.actuators, empty, empty, defect=reason)


class GrowingRows:
    """A CSV table or JSON lines, in a file or on standard input."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self.path, self._columns = path, columns
        self.is_over = False
        self.format = "text"
        self._source = "standard input" if path == STDIN else str(path)
        self._budget = Budget(self._source, columns.max_memory_bytes)
        self._place = 0
        self._rest = b""
        self._first: list[str] = []  # lines before the format is known
        self._rows: RowFormat | None = None
        self._n_broken = 0  # lines, up to the last one
        self._running = np.zeros((0, 0))  # (n, columns) rows of the running episode

    def read(self, is_final: bool) -> Iterator[LoggedEpisode]:
        """Lines without their end are left for later."""
        while block := self._block(is_final):
            lines = self._lines(block)
            if lines:
                yield from self._take(lines, False)
        if is_final or self.is_over:
            lines, self._rest = ([self._rest.decode("utf-8", "replace")], b"")
            yield from self._take(lines, True)

    def _block(self, is_final: bool) -> bytes:
        """The next bytes, none where there are none now."""
        if self.path != STDIN:
            _check_grown(self.path, self._place)
            with self.path.open("rb") as file:
                file.seek(self._place)
                block = file.read(BLOCK_BYTES)
            self._place += len(block)
            return block
        if self.is_over or not _is_ready(sys.stdin.fileno(), is_final):
            return b""
        block = os.read(sys.stdin.fileno(), BLOCK_BYTES)
        self.is_over = not block
        return block

    def _lines(self, block: bytes) -> list[str]:
        *whole, self._rest = (self._rest + block).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            raise FallowError(
                f"a line of {self._source} is longer than {MAX_LINE_BYTES:,} bytes; "
                "write one row for each time"
            )
        return [line.decode("utf-8", "replace") for line in whole]

    def _take(self, lines: list[str], is_final: bool) -> Iterator[LoggedEpisode]:
        lines = [line.rstrip("\r").lstrip("\ufeff") for line in lines if line.strip()]
        if self._rows is None:
            self._first += lines
            lines = self._first
            if not lines or not self._open(is_final):
                return
            lines = lines[self.format == "csv" :]
        assert self._rows is not None
        lines = self._rows.without_heads(self._source, lines)
        if lines:
            rows = self._rows.parse(lines)
            self._count_broken(rows, lines)
            self._budget.check(
                self._running.nbytes + rows.nbytes,
                "the rows of one episode (does a column say where episodes end?)",
            )
            known = self._running.reshape(-1, rows.shape[1])
            self._running = np.concatenate([known, rows])
        yield from self._complete(is_final)

    def _count_broken(self, rows: np.ndarray, lines: list[str]) -> None:
        """Raise where lines can no longer be read, say with other columns."""
        good = np.flatnonzero(~np.isnan(rows).all(axis=1))
        if len(good):
            self._n_broken = 0
        self._n_broken += len(rows) - (good[-1] + 1 if len(good) else 0)
        if self._n_broken >= MAX_BROKEN_LINES:
            raise FallowError(
                f"the last {self._n_broken:,} lines of {self._source} cannot be read "
                f"with the columns of its first line, e.g. "
                f"'{printable(lines[-1], 60)}'; split it where its columns change"
            )

    def _open(self, is_final: bool) -> bool:
        """Whether the first lines suffice to know the format."""
        second = self._first[1] if len(self._first) > 1 else None
        self._rows = format_of(self._source, self._first[0], second)
        if self._rows is None:
            if is_final:
                raise FallowError(f"{self._source} has a header and no rows")
            return False
        self.format = self._rows.name
        return True

    def _complete(self, is_final: bool) -> Iterator[LoggedEpisode]:
        """The episodes of the rows that have come; those still running stay."""
        stops = self._stops(is_final)
        if not len(stops):
            return
        rows, self._running = self._running[: stops[-1]], self._running[stops[-1] :]
        lengths = np.diff(stops, prepend=0)
        broken = np.add.reduceat(np.isnan(rows).all(axis=1), stops - lengths)
        found = _episodes(self._table(rows, lengths), self._columns)
        for episode, n_broken in zip(found, broken.tolist(), strict=True):
            if n_broken:
                reason = f"{n_broken} of its rows cannot be read"
                episode = replace(episode, defect=reason)
            yield episode

    def _stops(self, is_final: bool) -> np.ndarray:
        """(k,) where, in the rows that have come, each finished episode ends."""
        rows, columns = self._running, self._columns
        assert self._rows is not None
        n = len(rows)
        if columns.episode_steps is not None:
            return np.cumsum(pieces(n, columns.episode_steps))
        known = list(self._rows.names)
        number, ends = episode_columns(self._source, known, columns)
        if n == 0:
            return np.zeros(0, int)
        if number is not None:
            numbers = filled(rows[:, known.index(number)])
            if np.isnan(numbers[0]):
                raise FallowError(
                    f"{self._source}: the column '{number}' holds no numbers; choose "
                    "the one that numbers episodes with --episode"
                )
            stops = np.flatnonzero(np.diff(numbers)) + 1
        else:
            flags = np.nan_to_num(rows[:, [known.index(name) for name in ends]])
            stops = np.flatnonzero(flags.any(axis=1)) + 1
        begun = n - (stops[-1] if len(stops) else 0)
        if is_final and begun >= (1 if number is not None else MIN_ROWS):
            stops = np.append(stops, n)
        return stops

    def _table(self, rows: np.ndarray, lengths: np.ndarray) -> LogTable:
        form = self._rows
        assert form is not None

        def column(name: str) -> np.ndarray:
            return filled(rows[:, form.names.index(name)])

        def array(places: tuple[int, ...]) -> Array:
            columns = tuple(form.names[place] for place in places)
            first = places[0] if places else 0
            is_named = form.name == "csv"
            return Array(
                columns,
                lengths,
                lambda chosen: rows[:, [first + c for c in chosen]],
                is_named,
            )

        return LogTable(
            source=self._source,
            format=self.format,
            arrays={name: array(places) for name, places in form.arrays.items()},
            step_s=episode_steps_s(
                self._source, form.names, column, lengths, self._columns
            ),
        )


class GrowingFile:
    """A log of any other format, which is read whole whenever it has changed."""

    def __init__(self, path: Path, columns: Columns, format: str) -> None:
        self.path, self._columns, self.format = path, columns, format
        self.is_over = False
        self._n_read = 0
        self._stamp: tuple[int, int] | None = None
        self._rest_until = 0.0

    def read(self, is_final: bool) -> Iterator[LoggedEpisode]:
        """The last episode of a recording runs until the recording is final."""
        stamp = _stamp(self.path)
        waits = stamp == self._stamp or time.monotonic() < self._rest_until
        if waits and not is_final:
            return
        began = time.monotonic()
        try:
            with one_sentence(self.path):
                found = list(self._all())
        except FallowError:
            if is_final:
                raise
            found = []  # it is being written
        self._stamp = stamp
        took = time.monotonic() - began
        self._rest_until = time.monotonic() + REST_FACTOR * took
        runs = self.format in ("mcap", "ros") and not is_final
        new = found[self._n_read : len(found) - runs]
        self._n_read += len(new)
        yield from new

    def _all(self) -> Iterator[LoggedEpisode]:
        budget = Budget(str(self.path), self._columns.max_memory_bytes)
        if self.format == "mcap":
            openers: dict[bytes, recordings.Open] = {mcap.MAGIC: mcap.open_unfinished}
            table = recordings.read(self.path, self._columns, budget, "mcap", openers)
        else:
            table = reader_of(self.path).read(self.path, self._columns, budget)
        yield from _episodes(table, self._columns, budget)


def _check_grown(path: Path, n_read: int) -> None:
    """Raise if a file has fewer bytes than were read of it."""
    if path.stat().st_size < n_read:
        raise FallowError(
            f"{path} became shorter while it was read; was it replaced? Follow it "
            "again from its start"
        )


def _stamp(path: Path) -> tuple[int, int]:
    """Changes when a file or a folder of files does."""
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    found = []
    for file in files:
        with contextlib.suppress(OSError):
            found.append(file.stat())
    sizes, times = [s.st_size for s in found], [s.st_mtime_ns for s in found]
    return sum(sizes), max(times, default=0)


def _is_ready(descriptor: int, waits: bool) -> bool:
    """Whether something can be read without waiting; True where one is to wait."""
    if waits or os.name != "posix":
        return True
    return bool(select.select([descriptor], [], [], POLL_S)[0])
