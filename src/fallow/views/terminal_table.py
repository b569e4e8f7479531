"""A table in a terminal: words stay whole, and columns that do not fit stand below."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

GAP = 2
"""Spaces between two columns."""
LONGEST_WORD = 24
"""Letters; a longer word, e.g. a path, may be broken."""


@dataclass(frozen=True)
class TerminalTable:
    """Texts that rich prints as a table; none of them is read as markup."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_labels: int = 1
    """Columns at the left that label a row; each part of a wide table repeats them."""
    title: str = ""
    notes: Sequence[str] = ()
    numbers: bool = False
    """Whether the columns after the labels are numbers: to the right, in one line."""

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        columns = [list(texts) for texts in zip(self.heads, *self.rows, strict=True)]
        full = [max(map(cell_len, column)) for column in columns]
        least = [self._least(place, *column) for place, column in enumerate(columns)]
        if self.title:
            yield Text(self.title, style="table.title")
        for index, part in enumerate(parts(least, self.n_labels, options.max_width)):
            if index:
                yield Text()
            room = options.max_width - GAP * (len(part) - 1)
            widths = spread([least[c] for c in part], [full[c] for c in part], room)
            yield self._table([columns[c] for c in part], widths)
        for note in self.notes:
            yield Text(note, style="table.caption")

    def _least(self, place: int, head: str, *cells: str) -> int:
        """The least width of a column: its words stay whole, and so do its numbers."""
        kept = cell_len if self._is_number(place) else _longest_word
        longest = max([_longest_word(head), *map(kept, cells)])
        return min(longest, LONGEST_WORD)

    def _is_number(self, place: int) -> bool:
        return self.numbers and place >= self.n_labels

    def _table(self, columns: list[list[str]], widths: list[int]) -> Table:
        shown = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
        for place, (column, width) in enumerate(zip(columns, widths, strict=True)):
            shown.add_column(
                Text(column[0]),
                justify="right" if self._is_number(place) else "left",
                overflow="fold",
                width=width,
            )
        for cells in list(zip(*columns, strict=True))[1:]:
            shown.add_row(*map(Text, cells))
        return shown


def parts(least: Sequence[int], n_labels: int, width: int) -> list[list[int]]:
    """Columns of each part: the labels, and as many others as fit side by side."""
    labels = list(range(n_labels))
    found = [labels.copy()]
    for column in range(n_labels, len(least)):
        part = [*found[-1], column]
        needed = sum(least[c] + GAP for c in part) - GAP
        if needed > width and len(found[-1]) > n_labels:
            found.append([*labels, column])
        else:
            found[-1] = part
    return found


def spread(least: Sequence[int], full: Sequence[int], room: int) -> list[int]:
    """Widths from `least` up to `full`, widened in turn while there is room."""
    widths = list(least)
    while sum(widths) < min(room, sum(full)):
        for column, most in enumerate(full):
            if widths[column] < most and sum(widths) < room:
                widths[column] += 1
    return widths


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)
