"""One word for one thing: none of the old words, no two classes of one name."""

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "benchmarks", "examples", "tools")
RETIRED = {"book", "drawer", "hoist", "judged", "judging", "lived", "own", "proceeds"}
RETIRED |= {"hoisted", "told"}
"""No part of an identifier: ledger, sampler, evaluated, a noun for `own`, …"""
PHRASES = re.compile(r"\b(judged|judging|told|telling|(go|goes|gone|going) on with)\b")
"""In no docstring, message or page: evaluated, reported, resumed."""
AGENTS = {"agents.dreamer", "agents.tdmpc"}
"""Two agents have the same parts, and each calls them as its paper does."""


def trees() -> dict[Path, ast.Module]:
    paths = [path for name in FOLDERS for path in sorted((ROOT / name).rglob("*.py"))]
    return {
        p.relative_to(ROOT): ast.parse(p.read_text(encoding="utf-8")) for p in paths
    }


def names(node: ast.AST) -> set[str]:
    """The identifiers of one node; f-strings are read as well."""
    found = (getattr(node, field, None) for field in ("id", "arg", "attr", "name"))
    return {name for name in found if isinstance(name, str)}


def test_no_identifier_has_a_retired_word() -> None:
    found = {
        f"{path}:{node.lineno} {name}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        for name in names(node)
        if not name.startswith("test_")
        and RETIRED.intersection(re.findall("[a-z]+", name.lower()))
    }
    assert not found


def test_no_text_has_a_retired_phrase() -> None:
    paths = [
        path
        for name in (*FOLDERS, "docs")
        for path in (ROOT / name).rglob("*")
        if path.suffix in (".py", ".md", ".html") and path != Path(__file__)
    ]
    found = {
        f"{path.relative_to(ROOT)}: {phrase[0]}"
        for path in paths
        for phrase in PHRASES.finditer(path.read_text(encoding="utf-8"))
    }
    assert len(paths) > 400 and not found


def package(path: Path) -> str:
    """`agents.dreamer` of a file of an agent, else the package below `fallow`."""
    parts = path.relative_to("src/fallow").parts
    return ".".join(parts[:2]) if parts[0] == "agents" and parts[2:] else parts[0]


def test_no_two_public_classes_share_a_name() -> None:
    places = defaultdict(list)
    for path, tree in trees().items():
        for node in ast.walk(tree) if path.parts[0] == "src" else ():
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(package(path))
    shared = {name: where for name, where in places.items() if len(where) > 1}
    roles = {name for name, where in shared.items() if sorted(where) == sorted(AGENTS)}
    assert not {name: where for name, where in shared.items() if name not in roles}
    assert {"Config", "Learner"} <= roles  # so that the exception is in use
