"""The paper's numbers, as printed and as they follow from each other."""

import re

import pytest

from fallow.report import paper

PRINTED = r"""
Gain reduction & 1.00 & 177 pm 21 & 323 pm 30 & 163 pm 13 & 387 pm 27
Actuator damage & 1.00 & 232 pm 40 & 404 pm 34 & 246 pm 48 & 418 pm 28
Recurring & 0.54 & 481 pm 17 & 290 pm 19 & 464 pm 11 & 484 pm 24
No change & -- & 936 pm 3 & 735 pm 27 & 936 pm 4 & 816 pm 22

Gain reduction & 220 pm 21 & 288 pm 22 & 128 pm 14 & 425 pm 66
Recurring & 487 pm 19 & 287 pm 12 & 249 pm 14 & 312 pm 38

Cheetah & Damage & +184 pm 35 & +111 pm 39
Cheetah & Recurring & -126 pm 12 & -42 pm 22
TD-MPC2 & Damage & +8 pm 15 & --
TD-MPC2 & Recurring & -123 pm 13 & --
RWRL & Recurring & -222 pm 32 & --
RWRL & Friction & +94 pm 58 & --
"""


@pytest.mark.parametrize(("index", "name"), list(enumerate(paper.TABLES)))
def test_the_papers_numbers_are_as_printed(index: int, name: str) -> None:
    layout = paper.TABLES[name]
    lines = PRINTED.strip().split("\n\n")[index].splitlines()
    numbers = layout.differences if name == "table3" else layout.returns
    assert len(lines) == len(layout.places)
    for line, place in zip(lines, layout.places, strict=True):
        texts = [text.strip() for text in line.split(" & ")]
        n_labels = len(layout.head)
        assert tuple(texts[:n_labels]) == place.labels
        if name == "table1":
            auc = texts.pop(1)
            assert (
                auc == f"{layout.auc[place]:.2f}"
                if auc != "--"
                else place not in layout.auc
            )
        for text, rule in zip(texts[n_labels:], layout.rules, strict=True):
            found = re.fullmatch(r"([+-]?\d+) pm (\d+)", text)
            printed = numbers.get((place, rule))
            expected = found and (float(found[1]), float(found[2]))
            assert (printed and (printed.mean, printed.se)) == expected


def test_the_papers_differences_are_those_of_its_means() -> None:
    for layout in (paper.TABLE1, paper.TABLE2):
        for (place, rule), printed in layout.differences.items():
            means = [layout.returns[place, name].mean for name in (rule, "passive")]
            assert printed.mean == means[0] - means[1]
            assert printed.se is not None and printed.source.startswith("Section VI")
