"""A rule: the newest share of all that is stored."""

import math
from dataclasses import dataclass

from fallow.core import options
from fallow.replay import Rule, register
from fallow.replay.ledger import Ledger
from fallow.replay.spans import Spans


@register("newer")
@dataclass(frozen=True)
class Newer(Rule):
    """the newest share of all stored steps, equally often

    Stale share after k new steps on T old ones: max(0, 1 - k / (share (T + k))).
    """

    share: float = 0.5

    label = "Newer half"  # in tables and figures

    def __post_init__(self) -> None:
        options.check_number("rule 'newer'", "share", self.share, above=0)

    def parts(self, ledger: Ledger) -> tuple[Spans, ...]:
        """The spans that may be sampled; with several, each batch comes from one."""
        n_steps = ledger.stored().n_steps
        return (ledger.newest(math.ceil(self.share * n_steps)),)
