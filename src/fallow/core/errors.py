"""What Fallow raises when an input cannot be used."""

import difflib
from collections.abc import Iterable


class FallowError(ValueError):
    """Bad input: the message names the value, the limit and the remedy."""


def unknown(kind: str, name: str, choices: Iterable[str]) -> FallowError:
    """The error for a name that is not among `choices`, naming the nearest one."""
    known = sorted(choices)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return FallowError(f"unknown {kind} '{name}': {hint}known: {', '.join(known)}")
