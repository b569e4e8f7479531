"""Trunks that come with the package, so that the demo's minutes go into branches.

`tools/demo_trunks.py` trains them. Each is one archive, `trunks/<id>.zip`, of a trunk
as in a study's store. The id hashes its recipe, so a changed recipe does not find it.
"""

import os
import shutil
from pathlib import Path

from fallow.study.plan import Plan

SHIPPED = Path(__file__).parent / "trunks"


def pack(trunk: Path) -> Path:
    """Write the archive of a trunk's folder; returns its path."""
    return Path(shutil.make_archive(str(SHIPPED / trunk.name), "zip", trunk))


def unpack_shipped(plan: Plan, store: Path) -> list[str]:
    """Unpack the shipped trunks of a plan that a store has not; returns their ids."""
    unpacked = []
    for trunk in plan.trunks():
        archive, target = SHIPPED / f"{trunk.id}.zip", store / trunk.id
        if not archive.is_file() or target.is_dir():
            continue
        part = store / f"{trunk.id}.part"
        shutil.rmtree(part, ignore_errors=True)  # of a command that was stopped
        shutil.unpack_archive(archive, part)
        os.replace(part, target)
        unpacked.append(trunk.id)
    return unpacked
