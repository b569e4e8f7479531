"""Sizes of an agent, checked; a preset may be given with some of them changed."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from fallow.core import options
from fallow.core.errors import unknown

COMPUTE_TYPES = ("float32", "bfloat16")
"""In which matrices are multiplied."""
MAY_BE_ZERO: Mapping[str, Any] = {"at_least": 0}
"""Metadata of a size of which there can be none."""


def check(config: Any, owner: str) -> None:
    """Check that integers are 1 or more, learning rates above 0, and types known."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.type is int:
            least = field.metadata.get("at_least", 1)
            options.check_int(owner, field.name, value, least)
        elif field.type is float:
            options.check_number(owner, field.name, value, above=0)
        elif value not in COMPUTE_TYPES:
            raise unknown(f"{field.name} of {owner}", value, COMPUTE_TYPES)
