"""Text from files and names, made safe to print."""

import unicodedata


def printable(text: str) -> str:
    """`text` with control characters, and bytes that are no text, shown as escapes.

    Line ends stay. A name from a foreign file can thus not move the cursor, change
    colours or write to the clipboard of a terminal.
    """
    return "".join(c if _is_safe(c) else _escaped(c) for c in text)


def _is_safe(character: str) -> bool:
    return character == "\n" or unicodedata.category(character) not in UNSAFE


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


UNSAFE = ("Cc", "Cs", "Co", "Cn", "Zl", "Zp")
"""Control characters, surrogates, characters without a meaning, line separators."""
