"""The styles of rules in figures: colour, dash and mark."""

import colorsys
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.colors import to_hex, to_rgb

from fallow.replay.rules import RULES
from fallow.views.plotting import SeriesStyle

FALLBACK_COLOURS = ("#5b7083", "#8a5a2b", "#3d6b35", "#6a4c93", "#b03a48")
"""Of rules that name none, and of those that this version does not know."""
DASHES: tuple[Any, ...] = (
    "-",
    "--",
    "-.",
    (0, (5, 1, 1, 1, 1, 1)),
    ":",
    (0, (7, 2)),
    (0, (1, 1)),
    (0, (3, 1)),
    (0, (9, 2, 2, 2)),
)
MARKERS = "os^DvP*Xp<>hd8"
HOLLOW_DASHES = ((0, (2, 1.5)), (0, (1, 2)))
"""Of rules with options, the first and the others of one name."""
DARK_LIGHTNESS = 0.68
"""Of a rule's colour on a dark page."""


def rule_colour(name: str) -> str:
    """The colour of a rule that this version knows, as `#rrggbb`."""
    spare = FALLBACK_COLOURS[list(RULES).index(name) % len(FALLBACK_COLOURS)]
    return to_hex(RULES[name].colour or spare)


def rule_style(name: str) -> SeriesStyle:
    """That of a known rule with its default options."""
    place = list(RULES).index(name)
    dash, marker = DASHES[place % len(DASHES)], MARKERS[place % len(MARKERS)]
    return SeriesStyle(rule_colour(name), dash, marker)


def rule_styles(rules: Sequence[str]) -> dict[str, SeriesStyle]:
    """A style for each of some rules; options make the plain rule's marks hollow."""
    found: dict[str, SeriesStyle] = {}
    spare = _spare_styles()
    seen: set[str] = set()
    for rule in rules:
        name = rule.partition(":")[0]
        if name not in RULES:
            found[rule] = next(spare)
        elif rule == name:
            found[rule] = rule_style(name)
        else:
            plain, dash = rule_style(name), HOLLOW_DASHES[name in seen]
            seen.add(name)
            found[rule] = SeriesStyle(plain.colour, dash, plain.marker, hollow=True)
    return found


def _spare_styles() -> Iterator[SeriesStyle]:
    n = len(RULES)
    for place in itertools.count():
        colour = FALLBACK_COLOURS[place % len(FALLBACK_COLOURS)]
        marker = MARKERS[(n + place) % len(MARKERS)]
        yield SeriesStyle(colour, DASHES[place % len(DASHES)], marker)


def colour_variables() -> dict[str, str]:
    """The CSS variable of every colour that a rule can have."""
    colours = dict.fromkeys([*map(rule_colour, RULES), *FALLBACK_COLOURS])
    return {colour: f"--rule-{colour[1:]}" for colour in colours}


def colour_sheet() -> str:
    """CSS that gives these variables a value on light pages and on dark ones."""
    variables = colour_variables()
    light = " ".join(f"{name}: {colour};" for colour, name in variables.items())
    dark = " ".join(f"{name}: {lighter(c)};" for c, name in variables.items())
    return (
        f":root {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
    )


def lighter(colour: str) -> str:
    """The same hue, light enough for a dark page."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*to_rgb(colour))
    lightness = max(lightness, DARK_LIGHTNESS)
    return to_hex(colorsys.hls_to_rgb(hue, lightness, saturation))
