"""Write the tables of docs/ that repeat a registry: python tools/doc_tables.py

A table stands between `<!-- table: name -->` and `<!-- end -->`.
"""

import dataclasses
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from fallow.agents import AGENTS
from fallow.core import options
from fallow.dynamics.conditions import CONDITIONS
from fallow.dynamics.schedules import SCHEDULES
from fallow.dynamics.shifts import Damping, Friction, Gain, Original
from fallow.dynamics.simulator import compile_body
from fallow.dynamics.tasks import TASKS
from fallow.replay.rules import RULES
from fallow.study import estimate
from fallow.study.named import STUDIES

DOCS = Path(__file__).parents[1] / "docs"
MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
STALE_SHARE = "Stale share"
Rows = Iterable[Iterable[str]]


def markdown(header: str, rows: Rows) -> str:
    """A table; the header's columns are separated by |."""
    lines = [header.split("|"), ["---"] * (header.count("|") + 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def studies() -> str:
    """Every named study, a row for each cell."""
    rows = []
    for name, plan in STUDIES.items():
        for number, cell in enumerate(plan.cells):
            rows.append(
                [
                    f"`{name}`" if number == 0 else "",
                    f"{cell.task}, {cell.agent}",
                    _codes(cell.conditions),
                    _codes(cell.rules),
                    cell.trunk_set,
                    plan.preset,
                    f"{min(plan.seeds)}–{max(plan.seeds)}",
                ]
            )
    return markdown("name|task, agent|conditions|rules|trunks|preset|seeds", rows)


def estimates() -> str:
    """What `--dry-run` assumes."""
    shares = {
        "processor": estimate.PROCESSOR_SHARE,
        "accelerator": estimate.ACCELERATOR_SHARE,
    }
    rows = [[device, f"{100 * share:.0f} %"] for device, share in shares.items()]
    return markdown("device|rate of an update, of that of large products", rows)


def rules() -> str:
    """Every rule with its options, summary and stale share."""
    rows = []
    for name, rule in RULES.items():
        defaults = {field.name: field.default for field in dataclasses.fields(rule)}
        given = {name: value for name, value in defaults.items() if value is not None}
        text = " ".join((rule.__doc__ or "").split())
        stale = text.partition(STALE_SHARE)[2].lstrip(": ").partition(". ")[0]
        rows.append(
            [f"`{options.render(name, given)}`", rule.summary, stale.rstrip(".")]
        )
    return markdown("rule with its defaults|what can be sampled|stale share", rows)


def conditions() -> str:
    """Every condition with its shift and schedule."""
    rows = [
        [
            f"`{name}`",
            kind.summary,
            "–" if kind.shift is None else kind.shift.__name__.lower(),
            f"`{kind.schedule}`",
        ]
        for name, kind in CONDITIONS.items()
    ]
    return markdown("condition|what happens|shift|schedule", rows)


def schedules() -> str:
    """Every schedule."""
    rows = [[f"`{name}`", named.summary] for name, named in SCHEDULES.items()]
    return markdown("schedule|what the level does", rows)


def drifts() -> str:
    """Default ranges of drifting levels on two bodies."""
    rows = []
    for task in ("walker-walk", "cheetah-run"):
        original = Original.of(compile_body(TASKS[task].body))
        for shift in (Damping(), Friction(), Gain()):
            numbers = (f"{number:g}" for number in shift.range(original))
            rows.append([type(shift).__name__.lower(), task, *numbers])
    return markdown("shift|body|start|min|max|std", rows)


def presets(agent: str) -> Callable[[], str]:
    """The numbers of an agent's presets, where these differ."""

    def table() -> str:
        kinds = AGENTS[agent].presets
        configs = [dataclasses.asdict(config) for config in kinds.values()]
        rows = [
            [f"`{name}`", *(f"{config[name]:,}" for config in configs)]
            for name in configs[0]
            if len({config[name] for config in configs}) > 1 and name not in SPEED
            if not isinstance(configs[0][name], str)
        ]
        return markdown("|".join(["size", *(f"`{name}`" for name in kinds)]), rows)

    return table


SPEED = ("unroll",)
"""Sizes that change speed alone."""
TABLES = {
    "studies": studies,
    "estimates": estimates,
    "rules": rules,
    "conditions": conditions,
    "schedules": schedules,
    "drifts": drifts,
    "dreamer": presets("dreamer"),
    "tdmpc": presets("tdmpc"),
}


def updated(text: str) -> str:
    """A page with its tables written anew."""
    return MARKED.sub(lambda found: found[1] + TABLES[found[2]]() + found[3], text)


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def main() -> None:
    """Write every page whose tables changed."""
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (new := updated(text)) != text:
            page.write_text(new, encoding="utf-8")
            sys.stdout.write(f"{page.relative_to(DOCS.parent)}\n")


if __name__ == "__main__":
    main()
