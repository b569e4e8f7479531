"""Sample less often what the present model predicts badly."""

from dataclasses import dataclass

import numpy as np

from fallow.core import options
from fallow.replay.ledger import Ledger
from fallow.replay.rules.rule import Rule, register
from fallow.replay.spans import Spans


@register("graded")
@dataclass(frozen=True)
class Graded(Rule):
    """all that is stored, less often the larger the model's error on its chunk

    Start weight exp(-(e / m - 1) / temperature), with e the chunk's last known error
    and m the median of all known ones; a chunk without one counts as the median. So a
    chunk of median error weighs 1, one of twice that error 1/e at temperature 1, and
    nothing is ever masked. Stale share: T s / (T s + k f), with s and f the mean
    weights of stale and fresh chunks.
    """

    temperature: float = 1.0
    needs_errors = True

    colour = "#00835f"

    def __post_init__(self) -> None:
        options.check_number("rule 'graded'", "temperature", self.temperature, above=0)

    def parts(self, ledger: Ledger) -> tuple[Spans, ...]:
        slots = ledger.slots()
        excess = relative_errors(ledger.error[slots]) - 1
        return (ledger.chunk_spans(slots, np.exp(-excess / self.temperature)),)


def relative_errors(errors: np.ndarray) -> np.ndarray:
    """Errors over the median of the known ones; unknown ones are 1."""
    known = np.isfinite(errors)
    median = np.median(errors[known]) if known.any() else 0.0
    if median <= 0:
        return np.ones(len(errors))
    return np.where(known, errors / median, 1.0)
