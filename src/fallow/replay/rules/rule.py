"""The interface of a rule: from the ledger to start weights."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fallow.core import options
from fallow.core.errors import FallowError
from fallow.core.registry import Registry
from fallow.replay.spans import Spans

if TYPE_CHECKING:
    from fallow.replay.ledger import Ledger

RULES: Registry[type["Rule"]] = Registry("rule")


@dataclass(frozen=True)
class Rule:
    """A retention rule; its fields are its options.

    To add one: a file with a frozen dataclass below `@register("name")` and a `parts`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    label: ClassVar[str] = ""
    """Name in tables and figures; by default its name with a capital letter."""
    colour: ClassVar[str] = ""
    """`#rrggbb` in figures, dark enough for text on white; empty: one of a palette."""
    needs_errors: ClassVar[bool] = False
    """Whether the agent must sweep the buffer with its model's errors."""
    needs_visits: ClassVar[bool] = False
    """Whether weights depend on how often chunks were sampled from."""
    keeps_by_key: ClassVar[bool] = False
    """Whether a full buffer evicts chunks in the rule's order, not the oldest."""

    @staticmethod
    def parse(text: "str | Rule") -> "Rule":
        """Read a rule.

        Args:
            text: `name:option=value,…`; a rule passes through.

        Returns:
            The rule.

        Raises:
            FallowError: the name or an option is unknown, or a value is out of range.
        """
        if isinstance(text, Rule):
            return text
        if not isinstance(text, str):
            raise FallowError(
                f"a rule is {options.shown(text)}; write its name, e.g. 'recency'"
            )
        name, given = options.parse(text)
        return options.build(RULES[name], given, f"rule '{name}'")

    def __str__(self) -> str:
        return options.render(self.name, options.changed(self))

    @property
    def needs_tracker(self) -> bool:
        """Whether the buffer must label episodes with a tracker."""
        return False

    @property
    def needs_episodes(self) -> bool:
        """Whether the buffer must know where episodes end."""
        return False

    @property
    def needs_true_gains(self) -> bool:
        """Whether a study must give the mismatch between true regimes."""
        return False

    def parts(self, ledger: "Ledger") -> tuple[Spans, ...]:
        """What may be sampled, with start weights.

        With several parts, every minibatch comes wholly from one of them, all equally
        often; parts in which nothing is stored yet are passed over.

        Args:
            ledger: the record of what is stored.

        Returns:
            One or more parts: spans of steps and their start weights.
        """
        raise NotImplementedError

    def victim(self, ledger: "Ledger") -> int:
        """The slot to evict when all are in use, for rules that keep by key.

        Args:
            ledger: the record of what is stored.

        Returns:
            The index of the slot.
        """
        raise NotImplementedError

    def check(self, ledger: "Ledger") -> None:
        """Check that the rule can work with a buffer.

        Args:
            ledger: of the buffer.

        Raises:
            FallowError: an option does not fit the size of the buffer.
        """


def register(name: str) -> Callable[[type[Rule]], type[Rule]]:
    """Make a rule known under a name; its summary is its docstring's first line.

    Args:
        name: by which it is chosen.

    Returns:
        A decorator of the class.

    Raises:
        KeyError: another rule has the name.
    """

    def add(cls: type[Rule]) -> type[Rule]:
        cls.name = name
        cls.label = cls.__dict__.get("label") or name.capitalize()
        cls.summary = (cls.__doc__ or "").strip().partition("\n")[0]
        return RULES.add(name, cls)

    return add


def check_budget(rule: Rule, option: str, value: Any, limit: int) -> None:
    """Check a number of transitions against what the buffer can hold."""
    options.check_int(f"rule '{rule.name}'", option, value, at_least=1)
    if value > limit:
        raise FallowError(
            f"rule '{rule.name}': {option} is {value:,} and the buffer can hold "
            f"{limit:,}; choose a smaller one or a larger capacity_transitions"
        )
