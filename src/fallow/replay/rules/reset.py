"""Forget once, at the change."""

from dataclasses import dataclass

from fallow.core import options
from fallow.replay.ledger import Ledger
from fallow.replay.rules.rule import Rule, register
from fallow.replay.spans import Spans


@register("reset")
@dataclass(frozen=True)
class Reset(Rule):
    """everything until the first change, then only what came after it

    Stale share: as `passive` before; 0 after, until the dynamics change again.
    """

    change_step: int | None = None
    """Step of the agent at which its body changed; None: the first change noted."""

    label = "Reset-once"
    colour = "#7d5ba6"

    def __post_init__(self) -> None:
        if self.change_step is not None:
            options.check_int(
                "rule 'reset'", "change_step", self.change_step, at_least=0
            )

    def parts(self, ledger: Ledger) -> tuple[Spans, ...]:
        if self.change_step is not None:
            change = self.change_step if self.change_step <= ledger.now else 0
        else:
            change = ledger.changes[0] if ledger.changes else 0
        return (ledger.since(change),)
