"""Reads sampled sequences from a buffer's bytes."""

import numpy as np

from fallow.replay.sampler import Sampler
from fallow.replay.spans import Pieces
from fallow.replay.storage import IS_FIRST, Layout, Storage


def fields_of(layout: Layout, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Fields (…) of rows of bytes (…, n)."""
    return layout.split(layout.grouped(rows))


def read(
    storage: Storage, sampler: Sampler, pieces: Pieces, batch: int, length: int
) -> dict[str, np.ndarray]:
    """Fields (batch, length, …); `is_first` also where pieces begin."""
    rows = _rows(storage, sampler, pieces, batch, length)
    fields = fields_of(storage.layout, rows)
    fields[IS_FIRST][pieces.sequence, pieces.at] = True
    return fields


def _rows(
    storage: Storage, sampler: Sampler, pieces: Pieces, batch: int, length: int
) -> np.ndarray:
    """Rows of sequences: blocks where they lie in order, the rest row by row."""
    ledger = sampler.ledger
    block = ledger.block_rows
    if len(pieces.at) == batch:
        starts = ledger.rows(pieces.world, pieces.serial)
        broken = starts % block > block - length
    else:
        first = pieces.at == 0
        starts = ledger.rows(pieces.world[first], pieces.serial[first])
        broken = starts % block > block - length
        broken |= pieces.length[first] < length
    if not broken.any():
        return storage.read(starts, length)
    rows = storage.read(np.where(broken, 0, starts), length)
    rows[broken] = storage.rows[sampler.rows(pieces, batch, length)[broken]]
    return rows
