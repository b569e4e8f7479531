"""Text to show: from outside (file names, topics, column names) and of our own."""

SURROGATES = range(0xDC80, 0xDD00)
"""How Python spells the bytes 0x80 to 0xFF of a file name that is not UTF-8."""


def printable(text: str, limit: int | None = None, *, keep_lines: bool = False) -> str:
    r"""The text with control characters, escape codes and stray bytes escaped.

    A terminal shows `\x1b[31m` instead of turning red. Cut after `limit` characters.
    Line ends are escaped too unless `keep_lines`.
    """
    cut = text if limit is None or len(text) <= limit else text[: limit - 1] + "…"
    kept = "\n" if keep_lines else ""
    return "".join(c if c.isprintable() or (c in kept) else _escaped(c) for c in cut)


def counted(n: int, noun: str) -> str:
    """`1 world`, `4 worlds`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def sentence(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def _escaped(character: str) -> str:
    code = ord(character)
    if code in SURROGATES:
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")
