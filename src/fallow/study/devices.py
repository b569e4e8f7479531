"""Devices by name, for which fleets are sized: `h200`, `cpu`, or memory as `24GiB`."""

from fallow.core.errors import unknown
from fallow.core.sizes import parse_size

GIB = 2**30
HERE = "here"
"""The device of this process."""
DEVICES_GIB = {"cpu": 8, "h200": 139, "h100": 79, "a100": 79}
"""Memory of devices by name; of a processor, what is planned with."""


def named_bytes(device: str) -> int | None:
    """Memory of a device by its name; None for `here`.

    Raises:
        FallowError: the name is unknown, or its memory is no positive number.
    """
    if device == HERE:
        return None
    if device in DEVICES_GIB:
        return DEVICES_GIB[device] * GIB
    if not device[:1].isdigit():
        raise unknown("device", device, (*DEVICES_GIB, HERE, "24GiB"))
    return parse_size(device, "device")
