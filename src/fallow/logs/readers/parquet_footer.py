"""How many numbers the columns of a parquet file hold, from its footer alone.

`pyarrow` ends the process (SIGABRT) where it is asked for the metadata of a column and
the statistics in it are damaged, so the few numbers that are needed are read here. The
footer is a structure in Thrift's compact protocol, before its length and the magic.
"""

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fallow.core.errors import FallowError

MAGIC = b"PAR1"
TAIL = struct.Struct("<I4s")
MAX_FOOTER_BYTES = 64 << 20
MAX_DEPTH = 20
"""Of structures inside each other; parquet has six."""
ROW_GROUPS, COLUMNS, COLUMN, PATH, N_VALUES = 4, 1, 3, 3, 5
"""Numbers of fields: FileMetaData.row_groups, RowGroup.columns, ColumnChunk.meta_data,
and its path_in_schema and num_values."""


def n_values_of(path: Path) -> dict[str, int]:
    """By the path of a column in the schema: how many numbers all row groups hold.

    Raises:
        FallowError: the footer cannot be read.
    """
    content = _footer(path)
    found: dict[str, int] = {}
    try:
        for group in _Compact(content).structure().get(ROW_GROUPS, []):
            for chunk in group.get(COLUMNS, []):
                column = chunk[COLUMN]
                name = b".".join(column[PATH]).decode()
                found[name] = found.get(name, 0) + max(0, int(column[N_VALUES]))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, struct.error):
        raise FallowError(f"the footer of {path} is cut short or damaged") from None
    return found


def _footer(path: Path) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL.size))
        tail = file.read(TAIL.size)
        length, magic = TAIL.unpack(tail) if len(tail) == TAIL.size else (0, b"")
        if magic != MAGIC or length > min(size, MAX_FOOTER_BYTES):
            raise FallowError(
                f"{path} has no footer of parquet; it is cut short or damaged"
            )
        file.seek(size - TAIL.size - length)
        return file.read(length)


class _Compact:
    """Reads values one after the other; structures are dicts by field number."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._place = 0
        self._depth = 0
        number: Callable[[], Any] = self._number
        self._readers: dict[int, Callable[[], Any]] = {
            **{1: self._byte, 2: self._byte, 3: self._byte},  # in a list; else implied
            **{4: number, 5: number, 6: number, 7: lambda: self._take(8)},
            **{8: lambda: self._take(self._varint()), 9: self._list, 10: self._list},
            **{11: self._map, 12: self.structure},
        }

    def structure(self) -> dict[int, Any]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ValueError("structures inside each other")
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            delta, kind = head >> 4, head & 15
            field = field + delta if delta else self._number()
            found[field] = kind == 1 if kind in (1, 2) else self._readers[kind]()
        self._depth -= 1
        return found

    def _list(self) -> list[Any]:
        head = self._byte()
        length, kind = head >> 4, head & 15
        length = self._varint() if length == 15 else length
        return [self._readers[kind]() for _ in range(self._fitting(length))]

    def _map(self) -> None:
        length = self._fitting(self._varint())
        kinds = self._byte() if length else 0
        for _ in range(length):
            self._readers[kinds >> 4]()
            self._readers[kinds & 15]()

    def _number(self) -> int:
        zigzag = self._varint()
        return (zigzag >> 1) ^ -(zigzag & 1)

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number of more than 64 bits")

    def _byte(self) -> int:
        self._place += 1
        return self._content[self._place - 1]

    def _take(self, length: int) -> bytes:
        self._place += self._fitting(length)
        return self._content[self._place - length : self._place]

    def _fitting(self, length: int) -> int:
        """A length, if so many bytes are left: every item takes one or more."""
        if length > len(self._content) - self._place:
            raise ValueError("a length beyond the end")
        return length
