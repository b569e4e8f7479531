"""A table as text, for the terminal, the page and notebooks."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TextTable:
    """Column heads and rows of text, none of it escaped."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
