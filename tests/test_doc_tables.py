"""Tables of the documentation that repeat a registry are those of the registry."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import doc_tables  # noqa: E402

PAGES = {page.name: page for page in sorted(doc_tables.DOCS.rglob("*.md"))}
MARKED = {
    name for name, page in PAGES.items() if "<!-- table: " in page.read_text("utf-8")
}


@pytest.mark.parametrize("name", sorted(MARKED))
def test_tables_are_up_to_date(name: str) -> None:
    """Run `python tools/doc_tables.py` if this fails."""
    text = PAGES[name].read_text(encoding="utf-8")
    assert doc_tables.updated(text) == text


def test_every_table_is_in_a_page_and_an_old_one_is_replaced() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES.values()]
    used = {found[2] for text in texts for found in doc_tables.MARKED.finditer(text)}
    assert used == set(doc_tables.TABLES)
    new = doc_tables.updated("<!-- table: estimates -->\nold\n<!-- end -->")
    assert "old" not in new and "| accelerator | 13 % |" in new
