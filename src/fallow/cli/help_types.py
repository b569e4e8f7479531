"""Types in help: `PATH` for an optional path, `[STR ...]` for several texts."""

import types
from dataclasses import replace
from typing import Any, get_args

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
)

REGISTRY = ConstructorRegistry()
"""tyro's own rules, and those below."""
KINDS = {int: "a whole number, e.g. 20", float: "a number, e.g. 1.5"}


def _spec_of(kind: Any, info: PrimitiveTypeInfo) -> Any:
    inner = PrimitiveTypeInfo.make(kind, info.markers)
    return ConstructorRegistry.get_primitive_spec(inner)


@REGISTRY.primitive_rule
def optional(info: PrimitiveTypeInfo) -> Any:
    """`X | None` is an X that can be left out."""
    kinds = [kind for kind in get_args(info.type) if kind is not types.NoneType]
    if info.type_origin is not types.UnionType or len(kinds) != 1:
        return None
    spec = _spec_of(kinds[0], info)
    return replace(
        spec,
        is_instance=lambda value: value is None or spec.is_instance(value),
        str_from_instance=lambda value: (
            ["None"] if value is None else spec.str_from_instance(value)
        ),
    )


@REGISTRY.primitive_rule
def number(info: PrimitiveTypeInfo) -> Any:
    """An int or a float, with a message for people where a text is neither."""
    if info.type not in KINDS:
        return None
    kind, what = info.type, KINDS[info.type]

    def read(texts: list[str]) -> Any:
        try:
            return kind(texts[0])
        except ValueError:
            raise ValueError(f"it is {texts[0]!r}; give {what}") from None

    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=kind.__name__.upper(),
        instance_from_str=read,
        # an int does for a float
        is_instance=lambda value: isinstance(value, int | kind),
        str_from_instance=lambda value: [str(value)],
    )


@REGISTRY.primitive_rule
def several(info: PrimitiveTypeInfo) -> Any:
    """`tuple[X, ...]` takes any number of X."""
    arguments = get_args(info.type)
    if info.type_origin is not tuple or arguments[1:] != (Ellipsis,):
        return None
    spec = _spec_of(arguments[0], info)
    many = f"{spec.metavar} ..."
    return PrimitiveConstructorSpec(
        nargs="*",
        metavar=many if tyro.conf.Positional in info.markers else f"[{many}]",
        instance_from_str=lambda texts: tuple(
            spec.instance_from_str([text]) for text in texts
        ),
        is_instance=lambda value: (
            isinstance(value, tuple) and all(map(spec.is_instance, value))
        ),
        str_from_instance=lambda values: [
            text for value in values for text in spec.str_from_instance(value)
        ],
        choices=spec.choices,
    )
