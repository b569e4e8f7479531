"""ROS bags: ROS 1 (.bag) and ROS 2 in SQLite (.db3, with or without its folder)."""

import functools
import tempfile
from pathlib import Path
from typing import Any

from fallow.core.errors import FallowError
from fallow.logs.columns import Columns
from fallow.logs.limits import Budget
from fallow.logs.readers import messages, recordings
from fallow.logs.readers.mcap import MAGIC as MCAP_MAGIC
from fallow.logs.readers.mcap import open_mcap
from fallow.logs.readers.reader import Reader, head_of, needs
from fallow.logs.readers.unpack import ZSTD_MAGIC, unpack
from fallow.logs.streams import Collector
from fallow.logs.table import LogTable

BAG_MAGIC = b"#ROSBAG V"
DB3_MAGIC = b"SQLite format 3\0"
URI_MARKS = "?#%"
"""Characters of a path that the library would read as something else."""


def matches(path: Path, head: bytes) -> bool:
    """A bag, the folder of one, or a folder of nothing but recordings."""
    if path.is_dir():
        return bool(recordings.recordings_in(path))
    return head.startswith((BAG_MAGIC, DB3_MAGIC)) or (
        head.startswith(ZSTD_MAGIC) and path.name.endswith((".db3.zstd", ".mcap.zstd"))
    )


def read(path: Path, columns: Columns, budget: Budget) -> LogTable:
    """The recordings in the order of their first messages."""
    return recordings.read(path, columns, budget, "ros", OPENERS)


def _open_bag(path: Path, collector: Collector, budget: Budget) -> None:
    """ROS 1; every chunk is unpacked within the budget."""
    library = needs("rosbags.rosbag1.reader", "ros")
    names = {function: name for name, function in library.decompressors.items()}
    with library.Reader(path) as bag:
        bag.chunks = {
            place: chunk._replace(
                decompressor=functools.partial(
                    unpack,
                    names[chunk.decompressor],
                    limit_bytes=budget.block_bytes,
                )
            )
            for place, chunk in bag.chunks.items()
        }
        _add(collector, bag, "ros1")


def _open_db3(path: Path, collector: Collector, budget: Budget) -> None:
    """ROS 2; a message may be compressed by itself."""
    if any(mark in str(path.absolute()) for mark in URI_MARKS):
        raise FallowError(f"the path {path} holds one of {URI_MARKS}; rename it")
    with needs("rosbags.rosbag2", "ros").Reader(path.absolute()) as bag:
        _add(collector, bag, "cdr", budget)


def _open_zstd(path: Path, collector: Collector, budget: Budget) -> None:
    """A part that ROS 2 compressed as a whole."""
    library = needs("zstandard", "ros")
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / path.stem
        with path.open("rb") as packed, plain.open("wb") as unpacked:
            stream = library.ZstdDecompressor().stream_reader(packed)
            for n_blocks, block in enumerate(iter(lambda: stream.read(1 << 20), b"")):
                budget.check((n_blocks + 1) << 20, "the compressed file")
                unpacked.write(block)
        opener = _open_db3 if head_of(plain).startswith(DB3_MAGIC) else open_mcap
        opener(plain, collector, budget)


def _add(
    collector: Collector, bag: Any, encoding: str, budget: Budget | None = None
) -> None:
    kinds = {c.id: messages.kind_of(c.msgtype) for c in bag.connections}
    wanted = [c for c in bag.connections if kinds[c.id] is not None]
    if not wanted:
        return
    for connection, time_ns, content in bag.messages(wanted):
        if not isinstance(content, bytes) or not isinstance(time_ns, int):
            raise FallowError("a message cannot be decoded; the file is damaged")
        if budget is not None and bytes(content[:4]) == ZSTD_MAGIC:
            content = unpack("zstd", content, budget.block_bytes)
        kind = kinds[connection.id] or ""
        message = messages.decode(encoding, kind, content)
        messages.add(collector, connection.topic, time_ns, message, kind)


OPENERS: dict[bytes, recordings.Open] = {
    BAG_MAGIC: _open_bag,
    DB3_MAGIC: _open_db3,
    ZSTD_MAGIC: _open_zstd,
    MCAP_MAGIC: open_mcap,
}
"""By how a file begins."""

READER = Reader("ros", "ROS 1 and ROS 2 bags of joint states", matches, read)
