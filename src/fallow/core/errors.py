"""What Fallow raises when an input cannot be used."""

import difflib
from collections.abc import Iterable

MOST_SHOWN = 80
"""Characters of an unknown name that an error repeats."""


class FallowError(ValueError):
    """Bad input: the message names the value, the limit and the remedy."""


class RunError(RuntimeError):
    """A simulation or a training run cannot continue; the message says why."""


def unknown(kind: str, name: str, choices: Iterable[str]) -> FallowError:
    """The error for a name that is not among `choices`, naming the nearest one."""
    known = sorted(choices)
    text = str(name) if len(str(name)) <= MOST_SHOWN else f"{str(name)[:MOST_SHOWN]}…"
    near = difflib.get_close_matches(text, known, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return FallowError(f"unknown {kind} '{text}': {hint}known: {', '.join(known)}")
