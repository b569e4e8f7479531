"""MCAP recordings of joint states and commands, in ROS 2's CDR, ROS 1's or JSON."""

import contextlib
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fallow.core.errors import FallowError
from fallow.logs.columns import Columns
from fallow.logs.limits import Budget
from fallow.logs.readers import messages, recordings
from fallow.logs.readers.reader import Reader, needs
from fallow.logs.readers.unpack import unpack
from fallow.logs.streams import Collector
from fallow.logs.table import LogTable

MAGIC = b"\x89MCAP0\r\n"
ENCODINGS = ("cdr", "ros1", "json")


def matches(path: Path, head: bytes) -> bool:
    """A recording, or a folder of nothing but recordings."""
    if path.is_dir():
        return recordings.has_only(path, ".mcap")
    return head.startswith(MAGIC)


def read(path: Path, columns: Columns, budget: Budget) -> LogTable:
    """The recordings in the order of their first messages."""
    return recordings.read(path, columns, budget, "mcap", {MAGIC: open_mcap})


def open_mcap(path: Path, collector: Collector, budget: Budget) -> None:
    """Add the messages about joints of one file to the collector.

    Raises:
        FallowError: the file ends in the middle of a record, as after a crash.
    """
    try:
        _collect(path, collector, budget)
    except needs("mcap.exceptions", "mcap").EndOfFile:
        raise FallowError(
            f"{path} is cut short: it ends in the middle of a record; repair it with "
            "mcap recover, or read what it has with fallow track"
        ) from None


def open_unfinished(path: Path, collector: Collector, budget: Budget) -> None:
    """The same of a file that is being written, as far as it goes."""
    with contextlib.suppress(needs("mcap.exceptions", "mcap").EndOfFile):
        _collect(path, collector, budget)


def _collect(path: Path, collector: Collector, budget: Budget) -> None:
    schemas: dict[int, Any] = {}
    channels: dict[int, Any] = {}
    records = needs("mcap.records", "mcap")
    with path.open("rb") as file:
        for record in _records(file, budget):
            if isinstance(record, records.Schema):
                schemas[record.id] = record
            elif isinstance(record, records.Channel):
                channels[record.id] = record
            elif isinstance(record, records.Message):
                channel = channels.get(record.channel_id)
                if channel is None:
                    raise FallowError(f"{path} has a message without its channel")
                _add(collector, channel, schemas.get(channel.schema_id), record)


def _add(collector: Collector, channel: Any, schema: Any, message: Any) -> None:
    encoding = channel.message_encoding
    kind = messages.kind_of(schema.name) if schema is not None else None
    if encoding not in ENCODINGS or (kind is None and encoding != "json"):
        return
    content = messages.decode(encoding, kind or "", message.data)
    messages.add(collector, channel.topic, message.log_time, content, kind or "")


def _records(file: Any, budget: Budget) -> Iterator[Any]:
    """Every record, those of compressed chunks unpacked within the budget."""
    stream_reader = needs("mcap.stream_reader", "mcap")
    chunk_type = needs("mcap.records", "mcap").Chunk
    too_long = needs("mcap.exceptions", "mcap").RecordLengthLimitExceeded
    limit = budget.block_bytes
    reader = stream_reader.StreamReader(
        file, emit_chunks=True, validate_crcs=True, record_size_limit=limit
    )
    try:
        for record in reader.records:
            if isinstance(record, chunk_type):
                yield from _unpacked(record, limit, stream_reader.StreamReader)
            else:
                yield record
    except too_long as error:
        raise FallowError(f"{error}; raise the limit with --max-memory") from None


def _unpacked(chunk: Any, limit_bytes: int, reader: Any) -> Iterator[Any]:
    declared = chunk.uncompressed_size
    if declared > limit_bytes:
        raise FallowError(
            f"a chunk holds {declared:,} bytes and {limit_bytes:,} is the limit of "
            "one; raise it with --max-memory"
        )
    content = unpack(chunk.compression, chunk.data, declared)
    crc = chunk.uncompressed_crc
    if len(content) != declared or (crc and zlib.crc32(content) != crc):
        raise FallowError("a chunk does not match its checksum; the file is damaged")
    stream = io.BytesIO(content)
    records = reader(stream, skip_magic=True, record_size_limit=limit_bytes).records
    while stream.tell() < len(content):
        if (record := next(records, None)) is not None:
            yield record


READER = Reader("mcap", "MCAP recordings of joint states", matches, read)
