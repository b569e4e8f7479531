"""`fallow list`: everything that is chosen by name."""

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class ListCommand:
    """Show what can be chosen by name: tasks, conditions, rules and more."""

    json: bool = False
    """Print the names as JSON."""

    def run(self) -> None:
        groups = summaries()
        if self.json:
            names = {group: list(entries) for group, entries in groups.items()}
            print(json.dumps(names, indent=1))
            return
        for group, entries in groups.items():
            print(group)
            for name, summary in entries.items():
                print(f"  {name:18}{summary}")


def summaries() -> dict[str, dict[str, str]]:
    """One line about every entry of every registry, by kind and name."""
    from fallow.agents import AGENTS
    from fallow.dynamics.conditions import CONDITIONS
    from fallow.dynamics.schedules import SCHEDULES
    from fallow.dynamics.tasks import TASKS
    from fallow.logs.readers import READERS
    from fallow.replay.rules import RULES
    from fallow.study.named import STUDIES

    return {
        "tasks": {name: task.summary for name, task in TASKS.items()},
        "conditions": {name: kind.summary for name, kind in CONDITIONS.items()},
        "schedules": {name: named.summary for name, named in SCHEDULES.items()},
        "rules": {name: rule.summary for name, rule in RULES.items()},
        "agents": {
            name: f"{kind.summary}; presets {', '.join(kind.presets)}"
            for name, kind in AGENTS.items()
        },
        "studies": {
            name: f"{len(plan.branches())} branches, preset {plan.preset}"
            for name, plan in STUDIES.items()
        },
        "formats": {name: reader.summary for name, reader in READERS.items()},
    }
