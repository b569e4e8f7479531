"""Tables of the documentation that repeat a registry are those of the registry."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import doc_tables  # noqa: E402

PAGES = sorted(doc_tables.DOCS.rglob("*.md"))
STALE = """
import doc_tables
texts = {page: page.read_text("utf-8") for page in doc_tables.DOCS.rglob("*.md")}
print([page.name for page, text in texts.items() if doc_tables.updated(text) != text])
"""


def test_tables_are_up_to_date() -> None:
    """Run `python tools/doc_tables.py` if this fails.

    In a process of its own: other tests add to the registries.
    """
    done = subprocess.run(
        [sys.executable, "-c", STALE],
        cwd=ROOT / "tools",
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_every_table_is_in_a_page_and_an_old_one_is_replaced() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    used = {found[2] for text in texts for found in doc_tables.MARKED.finditer(text)}
    assert used == set(doc_tables.TABLES)
    new = doc_tables.updated("<!-- table: estimates -->\nold\n<!-- end -->")
    assert "old" not in new and "| accelerator | 13 % |" in new
