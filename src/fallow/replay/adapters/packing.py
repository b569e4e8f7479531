"""A buffer's whole state as bytes, for libraries that store it in their files."""

from pathlib import Path
from tempfile import TemporaryDirectory

from fallow.replay.buffer import Buffer

FILE = "replay.safetensors"


def pack(buffer: Buffer) -> bytes:
    """The content of `buffer.save`."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / FILE
        buffer.save(path)
        return path.read_bytes()


def unpack(buffer: Buffer, content: bytes) -> None:
    """Load what `pack` gave into a buffer made with the same arguments."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / FILE
        path.write_bytes(content)
        buffer.load(path)
