"""A table on the terminal, in Markdown, in LaTeX and as csv; names are escaped."""

import csv
import html
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from fallow.core import files
from fallow.report.cells import ReportTable, TableCell
from fallow.views.terminal_table import TerminalTable

MARKDOWN_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "±": r"$\pm$",
    "–": r"\textendash{}",
}
SIGNED = re.compile(r"(?<![\w.])([+-]\d[\d.]*|(?<=\s)-(?=\s))")
"""A number with a sign, or a minus; LaTeX sets them as mathematics."""


def terminal(table: ReportTable) -> TerminalTable:
    """A table that rich prints; names are not read as markup."""
    return TerminalTable(
        [_line(name) for name in table.head],
        [[_line(text) for text in row] for row in table.texts()],
        table.n_labels,
        _line(table.title),
        [_line(note) for note in table.notes],
        numbers=True,
    )


def markdown(table: ReportTable) -> str:
    """A pipe table below its title, notes after it."""
    rule = [" --- " if i < table.n_labels else " ---: " for i in range(len(table.head))]
    lines = [
        f"**{markdown_text(table.title)}**",
        "",
        _pipes([markdown_text(name) for name in table.head]),
        f"|{'|'.join(rule)}|",
        *(_pipes([markdown_text(text) for text in row]) for row in table.texts()),
    ]
    for note in table.notes:
        lines += ["", markdown_text(note)]
    return "\n".join(lines) + "\n"


def latex(table: ReportTable) -> str:
    """A table environment with booktabs' rules; notes below in small print."""
    n_numbers = len(table.head) - table.n_labels
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{latex_text(table.title)}}}",
        rf"\begin{{tabular}}{{@{{}}{'l' * table.n_labels}{'c' * n_numbers}@{{}}}}",
        r"\toprule",
        _ampersands(table.head),
        r"\midrule",
        *(_ampersands(row) for row in table.texts()),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par\smallskip{{\footnotesize {latex_text(n)}}}" for n in table.notes),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def comma_separated(table: ReportTable) -> str:
    """Csv with a column for each number: mean, s.e., n, ends of intervals.

    Nothing is rounded; missing values are empty. Title and notes are left out.
    """
    columns = [_names(table, place) for place in range(len(table.head))]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        f"{head} {name}".strip()
        for head, names in zip(table.head, columns, strict=True)
        for name in names
    )
    for row in table.rows:
        writer.writerow(
            "" if (value := cell.values().get(name)) is None else value
            for cell, names in zip(row, columns, strict=True)
            for name in names
        )
    return file.getvalue()


FORMATS: dict[str, Callable[[ReportTable], str]] = {
    "md": markdown,
    "tex": latex,
    "csv": comma_separated,
}
"""By the ending of a file's name."""


def write_tables(
    tables: Sequence[ReportTable], folder: str | Path, stem: str
) -> list[Path]:
    """Write each table in every format, as `stem-1.md` and so on; returns the files."""
    return [
        path
        for place, table in enumerate(tables, start=1)
        for path in write_table(table, folder, f"{stem}-{place}")
    ]


def write_table(table: ReportTable, folder: str | Path, stem: str) -> list[Path]:
    """Write a table in every format; returns the files."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    written = {Path(folder) / f"{stem}.{e}": shape for e, shape in FORMATS.items()}
    for path, shape in written.items():
        files.write_text(path, shape(table))
    return list(written)


def markdown_text(text: str) -> str:
    """Text escaped for Markdown."""
    return MARKDOWN_SPECIAL.sub(r"\\\1", html.escape(_line(text), quote=False))


def latex_text(text: str) -> str:
    """Text escaped for LaTeX."""
    parts = SIGNED.split(_line(text))
    return "".join(
        f"${part}$" if place % 2 else _latex_plain(part)
        for place, part in enumerate(parts)
    )


def _latex_plain(text: str) -> str:
    """Separates two hyphens, which LaTeX would join to a dash."""
    return re.sub("-(?=-)", "-{}", "".join(LATEX_SPECIAL.get(c, c) for c in text))


def _names(table: ReportTable, place: int) -> Sequence[str]:
    """Of a column's values, in the order in which its cells bring them."""
    cells: list[TableCell] = [row[place] for row in table.rows]
    found = dict.fromkeys(name for cell in cells for name in cell.values())
    return list(found) or [""]


def _line(text: str) -> str:
    return " ".join(text.split())


def _pipes(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _ampersands(texts: Sequence[str]) -> str:
    return " & ".join(latex_text(text) for text in texts) + r" \\"
