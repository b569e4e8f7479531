"""The documents: links and names exist, snippets run, commands are known.

`<!-- needs: library -->` on the line before a Python snippet leaves it out where that
library is missing. A `text` block right after a snippet is what the snippet prints.
"""

import contextlib
import importlib.util
import io
import pkgutil
import re
import runpy
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest
from PIL import Image

from fallow.cli import commands
from fallow.replay.rules import RULES

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [
    *DOCS,
    *(ROOT / name for name in ("CONTRIBUTING.md", "README.md", "results/README.md")),
]
SILENT = ("agents", "dynamics", "replay", "study")
"""Guides whose snippets may print nothing."""
LINK = re.compile(r"\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"`(fallow(?:\.\w+)+)")
NEEDS = re.compile(r"<!-- needs: (\w+) -->\n$")


class Snippet(NamedTuple):
    """A Python block of a page."""

    code: str
    skipped: bool
    printed: str | None
    """What the page says it prints."""


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def snippets(page: Path) -> list[Snippet]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(text):
        if match[1] != "python":
            continue
        after = BLOCK.match(text, match.end() + len("\n\n"))
        printed = after[2] if after and after[1] == "text" else None
        needs = NEEDS.search(text[: match.start()])
        missing = needs is not None and importlib.util.find_spec(needs[1]) is None
        found.append(Snippet(match[2], missing, printed))
    return found


def anchors(page: Path) -> set[str]:
    """Of a page's headings, as GitHub names them."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles
    }


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    missing = []
    for link in LINK.findall(BLOCK.sub("", page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(link)
    assert missing == []


def test_names_of_modules_and_functions_exist() -> None:
    """As pages write them; the adapters need libraries that may be missing."""
    names = {name for page in PAGES for name in NAME.findall(page.read_text())}
    for name in sorted(names):
        if ".adapters." not in name:
            pkgutil.resolve_name(name)
    assert len(names) > 15


def test_the_site_has_every_page() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    named = re.findall(r"[\w/.-]+\.md$", nav, re.MULTILINE)
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in DOCS}
    assert sorted(named) == sorted(pages | {"results/README.md"})


@pytest.mark.parametrize(
    "page", [page for page in PAGES if snippets(page)], ids=name_of
)
def test_snippets_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of a page, in order, in one namespace and one folder: that of a clone.

    In README each runs alone, since each is of another reader.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(RULES, "_entries", dict(RULES._entries))  # a page adds one
    for name in ("examples", "results"):
        (tmp_path / name).symlink_to(ROOT / name)
    start: dict[str, object] = {"__name__": name_of(page)}
    namespace = dict(start)
    for number, snippet in enumerate(snippets(page)):
        code = compile(snippet.code, f"{name_of(page)}, snippet {number}", "exec")
        if snippet.skipped:
            continue
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, dict(start) if page.stem == "README" else namespace)
        if page.stem not in SILENT:
            assert printed.getvalue(), f"snippet {number} prints nothing"
        if snippet.printed is not None:
            assert printed.getvalue() == snippet.printed


def test_the_readme_is_short_and_its_film_small() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
    assert (ROOT / "docs" / "walker.gif").stat().st_size < 1_000_000


def test_the_film_is_made_by_its_tool(tmp_path: Path) -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "walker_gif.py"))
    tool["main"].__globals__.update(FROM_S=-0.1, TO_S=0.1)  # around the change
    tool["main"](tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as film:
        assert film.n_frames == 4
        film.seek(0)
        before = film.convert("RGB")
        film.seek(3)  # the weakened walker, on the right, has another colour
        after = film.convert("RGB")
    left, right = (0, 0, 320, 220), (320, 0, 640, 220)
    new = set(dict(map(reversed, after.crop(right).getcolors(9999))))
    assert new - set(dict(map(reversed, before.crop(right).getcolors(9999))))
    assert before.crop(left).tobytes() != after.crop(left).tobytes()  # it walks


def shell_lines(page: Path) -> list[str]:
    """What a page types after `fallow`, without remarks."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    lines = [line for kind, text in blocks if not kind for line in text.splitlines()]
    parts = [part for line in lines for part in line.partition("#")[0].split("&&")]
    return [part.strip() for part in parts if part.strip().startswith("fallow ")]


@pytest.mark.parametrize("page", [p for p in PAGES if shell_lines(p)], ids=name_of)
def test_commands_are_known(page: Path) -> None:
    for line in dict.fromkeys(shell_lines(page)):
        arguments = shlex.split(line)[1:]
        if arguments[-1] == "--help" or arguments[0].startswith("--tyro-write"):
            continue
        with contextlib.redirect_stderr(io.StringIO()) as said:
            try:
                commands._command(arguments)
            except SystemExit:
                pytest.fail(f"{line}: {said.getvalue()}")
