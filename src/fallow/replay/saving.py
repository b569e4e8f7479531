"""One replay, wherever its bytes live, as one checked file."""

from pathlib import Path
from typing import Any

import numpy as np

from fallow.core import arrayfile
from fallow.core.errors import FallowError
from fallow.replay.drawer import Drawer
from fallow.replay.storage import Layout

KIND, VERSION = "replay buffer", 1

Chunks = dict[str, np.ndarray]
"""Packed rows of the slots in use, by stored type: (n_slots, 64, width)."""


def save(path: str | Path, layout: Layout, chunks: Chunks, drawer: Drawer) -> None:
    """Write bytes, book, rule, random state and the record of draws."""
    book_arrays, book_header = drawer.book.save()
    arrays = {f"rows.{dtype}": rows for dtype, rows in chunks.items()}
    header = {
        "layout": _described(layout),
        "book": book_header,
        "drawer": drawer.save(),
    }
    arrayfile.save(path, KIND, VERSION, arrays | book_arrays, header)


def load(path: str | Path, layout: Layout, drawer: Drawer) -> Chunks:
    """Take book, rule and randomness back; returns the rows of the slots in use."""
    arrays, header = arrayfile.load(path, KIND, VERSION)
    if header["layout"] != _described(layout):
        raise FallowError(
            f"{path} stores {header['layout']}, this buffer {_described(layout)}; "
            "make it with the same fields"
        )
    drawer.book.restore(arrays, header["book"], path)
    drawer.restore(header["drawer"])
    return {dtype: arrays[f"rows.{dtype}"] for dtype in layout.widths}


def _described(layout: Layout) -> dict[str, Any]:
    """Fields by name: shape, own type, stored type."""
    return {
        name: [list(field.shape), field.dtype, layout.places[name].group]
        for name, field in layout.fields.items()
    }
