"""A study whose training is pretended, for tests of its folder."""

import dataclasses
import errno
import zlib
from pathlib import Path

from fallow.agents import training
from fallow.core.errors import FallowError
from fallow.core.results import ResultRow, read_results, write_results
from fallow.study import Cell, Plan, runner

CELL = Cell("cartpole-swingup", "dreamer", ("none", "gain"), ("passive", "reset"))
PLAN = Plan(
    "pretended",
    (CELL,),
    preset="tiny",
    seeds=(0, 1, 2),
    trunk_frames=8_000,
    capacity_transitions=20_000,
)


BEGIN = runner._begin


class Pretender:
    """Stands for training: instead of learning, it writes what a fleet leaves."""

    def __init__(self) -> None:
        self.trained: list[str] = []
        self.messages: list[str] = []
        self.full_at: str = ""
        self.fleet = dataclasses.make_dataclass("Fleet", ["branches"])

    def make(self, task, agent, branches, capacity):
        return self.fleet(branches)

    def resume(self, fleet, phase, folder) -> bool:
        saved = folder / "checkpoint"
        if saved.exists() and "damaged" in (saved / "000.agent").read_text():
            raise training.Damaged(f"{saved / '000.agent'}: its checksum is wrong")
        return saved.exists()

    def train_until(self, fleet, phase, folder, labels, on_progress=None):
        saved = folder / "checkpoint"
        self.trained.append(folder.name)
        if folder.name == self.full_at:
            raise OSError(errno.ENOSPC, "No space left on device")
        saved.mkdir(parents=True, exist_ok=True)
        for index, label in enumerate(labels):
            for name in ("agent", "replay"):
                (saved / f"{index:03d}.{name}").write_text(label.trunk)
            history = folder / "histories" / f"{index:03d}.fallow"
            history.parent.mkdir(exist_ok=True)
            history.write_text(f"{label.seed} {label.rule}")
        rows = [
            ResultRow(
                **dataclasses.asdict(label),
                frame=phase.until_frame,
                branch_frame=phase.until_frame - phase.begin_frame,
                regime=0,
                updates=1,
                mean_return=float(label.seed),
                returns=(1.0,),
                wall_s=1.0,
            )
            for label in labels
        ]
        write_results(folder / "results.csv", rows)

    @staticmethod
    def fingerprint(place) -> str:
        """Of the agent's file, which is no real one here."""
        text = place.agent.read_text()
        if "damaged" in text:
            raise FallowError(f"{place.agent} cannot be read")
        return f"{zlib.crc32(text.encode()):012x}"

    def watch(self, event) -> None:
        if event.progress.message:
            self.messages.append(event.progress.message)


def table(folder: Path) -> list[ResultRow]:
    return read_results(folder / "results.csv")
