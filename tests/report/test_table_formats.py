"""A table in every format: names with anything in them, numbers that lose nothing."""

import csv
import io
import re
import statistics
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import table
from markdown_it import MarkdownIt
from rich.console import Console
from scipy import stats

from fallow.report.cells import MeanCell, ReportTable, TextCell
from fallow.report.formats import (
    comma_separated,
    latex,
    latex_text,
    markdown,
    terminal,
    write_tables,
)
from fallow.report.tables import tables_of

PASSIVE = (177.0, 150.0, 210.0, 190.0, 158.0)
RECENCY = (320.0, 301.0, 205.0, 402.0, 297.0)
TABLE1 = {
    ("gain", "passive"): PASSIVE,
    ("gain", "recency"): RECENCY,
    ("recurring", "passive"): RECENCY,
    ("recurring", "recency"): PASSIVE,
}
NASTY = r"a|b_c & <d> 50% $x$ #1 {e} \f ^g ~h *i* [j](k) `l`"


def nasty_table() -> ReportTable:
    return ReportTable(
        f"title {NASTY}",
        ("Change", NASTY),
        ((TextCell(NASTY), MeanCell(-3.25, 0.5, 2, 3, digits=2)),),
        (f"note {NASTY}",),
    )


def test_markdown_shows_names_as_they_are() -> None:
    tokens = MarkdownIt("commonmark").enable(["table"]).parse(markdown(nasty_table()))
    texts = [
        "".join(child.content for child in token.children)
        for token in tokens
        if token.type == "inline"
    ]
    assert texts == [
        f"title {NASTY}", "Change", NASTY, NASTY, "-3.25 ± 0.50 (2 of 3)",
        f"note {NASTY}",
    ]  # fmt: skip
    kinds = {c.type for t in tokens if t.children for c in t.children}
    assert kinds <= {"text", "text_special", "strong_open", "strong_close"}


UNDONE = {
    r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^",
    r"\textless{}": "<", r"\textgreater{}": ">", r"\textbar{}": "|",
    r"\textquotedbl{}": '"', r"$\pm$": "±",
    r"\textendash{}": "–", "-{}": "-",
}  # fmt: skip
COMMAND = re.compile(
    "|".join(map(re.escape, UNDONE)) + r"|\\([&%$#_{}])|\$([-+][\d.]*)\$"
)


def read_latex(text: str) -> str:
    """Our own reading of what LaTeX would print, strict about what is left over."""
    assert not set(COMMAND.sub("", text)) & set("\\{}$&#^_~%<>|")
    return COMMAND.sub(
        lambda m: UNDONE.get(m[0]) or m[1] or m[2],
        text,
    )


@settings(deadline=None)
@given(st.text(st.sampled_from('ab1 -+.&%$#_{}~^\\<>|"±–')))
def test_latex_shows_any_name_as_it_is(text: str) -> None:
    plain = " ".join(text.split())
    assert "--" not in latex_text(plain)  # LaTeX would make one dash of them
    assert read_latex(latex_text(plain)) == plain


def test_latex_is_a_booktabs_table() -> None:
    lines = latex(nasty_table()).splitlines()
    assert lines[0] == r"\begin{table}[t]" and lines[-1] == r"\end{table}"
    rules = [r"\toprule", r"\midrule", r"\bottomrule"]
    assert [line for line in lines if line in rules] == rules
    assert r"\begin{tabular}{@{}lc@{}}" in lines
    (row,) = [line for line in lines if r"$\pm$" in line]
    first, second = re.split(r"(?<!\\)&", row.removesuffix(r" \\"))
    assert read_latex(first.strip()) == NASTY
    assert second.strip() == r"$-3.25$ $\pm$ 0.50 (2 of 3)"
    unescaped = re.findall(r"(?<!\\)[{}]", latex(nasty_table()))
    assert unescaped.count("{") == unescaped.count("}")


def test_csv_has_a_column_for_each_number_and_rounds_nothing() -> None:
    made = tables_of(table(TABLE1), "table1")[1]
    rows = list(csv.DictReader(io.StringIO(comma_separated(made))))
    assert len(rows) == 12
    d = [a - b for a, b in zip(TABLE1["gain", "recency"], TABLE1["gain", "passive"],
                               strict=True)]  # fmt: skip
    first = rows[0]
    assert float(first["ours mean"]) == pytest.approx(statistics.mean(d), rel=1e-12)
    assert float(first["ours se"]) == pytest.approx(stats.sem(d), rel=1e-12)
    assert (first["ours n"], first["ours of"]) == ("5", "5")
    assert (first["the paper mean"], first["the paper se"]) == ("146", "38")
    assert rows[1]["the paper se"] == ""
    returns = tables_of(table(TABLE1), "table1")[0]
    rows = list(csv.DictReader(io.StringIO(comma_separated(returns))))
    assert [row["Change"] for row in rows[:2]] == ["Gain reduction"] * 2
    assert [row["whose"] for row in rows[:2]] == ["ours", "the paper"]
    (head, row) = csv.reader(io.StringIO(comma_separated(nasty_table())))
    assert head == [
        "Change",
        f"{NASTY} mean",
        f"{NASTY} se",
        f"{NASTY} n",
        f"{NASTY} of",
    ]
    assert row == [NASTY, "-3.25", "0.5", "2", "3"]


def test_the_terminal_reads_no_markup_in_names() -> None:
    made = ReportTable(
        "[bold]t[/bold]", ("[red]x", "y"), ((TextCell("[/]"), TextCell(NASTY)),)
    )
    console = Console(width=120, file=io.StringIO(), force_terminal=False)
    console.print(terminal(made))
    out = console.file.getvalue()
    for text in ("[bold]t[/bold]", "[red]x", "[/]", NASTY):
        assert text in out


def test_line_breaks_in_names_break_no_row() -> None:
    made = ReportTable("t", ("x",), ((TextCell("a\nb | c\r\nd"),),))
    assert markdown(made).splitlines()[4] == r"| a b \| c d |"
    assert r"a b \textbar{} c d \\" in latex(made).splitlines()


def test_tables_are_written_in_every_format(tmp_path: Path) -> None:
    made = tables_of(table(TABLE1), "table1")
    written = write_tables(made, tmp_path / "tables", "table1")
    assert [path.name for path in written[:4]] == [
        "table1-1.md", "table1-1.tex", "table1-1.csv", "table1-2.md",
    ]  # fmt: skip
    assert written[0].read_text(encoding="utf-8") == markdown(made[0])
    assert len(written) == 9 and all(path.stat().st_size for path in written)
