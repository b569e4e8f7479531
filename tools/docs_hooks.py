"""Hooks of `mkdocs build`: linked files outside docs/, and generated tables.

A link that leaves docs/ (`../results/README.md`) works on the repository's own pages.
In the site the file it names lies at its path in the repository, and the link follows.
"""

import os
import posixpath
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FOLDER_LINK = re.compile(r"\[([^\[\]]*)\]\(([^)\s]+)\)")
OF_A_FOLDER = ("report.html", "README.md", "results.csv")
"""What a link to a folder means, the first that there is."""
NAMES, HELP = "<!-- fallow list -->", re.compile(r"<!-- fallow (\w+) --help -->")


def on_files(files: Files, config: Any) -> Files:
    """Add every file outside docs/ that a page links to, also through another."""
    waiting = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    seen = set(waiting)
    while waiting:
        page = waiting.pop()
        for _, link, _ in LINK.findall((ROOT / page).read_text(encoding="utf-8")):
            path = repository_path(page, link)
            if path is None or path in seen or path.startswith("docs/"):
                continue
            seen.add(path)
            source = str(ROOT / path)
            files.append(File.generated(config, path, abs_src_path=source))
            if path.endswith(".md"):
                waiting.append(path)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links at their places in the site, and fill in generated tables."""
    uri = page.file.src_uri
    source = f"docs/{uri}" if (ROOT / "docs" / uri).exists() else uri

    def moved(match: re.Match[str]) -> str:
        path = repository_path(source, match[2])
        if path is None:
            return match[0]
        target = posixpath.relpath(path.removeprefix("docs/"), posixpath.dirname(uri))
        anchor = match[2].partition("#")[2]
        return f"{match[1]}{target}{'#' + anchor if anchor else ''}{match[3]}"

    markdown = LINK.sub(moved, without_folders(markdown, source))
    if NAMES in markdown:
        markdown = markdown.replace(NAMES, names())
    return HELP.sub(lambda match: help_of(match[1]), markdown)


def repository_path(page: str, link: str) -> str | None:
    """Path in the repository of what a page's relative link names; None for others.

    A study's folder stands for its page, or for its table where it has no page.
    """
    path = _joined(page, link)
    if path is None or not (ROOT / path).is_dir():
        return path if path and (ROOT / path).exists() else None
    files = (f"{path}/{name}" for name in OF_A_FOLDER)
    return next((file for file in files if (ROOT / file).exists()), None)


def without_folders(markdown: str, page: str) -> str:
    """The text of a page whose links to folders that the site has not are plain."""

    def plain(match: re.Match[str]) -> str:
        path = _joined(page, match[2])
        is_folder = path is not None and (ROOT / path).is_dir()
        known = not is_folder or repository_path(page, match[2]) is not None
        return match[0] if known else match[1]

    return FOLDER_LINK.sub(plain, markdown)


def _joined(page: str, link: str) -> str | None:
    """Path in the repository that a page's relative link has; None for others."""
    path = link.partition("#")[0]
    if not path or "://" in path or path.startswith("mailto:"):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path))


def names() -> str:
    """Everything that is chosen by name, a table a kind."""
    from fallow.cli.list import summaries

    tables = []
    for group, entries in summaries().items():
        rows = [f"| `{name}` | {summary} |" for name, summary in entries.items()]
        tables.append(f"## {group.capitalize()}\n\n| name | |\n| --- | --- |")
        tables[-1] += "\n" + "\n".join(rows)
    return "\n\n".join(tables)


def help_of(command: str) -> str:
    """What `fallow COMMAND --help` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "fallow.cli", command, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "80"},
    )
    return f"```text\n{done.stdout.strip()}\n```"
