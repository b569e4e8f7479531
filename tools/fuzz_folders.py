"""Folders of studies, damaged: any of their files, as disks and editors do it."""

import json
import shutil
import tarfile
from pathlib import Path

import fuzz_bytes
import fuzz_program
import numpy as np
from fuzz import Case

SAMPLE = "tests/data/before/study-algorithm-1.tar.gz"
ODD = (
    None,
    -1,
    1.5,
    "../../up",
    "x\x00",
    [],
    {},
    [[]],
    10**12,
    "nan",
    True,
    "\x1b[31m",
)


class Folders:
    """`status`, `report --tables` and resuming, for each damaged folder."""

    name = "folders"

    def prepare(self, folder: Path) -> None:
        """A small study, finished in part."""
        root = Path(__file__).resolve().parents[1]
        with tarfile.open(root / SAMPLE) as archive:
            archive.extractall(folder, filter="data")
        self.study = next(p.parent for p in sorted(folder.rglob("plan.json")))
        fuzz_program.load()

    def make(self, random: np.random.Generator, folder: Path) -> Case:
        """Bytes of a file, a value in the plan, or a file that is gone."""
        study = folder / "study"
        shutil.copytree(self.study, study)
        files = sorted(p for p in study.rglob("*") if p.is_file())
        plan = study / "plan.json"
        file = plan if random.random() < 0.4 else files[random.integers(len(files))]
        kind = random.random()
        if file == plan and kind < 0.6:
            how = _other_value(file, random)
        elif kind < 0.1:
            file.unlink()
            how = "gone"
        else:
            content, how = fuzz_bytes.damaged(file.read_bytes(), random)
            file.write_bytes(content)
        commands = (["status"], ["report", "--tables"], ["study", "--resume"])
        first, *others = commands[random.integers(3)]
        line = [first, str(study), *others]
        if others == ["--resume"]:
            line = [first, *others, str(study)]
        name = f"{first}, {file.relative_to(study)}, {how}"
        return Case(name, lambda: _run(line, study))


def _run(line: list[str], study: Path) -> None:
    """Run it; nothing is written beside the study's folder."""
    before = set(study.parent.iterdir())
    try:
        fuzz_program.run(line)
    finally:
        beside = set(study.parent.iterdir()) - before
        names = [p.name for p in beside if p.name != "trunks"]
        assert not names, f"written beside the folder: {names}"


def _other_value(path: Path, random: np.random.Generator) -> str:
    """One value somewhere in the JSON."""
    content = json.loads(path.read_text())
    place, trail = content, []
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = keys[random.integers(len(keys))]
        trail.append(str(key))
        if not isinstance(place[key], dict | list) or not place[key]:
            break
        if random.random() < 0.25:
            break
        place = place[key]
    place[key] = ODD[random.integers(len(ODD))]
    path.write_text(json.dumps(content))
    return f"{'.'.join(trail)} = {place[key]!r}"


TARGET = Folders()
