"""Train the trunks that come with the demo: `python tools/demo_trunks.py`.

It trains those of the study `demo` on this machine and puts them where the package has
them, with histories compacted as by `fallow study share`. On two cores it takes some
minutes.
"""

import os
import shutil
import tempfile
from pathlib import Path

from fallow.agents.compiling import keep_compiled
from fallow.agents.progress import Progress
from fallow.demo.shipped import SHIPPED, pack
from fallow.logs.compact import compact
from fallow.study.named import STUDIES
from fallow.study.trunks import HISTORY, ensure_trunks


def main() -> None:
    """Train, compact, and replace what is there."""
    keep_compiled()
    plan = STUDIES["demo"]
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder)
        ensure_trunks(plan, plan.trunks(), store, report)
        shutil.rmtree(SHIPPED, ignore_errors=True)
        SHIPPED.mkdir()
        for trunk in plan.trunks():
            history = store / trunk.id / HISTORY
            compact(history, history.with_suffix(".compact"))
            os.replace(history.with_suffix(".compact"), history)
            pack(history.parent)
    size = sum(path.stat().st_size for path in SHIPPED.iterdir())
    print(f"{SHIPPED}: {len(plan.trunks())} trunks, {size / 1e6:.1f} MB")


def report(progress: Progress) -> None:
    """Print messages and evaluations."""
    if progress.message:
        print(progress.message)
    if progress.evaluation is not None:
        returns = progress.evaluation.returns.mean(axis=1).round()
        print(f"frame {progress.evaluation.frame:,}: returns {returns.tolist()}")


if __name__ == "__main__":
    main()
