"""Sizes in bytes: read from text, written for people, and this machine's memory."""

import os
import re
from pathlib import Path

from fallow.core import options
from fallow.core.errors import FallowError

UNITS = {
    "": 1,
    "b": 1,
    **{unit: 1000**power for power, unit in enumerate(("kb", "mb", "gb", "tb"), 1)},
    **{unit: 1024**power for power, unit in enumerate(("kib", "mib", "gib", "tib"), 1)},
    **{unit: 1024**power for power, unit in enumerate("kmgt", 1)},
}
"""Bytes in a unit; a bare letter is binary, as in `ulimit` and `java -Xmx4g`."""
MAX_DIGITS = 20
"""Of a size; more is taken for a typing error."""
UNKNOWN_MEMORY = 8 << 30
"""Bytes assumed if the machine does not report its memory."""
_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def parse_size(text: str, option: str) -> int:
    """Bytes in `4GiB`, `500MB`, `2g` or `1048576`.

    Raises:
        FallowError: it is no size, or 0.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower())
    n_bytes = 0
    if match and match[2] in UNITS and len(match[1]) <= MAX_DIGITS:
        n_bytes = int(float(match[1]) * UNITS[match[2]])
    if n_bytes < 1:
        raise FallowError(
            f"{option} is '{options.shown(text)}'; write a size such as 500MB or 4GiB"
        )
    return n_bytes


def size_text(n_bytes: float) -> str:
    """Three digits and a binary unit: `1.86 GiB`."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:,.3g} TiB"


def machine_memory() -> int:
    """Bytes of memory that this process may have: the machine's, or its container's."""
    found = [UNKNOWN_MEMORY]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in _CGROUP_LIMITS:
        try:
            found.append(int(path.read_text()))
        except (OSError, ValueError):  # no container, or `max`
            continue
    return min(found)
