"""What Fallow raises when an input cannot be used."""

import difflib
import os
from collections.abc import Iterable

MOST_SHOWN = 80
"""Characters of an unknown name that an error repeats."""

REMEDIES = {
    FileNotFoundError: "check the path",
    NotADirectoryError: "name a folder, or remove the file that is in its place",
    IsADirectoryError: "name a file",
    PermissionError: "change its permissions, or choose another path",
}
"""By what the system says of a file."""


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


def sentence_of(error: BaseException) -> str:
    """What an error says to people; of a file, what is refused and a remedy."""
    if isinstance(error, MemoryError):
        return f"not enough memory{f': {error}' if str(error) else ''}"
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return _file_sentence(error)
    return str(error) or type(error).__name__


def _file_sentence(error: OSError) -> str:
    """What the system refused, and what to do."""
    what = error.strerror or type(error).__name__
    problem = f"{what[:1].lower()}{what[1:]}"
    remedy = REMEDIES.get(type(error), "choose another path")
    name = error.filename if error.filename2 is None else error.filename2
    return f"cannot use {os.fsdecode(name)}: {problem}; {remedy}"
