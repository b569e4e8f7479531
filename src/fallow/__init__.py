"""Which of its past experience should a learning robot keep after its body changed?"""

import importlib
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "diagnose": "fallow.diagnosis.pipeline",
    "read_log": "fallow.logs.readers",
}
"""Public names and the modules that define them; each is imported when first used."""

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'fallow' has no attribute '{name}'")
    value = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
