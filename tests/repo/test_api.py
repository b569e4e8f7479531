"""The public API: lazy, typed, documented."""

import dataclasses
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import fallow

NAMES = [name for name in fallow.__all__ if name != "__version__"]
REFERENCE = Path(__file__).parents[2] / "docs" / "api.md"


def test_importing_it_imports_nothing_heavy() -> None:
    code = "import fallow, sys; print(sorted(sys.modules))"
    found = subprocess.check_output([sys.executable, "-c", code], text=True)
    for heavy in ("numpy", "jax", "mujoco", "scipy", "fallow.core"):
        assert f"'{heavy}'" not in found


def test_every_name_is_there_and_listed() -> None:
    assert set(NAMES) == set(fallow._PUBLIC)
    assert set(fallow.__all__) <= set(dir(fallow))
    for name in NAMES:
        assert getattr(fallow, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = fallow.nonsense


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("fallow.dynamics.gym", "gymnasium"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.delitem(vars(fallow), "ShiftDynamics", raising=False)
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ImportError, match=r"ShiftDynamics needs .*pip install .*gymn"):
        _ = fallow.ShiftDynamics


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_documented(name: str) -> None:
    """By Args in the docstring, or, in a dataclass, in its source."""
    thing = getattr(fallow, name)
    text = inspect.getdoc(thing) or ""
    assert text
    if inspect.isfunction(thing):
        assert "Raises:" in text and "Returns:" in text
    called = thing if inspect.isfunction(thing) else thing.__init__
    given = [p for p in inspect.signature(called).parameters if p not in ("self",)]
    has_fields = dataclasses.is_dataclass(thing) or hasattr(thing, "_fields")
    where = inspect.getsource(thing) if has_fields else text
    for parameter in given:
        if parameter not in ("args", "kwargs"):
            assert f"{parameter}: " in where, parameter


def methods() -> list[tuple[str, Callable]]:
    """Public methods of public classes that take arguments."""
    classes = [getattr(fallow, n) for n in NAMES if inspect.isclass(getattr(fallow, n))]
    found = [
        (f"{cls.__name__}.{name}", getattr(entry, "__func__", entry))
        for cls in classes
        for name, entry in vars(cls).items()
        if not name.startswith("_")
    ]
    return [(n, f) for n, f in found if inspect.isfunction(f) and parameters(f)]


def parameters(method: Callable) -> list[str]:
    """Names of all but the first and the variable ones."""
    given = inspect.signature(method).parameters.values()
    names = [p.name for p in given if p.kind is not p.VAR_KEYWORD]
    return [name for name in names if name not in ("self", "cls")]


@pytest.mark.parametrize(("name", "method"), methods())
def test_every_method_is_documented(name: str, method: Callable) -> None:
    text = inspect.getdoc(method) or ""
    missing = [p for p in parameters(method) if f"{p}: " not in text]
    assert not missing
    if inspect.signature(method).return_annotation not in (None, "None"):
        assert "Returns:" in text


def test_it_is_typed() -> None:
    assert Path(fallow.__file__).with_name("py.typed").exists()


def test_the_reference_names_all_of_it() -> None:
    text = REFERENCE.read_text()
    assert [name for name in NAMES if f"::: fallow.{name}\n" not in text] == []
