"""A rule that gives other steps than those stored is named, and nothing is sampled."""

import numpy as np
import pytest

from fallow.core.errors import FallowError
from fallow.replay import RULES, Buffer, Field, Rule
from fallow.replay.ledger import Ledger
from fallow.replay.rules import register
from fallow.replay.spans import Spans


def spans(*columns: list, weight: list | None = None) -> Spans:
    arrays = (np.array(column) for column in columns)
    return Spans(*arrays, None if weight is None else np.array(weight))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (spans([0], [300], [309]), "parts gave a Spans; give a tuple of Spans"),
        (None, "parts gave a NoneType"),
        ((None,), "parts gave a NoneType in it"),
        ((Spans([0], [300], [309]),), "whose world is no array"),  # type: ignore[arg-type]
        ((spans([0], [300.0], [309.0]),), "whose start is no array"),
        ((spans([0, 0], [0, 9], [3, 12], weight=[1.0]),), r"\(1,\) and \(2,\)"),
        ((spans([0], [0], [411]),), "steps 0 to 411 of world 0, and not all"),
        ((spans([0], [100], [410]),), "steps 100 to 410 of world 0, and not all"),
        ((spans([0], [-3], [20]),), "steps -3 to 20"),
        ((spans([1], [300], [309]),), "a world of 1, and there are 1"),
        ((spans([0, 0], [300, 305], [310, 320]),), "overlap or are not in order"),
        ((spans([0, 0], [305, 300], [310, 302]),), "overlap or are not in order"),
    ],
)
def test_other_steps_are_refused(given, message: str) -> None:
    """They would be read from rows of other steps."""

    class Wrong(Rule):
        name = "wrong"

        def parts(self, ledger: Ledger) -> tuple[Spans, ...]:
            return given

    buffer = Buffer({"serial": Field((), "int64")}, capacity_transitions=150)
    buffer.add_episode(serial=np.arange(410))
    buffer.rule = Wrong()
    with pytest.raises(FallowError, match=f"rule 'wrong': .*{message}"):
        buffer.sample(1, 1)
    with pytest.raises(FallowError, match=message):
        buffer.composition()
    buffer.rule = "passive"
    assert buffer.sample(64, 2)["serial"].min() >= 192


def test_a_rule_without_a_docstring_can_be_registered() -> None:
    try:
        register("terse")(type("Terse", (Rule,), {}))
        assert RULES["terse"].summary == ""
    finally:
        RULES._entries.pop("terse", None)
