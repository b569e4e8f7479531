"""Tables in terminals of any width: nothing is lost, and no word is broken."""

import io

import pytest
from rich.console import Console

from fallow.views.terminal_table import TerminalTable, parts, spread

HEADS = ("Change", "Difference", "ours", "the paper", "t, 95 %", "seeds above 0")
ROWS = (
    ("Gain reduction", "Recency - Passive", "+54 ± 17", "+68 ± 26", "6 to 102", "5"),
    ("Recurring [b]", "Reset-once - Passive", "-135 ± 59", "–", "-298 to 29", "0"),
)
NUMBERS = [cell for row in ROWS for cell in row[2:]]


def printed(table: TerminalTable, width: int) -> str:
    file = io.StringIO()
    Console(file=file, width=width).print(table)
    return file.getvalue()


@pytest.mark.parametrize("width", [36, 50, 80, 200])
def test_words_and_numbers_stay_whole_at_any_width(width: int) -> None:
    table = TerminalTable(HEADS, ROWS, 2, "The title", ("A note.",), numbers=True)
    lines = printed(table, width).splitlines()
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    words = {word for row in (HEADS, *ROWS) for cell in row for word in cell.split()}
    assert words <= set(text.split())
    assert all(number in text for number in NUMBERS)


def test_where_a_word_has_no_room_it_is_broken_and_kept() -> None:
    shown = printed(TerminalTable(("Difference",), [("reduction",)]), 6)
    assert shown.split() == ["Differ", "ence", "reduct", "ion"]


def test_what_does_not_fit_stands_below_with_its_labels() -> None:
    table = TerminalTable(HEADS, ROWS, 2, numbers=True)
    assert printed(table, 200).count("Recency") == 1
    assert printed(table, 50).count("Recency") > 1


def test_a_path_may_be_broken() -> None:
    path = "a-folder/" * 12
    shown = printed(TerminalTable(("log", "decision"), [(path, "keep")]), 60)
    assert max(map(len, shown.splitlines())) <= 60
    assert path in "".join(shown.split()).replace("keep", "")


def test_columns_of_each_part_by_hand() -> None:
    # label 4 + gap 2 + 10 = 16; with another gap and 8 columns it needs 26
    assert parts([4, 10, 8, 3], 1, 26) == [[0, 1, 2], [0, 3]]
    assert parts([4, 10, 8, 3], 1, 31) == [[0, 1, 2, 3]]
    assert parts([4, 10, 8, 3], 1, 5) == [[0, 1], [0, 2], [0, 3]]


def test_room_is_spread_in_turn_by_hand() -> None:
    assert spread([2, 2], [10, 3], 9) == [6, 3]
    assert spread([2, 2], [3, 3], 99) == [3, 3]
    assert spread([5, 5], [9, 9], 8) == [5, 5]
