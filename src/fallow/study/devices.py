"""Devices by name, for which fleets are sized: `h200`, `cpu`, or memory as `24GiB`."""

from fallow.core.errors import FallowError, unknown

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
    if not device.endswith("GiB"):
        if device not in DEVICES_GIB:
            raise unknown("device", device, (*DEVICES_GIB, HERE, "24GiB"))
        return DEVICES_GIB[device] * GIB
    try:
        n_bytes = int(float(device.removesuffix("GiB")) * GIB)
    except (ValueError, OverflowError):
        n_bytes = 0
    if n_bytes < 1:
        raise FallowError(f"cannot read device '{device}'; write its memory as 24GiB")
    return n_bytes
