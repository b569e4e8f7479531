"""Made-up tables of results whose J is known before any of our code runs."""

from collections.abc import Mapping

from fallow.core.results import ResultRow

FRAMES = tuple(range(10_000, 130_001, 10_000))
AFTER = FRAMES[4:]
"""The nine evaluations after the shift at 40,000."""


def branch(
    condition: str,
    rule: str,
    seed: int,
    j: float,
    climb: float = 4.0,
    **changes: object,
) -> list[ResultRow]:
    """A branch whose mean return since the shift is `j`; `climb` each time."""
    rows = []
    for index, frame in enumerate(FRAMES):
        regime = 0
        if frame >= 40_000 and condition.startswith("recurring"):
            regime = 1 - (frame - 40_000) // 20_000 % 2
        elif frame >= 40_000 and condition != "none":
            regime = 1
        mean = j + climb * (index - 8) if frame > 40_000 else 900.0
        values = {
            "task": "walker-walk", "agent": "dreamer", "preset": "lean",
            "condition": condition, "rule": rule, "seed": seed, "trunk": f"t{seed}",
            "trunk_fingerprint": "",
            "frame": 200_000 + frame, "branch_frame": frame, "regime": regime,
            "updates": frame // 4, "mean_return": mean, "returns": (mean, mean),
            "auc": 1.0 if regime and condition != "recurring" else None,
        }  # fmt: skip
        rows.append(ResultRow(**(values | changes)))
    return rows


def table(
    values: Mapping[tuple[str, str], tuple[float, ...]], **changes: object
) -> list[ResultRow]:
    """Rows of branches: (condition, rule) to J of seeds 0, 1, …"""
    return [
        row
        for (condition, rule), js in values.items()
        for seed, j in enumerate(js)
        for row in branch(condition, rule, seed, j, **changes)
    ]
