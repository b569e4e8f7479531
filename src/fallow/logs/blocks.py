"""Append-only files of checked blocks: what a crash or an edit can and cannot hurt.

    file   = MAGIC, block*
    block  = length (u64), checksum (u32), payload; little-endian

The checksum of a block runs over its payload and all blocks before it (CRC-32 carried
on), so a flipped byte, a missing block or an exchanged one ends the good part of the
file. Everything before that point can be read.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
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
    """Yield the payloads of all good blocks, keeping `scan` up to date."""
    with path.open("rb") as file:
        start = file.read(len(magic))
        if start != magic:
            raise FallowError(
                f"{path} is not a Fallow history: it begins with {start!r} and must "
                f"begin with {magic!r}"
            )
        scan.good_bytes = len(magic)
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


def append(file: BinaryIO, payload: bytes, checksum: int) -> int:
    """Write one block after `checksum`, the last block's; returns its own."""
    own = _checksum(payload, checksum)
    file.write(HEAD.pack(len(payload), own) + payload)
    file.flush()
    return own


def _checksum(payload: bytes, before: int) -> int:
    length = struct.pack("<Q", len(payload))
    return zlib.crc32(payload, zlib.crc32(length, before))
