"""One replay, with its bytes on the host or a device, as one checked file."""

from pathlib import Path
from typing import Any

import numpy as np

from fallow.core import arrayfile
from fallow.core.errors import FallowError
from fallow.replay import ledger_state
from fallow.replay.sampler import Sampler
from fallow.replay.storage import Layout

KIND, VERSION = "replay buffer", 1

Chunks = dict[str, np.ndarray]
"""Packed rows of the slots in use, by stored type: (n_slots, 64, width)."""


def save(path: str | Path, layout: Layout, chunks: Chunks, sampler: Sampler) -> None:
    """Write bytes, ledger, rule, random state and the record of samples."""
    ledger_arrays, ledger_header = ledger_state.save(sampler.ledger)
    arrays = {f"rows.{dtype}": rows for dtype, rows in chunks.items()}
    header = {
        "layout": _described(layout),
        "book": ledger_header,
        "drawer": sampler.save(),
    }
    if sampler.labeler is not None:
        labels, header["labeler"] = sampler.labeler.save()
        arrays |= {f"labeler.{name}": values for name, values in labels.items()}
    arrayfile.save(path, KIND, VERSION, arrays | ledger_arrays, header)


def load(path: str | Path, layout: Layout, sampler: Sampler) -> Chunks:
    """Restore ledger, rule and random state; returns the rows of the slots in use.

    What does not fit is an error before anything is restored.
    """
    arrays, header = arrayfile.load(path, KIND, VERSION)
    if header["layout"] != _described(layout):
        raise FallowError(
            f"{path} stores {header['layout']}, this buffer {_described(layout)}; "
            "make it with the same fields"
        )
    ledger_state.check_sizes(sampler.ledger, header["book"], Path(path))
    rule = sampler.saved_rule(header["drawer"])
    labeler = sampler.new_labeler(rule) if rule.needs_tracker else None
    if labeler is not None:
        labeler.restore(_named(arrays, "labeler."), header["labeler"])
    ledger_state.restore(sampler.ledger, arrays, header["book"])
    sampler.restore(header["drawer"], labeler)
    return {dtype: arrays[f"rows.{dtype}"] for dtype in layout.widths}


def _named(arrays: Chunks, prefix: str) -> Chunks:
    """The arrays of one part of a file, by their names there."""
    return {
        name.removeprefix(prefix): values
        for name, values in arrays.items()
        if name.startswith(prefix)
    }


def _described(layout: Layout) -> dict[str, Any]:
    """Fields by name: shape, own type, stored type."""
    return {
        name: [list(field.shape), field.dtype, layout.places[name].group]
        for name, field in layout.fields.items()
    }
