"""Checks of what a rule gives, so that a slip in one never samples other steps."""

from typing import Any

import numpy as np

from fallow.core.errors import FallowError
from fallow.replay.ledger import CHUNK, FREE, Ledger
from fallow.replay.rules import Rule
from fallow.replay.spans import Spans


def parts_of(
    rule: Rule, ledger: Ledger, before: tuple[Spans, ...] = ()
) -> tuple[Spans, ...]:
    """The parts that a rule gives, all of them stored.

    A part that is one of those `before` is not checked again.

    Raises:
        FallowError: they are no spans, or of steps that are not stored.
    """
    parts: Any = rule.parts(ledger)
    if not isinstance(parts, tuple | list):
        wrong: str | None = f"a {type(parts).__name__}"
    else:
        new = [part for part in parts if not any(part is old for old in before)]
        wrong = next(filter(None, (_fault(part, ledger) for part in new)), None)
    if wrong is not None:
        raise FallowError(
            f"rule '{rule}': parts gave {wrong}; give a tuple of Spans of stored "
            "steps, sorted by world and start, with a weight for each span or None"
        )
    return tuple(parts)


def _fault(spans: Any, ledger: Ledger) -> str | None:
    """What is wrong with one part; None if nothing is."""
    if not isinstance(spans, Spans):
        return f"a {type(spans).__name__} in it"
    columns = {"world": "iu", "start": "iu", "stop": "iu", "weight": "biuf"}
    shapes = set()
    for name, kinds in columns.items():
        values = getattr(spans, name)
        if values is None and name == "weight":
            continue
        if not isinstance(values, np.ndarray) or values.dtype.kind not in kinds:
            return f"spans whose {name} is no array of numbers of its kind"
        shapes.add(values.shape)
    if len(shapes) > 1 or len(spans.world.shape) != 1:
        return f"spans with arrays of shape {' and '.join(map(str, sorted(shapes)))}"
    return _fault_of_weights(spans) or _fault_of_places(spans, ledger)


def _fault_of_weights(spans: Spans) -> str | None:
    weight = spans.weight
    if weight is None or (np.isfinite(weight).all() and (weight >= 0).all()):
        return None
    bad = weight[~(np.isfinite(weight) & (weight >= 0))][0]
    return f"a weight of {bad}, and weights are finite numbers, 0 or more"


def _fault_of_places(spans: Spans, ledger: Ledger) -> str | None:
    """Steps that are not stored, or spans in another order than that of `slots`."""
    world, start, stop = spans.world, spans.start, spans.stop
    some = stop > start
    if not some.all():
        world, start, stop = world[some], start[some], stop[some]
    if not len(world):
        return None
    if world.min() < 0 or world.max() >= ledger.n_worlds:
        return f"a world of {world.max()}, and there are {ledger.n_worlds}"
    is_stored = _are_stored(ledger, world, start, stop)
    if not is_stored.all():
        at = int(np.argmin(is_stored))
        return (
            f"steps {start[at]} to {stop[at]} of world {world[at]}, and not all of "
            "them are stored"
        )
    follows = start[1:] >= stop[:-1]
    if ledger.n_worlds > 1:
        follows = np.where(world[1:] == world[:-1], follows, world[1:] > world[:-1])
    return None if follows.all() else "spans that overlap or are not in order"


def _are_stored(
    ledger: Ledger, world: np.ndarray, start: np.ndarray, stop: np.ndarray
) -> np.ndarray:
    """Whether the first and the last step of each span are stored."""
    if ledger.is_ring:
        stored = ledger.stored()
        of = 0 if ledger.n_worlds == 1 else world
        return (start >= stored.start[of]) & (stop <= stored.stop[of])
    is_stored = (start >= 0) & (stop <= np.asarray(ledger.heads)[world])
    if is_stored.all():
        for end in (start, stop - 1):
            is_stored &= ledger.slot_of[world, end // CHUNK] != FREE
    return is_stored
