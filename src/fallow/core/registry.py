"""Registries of everything that is chosen by name: tasks, conditions, rules, agents."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from fallow.core.errors import unknown

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """A read-only mapping that suggests the nearest name when one is missing."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def add(self, name: str, entry: T) -> T:
        """Register `entry` under `name`.

        A name can be taken once, but a cell of a notebook may be run again.
        """
        if name in self._entries and not _is_rerun(self._entries[name], entry):
            raise KeyError(f"{self.kind} '{name}' is registered already")
        self._entries[name] = entry
        return entry

    def __getitem__(self, name: str) -> T:
        if name not in self._entries:
            raise unknown(self.kind, name, self._entries)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _is_rerun(old: object, new: object) -> bool:
    """Whether a script or notebook has defined the same class again."""
    places = [
        (getattr(one, "__module__", None), getattr(one, "__qualname__", None))
        for one in (old, new)
    ]
    return places[0] == places[1] and places[0][0] == "__main__"
