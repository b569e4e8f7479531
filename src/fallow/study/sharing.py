"""A small copy of a study for sharing: plan, tables, and what the estimator reads."""

import dataclasses
from pathlib import Path

from fallow.logs.compact import compact
from fallow.study.statistics import BASELINE
from fallow.study.store import Study, new_folder, read_study, write_plan
from fallow.study.tables import copy_tables


def share(folder: str | Path, out: str | Path) -> Study:
    """Copy a study, complete or not, to a new folder.

    Of the histories it copies, compacted, those of trunks and of `passive` branches,
    which the evaluation of the selector reads. The copy can be reported and merged.

    Raises:
        FallowError: there is no study, a history is damaged, or `out` is not empty.
    """
    study, out = read_study(folder), new_folder(out)
    trunks = out.absolute().parent / "trunks"
    copy = dataclasses.replace(study, folder=out, store=trunks)
    write_plan(copy)
    copy_tables([study], copy)
    read = [branch.id for branch in study.branches if branch.rule == BASELINE]
    for name in (*(trunk.id for trunk in study.trunks), *read):
        history = Path("histories") / f"{name}.fallow"
        if (study.folder / history).exists():
            compact(study.folder / history, out / history)
    return copy
