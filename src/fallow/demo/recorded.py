"""Recorded studies that the demo shows beside its live one.

Minutes on a laptop are too few for intervals that leave out 0. So the demo first shows
what a GPU gave for the paper's Table II and `adaptive` beside its rules, and at its end
the claims of its own study on ten other seeds. Both are labelled as recorded.
"""

from pathlib import Path

import fallow
from fallow.study.results import StudyResults, read_study_results

TABLE2, OTHER_SEEDS = "table2", "demo"
"""Folders in `results/`."""
TITLE = (
    "Recorded on one H200, not on this machine: walker-walk, DreamerV3, preset lean, "
    "seeds 0 to 4"
)
OTHER_SEEDS_TITLE = (
    "Recorded, not on this machine: this study on seeds 20 to 29 (fallow demo --seeds "
    "20-29; with their training 15 minutes of CPU time)"
)


def recorded_study(name: str) -> StudyResults | None:
    """A study as it was recorded; None where its files were not installed."""
    package = Path(fallow.__file__).parent
    in_wheel, in_clone = package / "demo" / "recorded", package.parents[1] / "results"
    for folder in (in_wheel / name, in_clone / name):
        if (folder / "results.csv").is_file():
            return read_study_results(folder)
    return None
