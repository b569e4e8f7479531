"""A recorded study that the demo shows beside its live one.

Minutes on a laptop are too few for a clear result, so the demo first shows what a GPU
gave for the paper's Table II and `adaptive` beside its rules, labelled as recorded.
"""

from pathlib import Path

import fallow
from fallow.study.results import StudyResults, read_study_results

TITLE = (
    "Recorded on one H200, not on this machine: walker-walk, DreamerV3, preset lean, "
    "seeds 0 to 4"
)


def recorded_study() -> StudyResults | None:
    """Table II as it was recorded; None where its files were not installed."""
    package = Path(fallow.__file__).parent
    in_wheel, in_clone = package / "demo" / "recorded", package.parents[1]
    for folder in (in_wheel, in_clone / "results" / "table2"):
        if (folder / "results.csv").is_file():
            return read_study_results(folder)
    return None
