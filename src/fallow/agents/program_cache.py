"""The folder of compiled programs: private, sealed, and rebuilt if in doubt.

Its files are executed, so only files that this user wrote are read. The folder belongs
to this user alone (mode 0700) and has a seal, and so has every program in it:

    file  = MAGIC, seal (32 bytes), digest (32 bytes), payload
    seal  = HMAC-SHA256 of the digest under a secret key of this user

The key is stored apart, in the cache of the user. A folder of another machine or user
has other seals; it is used only after `trust`, which checks digests and renews the
seals.
"""

import hashlib
import hmac
import os
import secrets
import stat
from pathlib import Path

from fallow.core import files
from fallow.core.errors import FallowError

MAGIC = b"FALLOWP2"
SEAL = "seal"
"""The file that marks the folder as that of this user."""
PROGRAMS = "programs"
_SIZE = hashlib.sha256().digest_size


def open_cache(folder: Path, trusted: bool = False) -> None:
    """Make a folder of programs private and check that this user filled it.

    Raises:
        FallowError: it is another user's, or was filled elsewhere and is not trusted.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    about = folder.stat()
    if hasattr(os, "getuid") and about.st_uid != os.getuid():
        raise FallowError(
            f"{folder} belongs to another user, and compiled programs in it would be "
            "run; choose another folder with --cache or FALLOW_CACHE"
        )
    mode, is_empty = stat.S_IMODE(about.st_mode), not any(folder.iterdir())
    if mode & 0o022 and not is_empty:
        raise FallowError(
            f"{folder} can be written by other users (mode {mode:o}), and compiled "
            "programs in it would be run; remove it or choose another folder with "
            "--cache or FALLOW_CACHE"
        )
    if mode & 0o077:
        folder.chmod(0o700)
    if _is_sealed(folder):
        return
    if not trusted and not is_empty:
        raise FallowError(
            f"{folder} was filled by another machine or user, and compiled programs in "
            "it would be run; add --trust-cache if you trust where it comes from, or "
            "choose another folder with --cache"
        )
    _trust(folder)


def read(path: Path) -> bytes | None:
    """The payload of a program; None if it is missing, altered or not this user's."""
    found = _parts(path)
    if found is None or not hmac.compare_digest(found[0], _sealed(found[1])):
        return None
    return found[2]


def write(path: Path, payload: bytes) -> None:
    """Write a program with its seal, atomically."""
    digest = hashlib.sha256(payload).digest()
    with files.write_atomic(path) as part:
        part.write_bytes(MAGIC + _sealed(digest) + digest + payload)


def _parts(path: Path) -> tuple[bytes, bytes, bytes] | None:
    """Seal, digest and payload of a file whose digest is right."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    head, payload = content[: len(MAGIC) + 2 * _SIZE], content[len(MAGIC) + 2 * _SIZE :]
    seal, digest = head[len(MAGIC) : -_SIZE], head[-_SIZE:]
    is_good = head.startswith(MAGIC) and hashlib.sha256(payload).digest() == digest
    return (seal, digest, payload) if is_good else None


def _trust(folder: Path) -> None:
    """Seal a folder and all programs in it that are not altered."""
    programs = folder / PROGRAMS
    for path in sorted(programs.iterdir()) if programs.is_dir() else ():
        found = _parts(path)
        if found is not None:
            write(path, found[2])
    name = secrets.token_bytes(_SIZE)
    with files.write_atomic(folder / SEAL) as part:
        part.write_bytes(_sealed(name) + name)


def _is_sealed(folder: Path) -> bool:
    try:
        content = (folder / SEAL).read_bytes()
    except OSError:
        return False
    return hmac.compare_digest(content[:_SIZE], _sealed(content[_SIZE:]))


def _sealed(digest: bytes) -> bytes:
    return hmac.digest(_key(), digest, "sha256")


def _key() -> bytes:
    """The secret of this user; made once."""
    path = Path.home() / ".cache" / "fallow-key"
    if not path.exists():
        with files.write_atomic(path) as part:
            part.touch(mode=0o600)
            part.write_bytes(secrets.token_bytes(_SIZE))
    return path.read_bytes()
