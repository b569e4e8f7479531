"""Imports go down the layers only, as the design draws them."""

import ast
from pathlib import Path

import fallow

ROOT = Path(fallow.__file__).parent
# a package imports only those before it
PACKAGES = (
    "",
    "core",
    "dynamics",
    "logs",
    "tracking",
    "replay",
    "views",
    "diagnosis",
    "agents",
    "study",
    "report",
    "console",
    "demo",
    "cli",
)
RANK = {name: rank for rank, name in enumerate(PACKAGES)}


def imports(path: Path) -> set[str]:
    """Modules of ours that a file imports, by their first name below `fallow`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module]
            if node.module == "fallow":
                names = [alias.name for alias in node.names]
                modules = [f"fallow.{n}" for n in names if n != "__version__"]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        assert getattr(node, "level", 0) == 0, f"{path}: relative import"
        found |= {
            [*module.split("."), ""][1]
            for module in modules
            if module.split(".")[0] == "fallow"
        }
    return found


def layer(path: Path) -> str:
    name = path.relative_to(ROOT).with_suffix("").parts[0]
    return {"__init__": "", "__main__": "cli"}.get(name, name)


def test_every_module_has_a_layer() -> None:
    assert {layer(path) for path in ROOT.rglob("*.py")} <= set(RANK)


def test_imports_go_down_only() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports fallow.{module}"
        for path in ROOT.rglob("*.py")
        if layer(path)  # the public API names all packages, and imports them lazily
        for module in imports(path)
        if RANK[module] > RANK[layer(path)]
    ]
    assert wrong == []


def test_the_check_can_fail() -> None:
    assert RANK["cli"] > RANK["dynamics"]
    assert "dynamics" in imports(ROOT / "logs" / "recorder.py")


def test_records_import_nothing_of_ours() -> None:
    assert imports(ROOT / "core" / "records.py") == set()


def test_dm_control_and_torch_are_never_imported() -> None:
    """But for the adapters to libraries that are made of torch."""
    for path in set(ROOT.rglob("*.py")) - set((ROOT / "replay/adapters").iterdir()):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in getattr(node, "names", [])]
            names.append(getattr(node, "module", None) or "")
            tops = {name.split(".")[0] for name in names if isinstance(name, str)}
            assert not tops & {"dm_control", "torch"}, path
