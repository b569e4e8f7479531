"""Damage to bytes: as disks, networks and editors do it, and as an attacker does."""

import re
from collections.abc import Callable

import numpy as np

Damage = Callable[[bytearray, np.random.Generator], bytearray]
HUGE = (
    *(b"\xff" * 4, b"\xff" * 8, b"\x00\x00\x00\x40", b"\xff\xff\xff\x7f"),
    *((1 << 40).to_bytes(8, "little"), (1 << 62).to_bytes(8, "little")),
    *((1 << 31).to_bytes(8, "big"), b"\x00" * 8, b"\x01" + b"\x00" * 7),
)
"""Sizes that a file may declare."""
TOKENS = (
    *(b"nan", b"inf", b"-inf", b"1e400", b"-1e308", b"", b"abc", b"\x00", b"null"),
    *(b"9" * 400, b"\x1b[31m", b"true", b"[]", b"{}", b'"', b",", b"-0", b"0x1F"),
    *(b"1_000", b"\xff\xfe", b"[" * 3000),
)
"""Words in the place of a number or a name in text."""
_NUMBER = re.compile(rb"-?\d+(\.\d+)?(e-?\d+)?")
_NAME = re.compile(rb"[A-Za-z_][A-Za-z_.]+")


def damaged(content: bytes, random: np.random.Generator) -> tuple[bytes, str]:
    """The content after one to three kinds of damage, and their names."""
    found, names = bytearray(content), []
    for _ in range(1 + (random.random() < 0.3) + (random.random() < 0.1)):
        damage = DAMAGES[random.integers(len(DAMAGES))]
        names.append(damage.__name__.replace("_", " "))
        if found:
            found = damage(found, random)
    return bytes(found), ", ".join(names)


def _range(content: bytearray, random: np.random.Generator, most: int) -> slice:
    start = int(random.integers(len(content)))
    return slice(start, start + int(random.integers(1, most)))


def flip_bits(content: bytearray, random: np.random.Generator) -> bytearray:
    """One to sixteen."""
    for place in random.integers(0, len(content), random.integers(1, 17)):
        content[place] ^= 1 << int(random.integers(8))
    return content


def flip_a_bit(content: bytearray, random: np.random.Generator) -> bytearray:
    """One, near the beginning, where formats describe themselves."""
    content[int(random.integers(min(len(content), 600)))] ^= 1 << int(
        random.integers(8)
    )
    return content


def overwrite(content: bytearray, random: np.random.Generator) -> bytearray:
    """A piece with random bytes."""
    place = _range(content, random, 64)
    content[place] = random.bytes(len(content[place]))
    return content


def truncate(content: bytearray, random: np.random.Generator) -> bytearray:
    """Anywhere, or nearly at the end."""
    near = random.random() < 0.3
    kept = len(content) - int(random.integers(1, 50)) if near else None
    return content[: int(random.integers(len(content))) if kept is None else kept]


def insert(content: bytearray, random: np.random.Generator) -> bytearray:
    """Bytes that move all others."""
    place = int(random.integers(len(content)))
    content[place:place] = random.bytes(int(random.integers(1, 40)))
    return content


def remove(content: bytearray, random: np.random.Generator) -> bytearray:
    """A piece."""
    del content[_range(content, random, 600)]
    return content


def swap_blocks(content: bytearray, random: np.random.Generator) -> bytearray:
    """Two pieces of equal length."""
    size = int(random.integers(1, 512))
    a, b = (int(p) for p in random.integers(0, max(1, len(content) - size), 2))
    content[a : a + size], content[b : b + size] = (
        content[b : b + size],
        content[a : a + size],
    )
    return content


def repeat_block(content: bytearray, random: np.random.Generator) -> bytearray:
    """A piece, several times."""
    place = _range(content, random, 512)
    content[place.start : place.start] = content[place] * int(random.integers(1, 9))
    return content


def zero_tail(content: bytearray, random: np.random.Generator) -> bytearray:
    """As a crash leaves a file."""
    place = int(random.integers(len(content)))
    content[place:] = bytes(len(content) - place)
    return content


def huge_size(content: bytearray, random: np.random.Generator) -> bytearray:
    """A number that a size may be, in the place of some bytes."""
    place = int(random.integers(len(content)))
    size = HUGE[random.integers(len(HUGE))]
    content[place : place + len(size)] = size
    return content


def empty(content: bytearray, random: np.random.Generator) -> bytearray:
    """Nothing left."""
    return bytearray()


def odd_number(content: bytearray, random: np.random.Generator) -> bytearray:
    """Another word in the place of a number in text."""
    return _replaced(content, random, _NUMBER, TOKENS)


def odd_word(content: bytearray, random: np.random.Generator) -> bytearray:
    """Another word in the place of a name or a key."""
    return _replaced(content, random, _NAME, TOKENS)


def exchange_words(content: bytearray, random: np.random.Generator) -> bytearray:
    """A name in the place of another one."""
    names = tuple({match.group() for match in _NAME.finditer(content[:100_000])})
    return _replaced(content, random, _NAME, names) if names else content


def _replaced(
    content: bytearray,
    random: np.random.Generator,
    words: re.Pattern[bytes],
    others: tuple[bytes, ...],
) -> bytearray:
    found = list(words.finditer(content))
    if not found:
        return content
    match = found[random.integers(len(found))]
    content[match.start() : match.end()] = others[random.integers(len(others))]
    return content


DAMAGES: tuple[Damage, ...] = (
    *(flip_bits, flip_a_bit, overwrite, truncate, insert, remove, swap_blocks),
    *(repeat_block, zero_tail, huge_size, huge_size, empty),
    *(odd_number, odd_number, odd_word, exchange_words),
)
