"""Arrays and a JSON header in one checked file, without pickle.

The file is plain safetensors, readable by any tool, with the header and a checksum over
all bytes in its metadata. It is written under another name and renamed, so the old file
stays valid until the new one is complete.
"""

import errno
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from fallow.core import files
from fallow.core.errors import FallowError


def save(
    path: str | Path,
    kind: str,
    version: int,
    arrays: Mapping[str, np.ndarray],
    header: Mapping[str, Any],
) -> None:
    """Write a `kind` of file, or leave the old one as it is.

    Raises:
        OSError: it cannot be written, as with no space left.
    """
    packed = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    about = {"kind": kind, "version": version, "header": header}
    metadata = {
        "fallow": json.dumps(about, sort_keys=True),
        "checksum": str(_checksum(packed, about)),
    }
    try:
        with files.write_atomic(path) as part:
            part.touch()  # says what is refused better than the library does
            save_file(packed, part, metadata)
    except SafetensorError as error:  # the only kind it has, also for a full disk
        full = os.strerror(errno.ENOSPC) in str(error)
        raise OSError(errno.ENOSPC if full else errno.EIO, str(error)) from error


def load(
    path: str | Path, kind: str, version: int
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the arrays and the header back.

    Raises:
        FallowError: no such file, of another kind or version, cut short, or edited.
    """
    path = Path(path)
    if not path.is_file():
        raise FallowError(f"there is no {kind} at {path}")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise FallowError(f"{path} cannot be read: {error}") from None
    if "fallow" not in metadata:
        raise FallowError(f"{path} was not written by Fallow")
    about = json.loads(metadata["fallow"])
    if about["kind"] != kind or about["version"] != version:
        raise FallowError(
            f"{path} is a {about['kind']} of version {about['version']}; "
            f"this needs a {kind} of version {version}"
        )
    if metadata.get("checksum") != str(_checksum(arrays, about)):
        raise FallowError(f"{path} was edited or damaged: its checksum does not match")
    return arrays, about["header"]


def fingerprint(path: str | Path) -> str:
    """The checksum that a file carries of all its content, read without loading it.

    Raises:
        FallowError: no such file, or it carries none.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            return str((file.metadata() or {})["checksum"])
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise FallowError(f"{path} cannot be read: {error}") from None


def _checksum(arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> int:
    value = zlib.crc32(json.dumps(about, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        shape = f"{name}{array.dtype.str}{array.shape}".encode()
        content = array.reshape(-1).view(np.uint8).data
        value = zlib.crc32(content, zlib.crc32(shape, value))
    return value
