"""Append-only files of checked blocks.

    file   = MAGIC, block*
    block  = length (u64), checksum (u32), payload; little-endian

The checksum of a block covers its payload and all blocks before it (a running CRC-32),
so a flipped byte, a missing block or an exchanged one ends the good part of the file.
Everything before that point can be read.
"""

import contextlib
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from fallow.core.errors import FallowError

HEAD = struct.Struct("<QI")
MAX_BLOCK_BYTES = 1 << 32
"""A length above this is damage, not data."""


@dataclass
class Scan:
    """How far a file is good; filled while its blocks are read."""

    good_bytes: int = 0
    """Length of the good part."""
    n_blocks: int = 0
    checksum: int = 0
    damage: str = ""
    """Why reading stopped before the end of the file; empty if it did not."""
    cut_short: bool = False
    """Whether the damage is a last block that was not finished, as a crash leaves."""


def read(path: Path, magic: bytes, scan: Scan) -> Iterator[bytes]:
    """Yield the payloads of all good blocks, keeping `scan` up to date.

    A scan that has read a part of the file continues after it.
    """
    scan.damage, scan.cut_short = "", False
    with path.open("rb") as file:
        start = file.read(len(magic))
        if start != magic:
            raise FallowError(
                f"{path} is not a Fallow history: it begins with {start!r} and must "
                f"begin with {magic!r}"
            )
        scan.good_bytes = max(scan.good_bytes, len(magic))
        file.seek(scan.good_bytes)
        size = os.fstat(file.fileno()).st_size
        while scan.good_bytes < size:
            payload = _next_block(file, size, scan)
            if payload is None:
                return
            yield payload


def _next_block(file: BinaryIO, size: int, scan: Scan) -> bytes | None:
    head = file.read(HEAD.size)
    length, stored = HEAD.unpack(head) if len(head) == HEAD.size else (0, 0)
    if length > MAX_BLOCK_BYTES:
        scan.damage = f"block {scan.n_blocks} claims a length of {length} bytes"
        return None
    if len(head) < HEAD.size or length > size - file.tell():
        scan.damage = f"the file ends inside block {scan.n_blocks}"
        scan.cut_short = True
        return None
    payload = file.read(length)
    if _checksum(payload, scan.checksum) != stored:
        scan.damage = f"the checksum of block {scan.n_blocks} does not match"
        return None
    scan.good_bytes = file.tell()
    scan.n_blocks += 1
    scan.checksum = stored
    return payload


class Appender:
    """Appends blocks to a file; a failed append leaves the file as it was.

    The file is unbuffered, so that no part of a failed block is written later.

    Raises:
        OSError: a write failed, e.g. on a full disk. The next append works again.
    """

    def __init__(self, path: Path, scan: Scan, magic: bytes = b"") -> None:
        self.path = path
        self._file = FileIO(path, "r+" if scan.good_bytes else "w+")
        self._good_bytes = scan.good_bytes
        self._checksum = scan.checksum
        self._start = b"" if scan.good_bytes else magic
        self._rewind()

    def append(self, payload: bytes) -> None:
        """Write one block after the last good one."""
        checksum = _checksum(payload, self._checksum)
        block = self._start + HEAD.pack(len(payload), checksum) + payload
        try:
            self._rewind()
            _write_all(self._file, block)
        except BaseException as error:
            with contextlib.suppress(OSError):  # else the next append cuts it off
                self._rewind()
            if isinstance(error, OSError) and error.filename is None:
                raise OSError(error.errno, error.strerror, str(self.path)) from error
            raise
        self._good_bytes += len(block)
        self._checksum = checksum
        self._start = b""

    def _rewind(self) -> None:
        """Cut off what follows the last good block."""
        self._file.truncate(self._good_bytes)
        self._file.seek(self._good_bytes)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _write_all(file: FileIO, content: bytes) -> None:
    """Write all bytes: a raw file may take fewer at a time."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) or 0 :]


def _checksum(payload: bytes, before: int) -> int:
    length = struct.pack("<Q", len(payload))
    return zlib.crc32(payload, zlib.crc32(length, before))
