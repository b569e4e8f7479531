"""The stored bytes: all fields of a row side by side, grouped by type.

Neighbouring rows of a stream lie one after the other, so a sequence is one block of
memory and a batch is a few block copies.
"""

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from fallow.core import options
from fallow.core.errors import FallowError, sentence_of

IS_FIRST = "is_first"
"""The field that every buffer stores by itself."""
REGIME = "regime"
"""What `add` takes beside the fields."""
NUMBERS = "biufc"
"""Kinds of types that are stored: flags, integers, floats, complex numbers."""
LARGEST_HALF = float(np.finfo(np.float16).max)


class Field(NamedTuple):
    """Shape and type of one number, vector or image of a row."""

    shape: tuple[int, ...]
    dtype: str = "float32"


class FieldPlace(NamedTuple):
    """The place of a field: group, columns, and type when read."""

    group: str
    columns: int | slice
    """One column for a number, a slice for anything larger."""
    shape: tuple[int, ...] | None
    """Shape to give a slice back, for more than a vector."""
    cast: str | None
    """The field's own type, where it is stored in another."""


@dataclass(frozen=True)
class Layout:
    """How fields are packed; shared by bytes on the host and on an accelerator."""

    fields: dict[str, Field]
    places: dict[str, FieldPlace]
    widths: dict[str, int]
    """Columns of each group, by the type it stores."""

    @classmethod
    def of(cls, given: Mapping[str, Field], half: bool = False) -> "Layout":
        """Pack fields and `is_first` by type; `half` stores floats as float16."""
        if not isinstance(given, Mapping):
            raise FallowError(
                f"fields are {options.shown(given)}; give a Field by name, e.g. "
                "{'observation': Field((3,))}"
            )
        for name in (IS_FIRST, REGIME):
            if name in given:
                raise FallowError(
                    f"{name} is stored by itself; leave it out of the fields"
                )
        fields = {name: _checked(name, field) for name, field in given.items()}
        fields[IS_FIRST] = Field((), "bool")
        places: dict[str, FieldPlace] = {}
        widths: dict[str, int] = {}
        for name, field in fields.items():
            dtype = np.dtype(field.dtype).name
            group = "float16" if half and dtype.startswith("float") else dtype
            start = widths.get(group, 0)
            widths[group] = start + math.prod(field.shape)
            columns = slice(start, widths[group]) if field.shape else start
            shape = field.shape if len(field.shape) > 1 else None
            places[name] = FieldPlace(
                group, columns, shape, None if group == dtype else dtype
            )
        return cls(fields, places, widths)

    @cached_property
    def _plan(self) -> list[tuple[str, tuple[int, ...], np.dtype, bool]]:
        """Name, shape, type, and whether it is stored in half precision."""
        return [
            (
                name,
                field.shape,
                np.dtype(field.dtype),
                self.places[name].cast is not None,
            )
            for name, field in self.fields.items()
        ]

    def check(self, step: Mapping[str, Any], *leading: int) -> None:
        """Raise unless all fields are there with their shapes, types and numbers."""
        if len(step) != len(self.fields) or set(step) != set(self.fields):
            raise FallowError(
                f"a step has the fields {', '.join(sorted(step))}; this buffer stores "
                f"{', '.join(self.fields)}"
            )
        for name, shape, dtype, is_halved in self._plan:
            values = step[name]
            fits = type(values) is np.ndarray and values.dtype == dtype
            if not fits or values.shape != leading + shape:
                raise FallowError(
                    f"{name} is {_described(values)}; this buffer stores {dtype} of "
                    f"shape {leading + shape}"
                    f"{_remedy(name, values, dtype, leading + shape)}"
                )
            if dtype.kind == "f":
                _check_numbers(name, values, is_halved)

    @cached_property
    def octets(self) -> dict[str, slice]:
        """The place of each group in a row of bytes: wide types first, flags last."""
        spans, end = {}, 0
        order = sorted(self.widths, key=lambda g: (g == "bool", -np.dtype(g).itemsize))
        for group in order:
            begin, end = end, end + self.widths[group] * np.dtype(group).itemsize
            spans[group] = slice(begin, end)
        return spans

    @property
    def n_octets(self) -> int:
        """Bytes of a row, such that all numbers of the next one are aligned."""
        align = max(np.dtype(group).alignment for group in self.widths)
        return -(-self.octets["bool"].stop // align) * align

    def grouped(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Groups (…, width) as views of rows of bytes (…, n_octets)."""
        return {group: rows[..., at].view(group) for group, at in self.octets.items()}

    def split(self, groups: Mapping[str, Any]) -> dict[str, Any]:
        """Fields as views of packed arrays (…, width), in their own shape and type."""
        out = {}
        for name, (group, columns, shape, cast) in self.places.items():
            values = groups[group][..., columns]
            if shape is not None:
                values = values.reshape(*values.shape[:-1], *shape)
            out[name] = values if cast is None else values.astype(cast)
        return out


def _checked(name: Any, field: Any) -> Field:
    """A field with its shape as integers and its type by name."""
    options.check_text("buffer", "the name of a field", name)
    if not isinstance(field, Field):
        raise FallowError(
            f"{name} is {options.shown(field)}; give its shape and type, e.g. "
            "Field((3,)) or Field((), 'int64')"
        )
    try:
        shape = tuple(map(operator.index, field.shape))
    except TypeError:
        shape = (0,)
    if any(width < 1 for width in shape):
        raise FallowError(
            f"{name} has shape {options.shown(field.shape)}; give whole numbers of 1 "
            "or more, e.g. Field((3,))"
        )
    try:
        dtype = np.dtype(field.dtype)
    except TypeError:
        raise FallowError(
            f"{name} has type {options.shown(field.dtype)}, which NumPy does not know; "
            "write e.g. 'float32'"
        ) from None
    if dtype.kind not in NUMBERS:
        kind = "Python objects" if dtype.hasobject else f"type '{dtype}'"
        raise FallowError(f"{name} is of {kind}; a buffer stores numbers and flags")
    return Field(shape, dtype.name if dtype.isnative else dtype.str)


def _described(values: Any) -> str:
    """The type and shape of what should be an array."""
    try:
        found = np.asarray(values)
    except ValueError:
        return "not an array, since its rows differ in length"
    return f"{found.dtype} of shape {found.shape}"


def _remedy(name: str, values: Any, dtype: np.dtype, shape: tuple[int, ...]) -> str:
    """What to do where a type, or only the axis of a single world, does not fit."""
    try:
        found = np.asarray(values)
    except ValueError:
        return ""
    lacks_world = shape[:1] == (1,) and found.shape == shape[1:]
    if found.dtype.hasobject or not (lacks_world or found.shape == shape):
        return ""
    if lacks_world and found.ndim == 0:
        return f": give np.asarray([{name}], '{dtype}')"
    world = "[None]" if lacks_world else ""
    if type(values) is not np.ndarray:
        return f": give np.asarray({name}, '{dtype}'){world}"
    if found.dtype == dtype:
        return f": give {name}{world}, with an axis of worlds"
    other = f", or give its Field the type '{found.dtype}'" if name != IS_FIRST else ""
    return f": add .astype('{dtype}'){world}{other}"


class Storage:
    """Rows in memory, or in files below `folder` for histories larger than memory."""

    def __init__(
        self, layout: Layout, n_rows: int, folder: str | Path | None = None
    ) -> None:
        self.layout = layout
        self.n_rows = n_rows
        self.rows = _allocate((n_rows, layout.n_octets), folder)
        self._view()

    def __getstate__(self) -> dict[str, Any]:
        """Rows only, without their views; a copy is in memory."""
        rows = np.array(self.rows)
        return {"layout": self.layout, "n_rows": self.n_rows, "rows": rows}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._view()

    def _view(self) -> None:
        """Make all views of the rows."""
        layout = self.layout
        self.groups = layout.grouped(self.rows)
        uncast = {n: place._replace(cast=None) for n, place in layout.places.items()}
        self.columns = replace(layout, places=uncast).split(self.groups)
        """Every field as a view of all rows, to write to."""
        self._windows: dict[int, np.ndarray] = {}

    def read(self, starts: np.ndarray, length: int) -> np.ndarray:
        """Blocks of `length` rows from each of `starts` (B,): bytes (B, length, n)."""
        if length not in self._windows:
            row, octet = self.rows.strides
            self._windows[length] = as_strided(
                self.rows,
                (self.n_rows - length + 1, length, self.rows.shape[1]),
                (row, row, octet),
                writeable=False,
            )
        return self._windows[length][starts]

    def chunks(self, length: int) -> dict[str, np.ndarray]:
        """Views of all rows by stored type, `length` at a time: (n, length, width)."""
        return {
            dtype: group.reshape(-1, length, group.shape[1])
            for dtype, group in self.groups.items()
        }

    def n_bytes(self) -> int:
        """Bytes of all rows."""
        return self.rows.nbytes


def _allocate(shape: tuple[int, int], folder: str | Path | None) -> np.ndarray:
    if folder is None:
        try:
            return np.zeros(shape, np.uint8)
        except MemoryError:
            raise FallowError(
                f"a buffer of {shape[0]:,} steps of {shape[1]} bytes needs "
                f"{shape[0] * shape[1] / 2**30:.1f} GiB of memory, more than there is; "
                "choose a smaller capacity_transitions, half=True, or a folder"
            ) from None
    path = Path(folder) / "replay.rows"
    if path.exists():
        raise FallowError(
            f"{path} exists already; give each buffer a folder of its own, or remove "
            "the file if no buffer uses it any more"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return np.memmap(path, np.uint8, "w+", shape=shape)
    except OSError as error:
        raise FallowError(sentence_of(error)) from None


def _check_numbers(name: str, values: np.ndarray, is_halved: bool) -> None:
    """Raise for NaN, infinity, and what float16 cannot hold where that is stored.

    The sum of squares is a cheap check that all numbers are finite.
    """
    flat = values.ravel()
    if not (math.isfinite(flat.dot(flat)) or np.isfinite(flat).all()):
        raise FallowError(
            f"{name} holds NaN or infinity and was not stored; replace it first"
        )
    if is_halved and (largest := float(np.abs(flat).max())) > LARGEST_HALF:
        raise FallowError(
            f"{name} holds {largest:g}, float16 ends at {LARGEST_HALF:g}; scale it, or "
            "make the buffer with half=False"
        )
