"""Trunks that come with the package, so that the demo's minutes go into branches.

`tools/demo_trunks.py` trains them. They lie in `trunks/<id>/` as in a study's store, by
the id that their recipe hashes to, so a changed recipe does not find them.
"""

import os
import shutil
from pathlib import Path

from fallow.study.plan import Plan

SHIPPED = Path(__file__).parent / "trunks"


def copy_shipped(plan: Plan, store: Path) -> list[str]:
    """Copy the shipped trunks of a plan that a store has not; returns their ids.

    Copied, not linked: what a study does to its trunks must not reach the package.
    """
    copied = []
    for trunk in plan.trunks():
        source, target = SHIPPED / trunk.id, store / trunk.id
        if not source.is_dir() or target.is_dir():
            continue
        part = store / f"{trunk.id}.part"
        shutil.rmtree(part, ignore_errors=True)  # of a copy that was cut off
        shutil.copytree(source, part)
        os.replace(part, target)
        copied.append(trunk.id)
    return copied
