"""Decompressing with a limit: a few bytes can claim to be gigabytes."""

import bz2
from typing import Any

from fallow.core.errors import FallowError
from fallow.logs.readers.reader import needs

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def unpack(compression: str, content: bytes, limit_bytes: int) -> bytes:
    """The content of a compressed block, at most `limit_bytes`.

    Raises:
        FallowError: there is more, or the compression is not known.
    """
    if compression in ("", "none"):
        return content
    if compression == "zstd":
        library = needs("zstandard", "ros")
        stream = library.ZstdDecompressor().stream_reader(content)
        unpacked: bytes = stream.read(limit_bytes + 1)
    elif compression in ("lz4", "bz2"):
        unpacked = _decompressor(compression).decompress(content, limit_bytes + 1)
    else:
        raise FallowError(
            f"a block is compressed with '{compression[:20]}'; use zstd, lz4 or bz2"
        )
    if len(unpacked) > limit_bytes:
        raise FallowError(
            f"a compressed block holds more than {limit_bytes:,} bytes; the file is "
            "damaged, or the limit is too low: raise it with --max-memory"
        )
    return unpacked


def _decompressor(compression: str) -> Any:
    if compression == "bz2":
        return bz2.BZ2Decompressor()
    return needs("lz4.frame", "ros").LZ4FrameDecompressor()
