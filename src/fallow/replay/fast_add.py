"""The fast path of `Buffer.add` for a valid step of one world.

Its fields are concatenated as bytes, in the order of a row, checked at once and copied
to the row. Any other step goes to `Layout.check`, which raises the error.
"""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy import ndarray

from fallow.replay.ledger import Ledger, Victim
from fallow.replay.storage import Layout, Storage

FLOATS = ("float32", "float64")
"""Types whose highest byte is 127 or 255 for NaN, infinity and hardly anything else:
numbers beyond 1e38 and 1e303, which are then checked by `Layout.check`."""


class FastAdd:
    """Stores steps of one world."""

    def __init__(self, ledger: Ledger, storage: Storage) -> None:
        layout = storage.layout
        self._ledger = ledger
        self._rows = storage.rows.view(f"V{layout.n_octets}")[:, 0]  # (n_rows,)
        self._plan = [
            (name, (1, *layout.fields[name].shape), np.dtype(group))
            for group in layout.octets
            for name, place in layout.places.items()
            if place.group == group
        ]
        """Name, shape and type of the fields, in the order of a row; the last one is
        `is_first`."""
        self._n_fields = len(self._plan)
        end = layout.octets["bool"].stop
        self._is_first = end - 1
        self._padding = bytes(layout.n_octets - end)
        floats = [
            (layout.octets[t], np.dtype(t).itemsize)
            for t in layout.octets
            if t in FLOATS
        ]
        self._highest = [slice(at.start + n - 1, at.stop, n) for at, n in floats]
        """Where the highest bytes of floats are."""

    @classmethod
    def of(cls, ledger: Ledger, storage: Storage) -> "FastAdd | None":
        """One for a single world, if rows hold the very bytes that come."""
        layout = storage.layout
        fits = all(_is_stored_as_it_comes(layout, name) for name in layout.fields)
        if fits and ledger.n_worlds == 1 and sys.byteorder == "little":
            return cls(ledger, storage)
        return None

    def store(self, step: Mapping[str, Any], victim: Victim | None) -> bool:
        """Store a step and advance; False, with nothing done, where in doubt."""
        if len(step) != self._n_fields:
            return False
        parts: list[Any] = []
        try:
            for name, shape, dtype in self._plan:
                values = step[name]
                if (
                    type(values) is not ndarray
                    or values.dtype is not dtype
                    or values.shape != shape
                ):
                    return False
                parts.append(values)
            parts.append(self._padding)
            row = b"".join(parts)
        except (KeyError, TypeError):  # not there, not contiguous
            return False
        for highest in self._highest:
            exponents = row[highest]
            if 127 in exponents or 255 in exponents:
                return False
        at = self._ledger.advance_one(row[self._is_first] != 0, victim)
        self._rows[at] = row
        return True


def _is_stored_as_it_comes(layout: Layout, name: str) -> bool:
    """Whether a row holds the bytes of a field, and they are of a plain type."""
    field, stored = layout.fields[name], layout.places[name].group
    is_plain = np.dtype(stored).kind in "biu" or stored in FLOATS
    return is_plain and np.dtype(field.dtype) == np.dtype(stored)
