"""Command lines: every command, with odd options, values, names and orders."""

import contextlib
import dataclasses
import os
import shutil
from pathlib import Path

import fuzz_program
import numpy as np
from fuzz import Case

from fallow.cli.commands import Command
from fallow.core.files import write_text

ODD = (
    *("", "-1", "0", "1", "2.5", "nan", "inf", "1e400", "9" * 30, "true", "None", "x"),
    *("0-2147483646", "5-1", "0,0", "1,,2", "..", "/", "~", "a b", "\x1b[31mred", "ü"),
    *("gain", "gain:g=2", "gain:g=0.5,g=1", "gain:", ":g", "damage:actuator=99"),
    *(
        "passive",
        "recency:window_transitions=-3",
        "reservoir:unit=day",
        "reservoir:stretch_transitions=512",
        "lean",
        "paper",
    ),
    *("walker-walk", "tdmpc", "tiny:horizon=10", "infGiB", "24GiB", "-5GiB", "table1"),
    *("recurring:period_frames=0", "drift", "--", "-h", "x" * 4000, "\udcff", "h200"),
)
FILES = (
    "absent",
    "folder",
    "empty.toml",
    "bytes.fallow",
    "pipe",
    "plain.csv",
    "locked",
)
FIRST = {
    "simulate": ["walker-walk", "cartpole-swingup", "cheetah-run", "x"],
    "study": ["table1", "table2", "demo", "selector", "merge", "share", "x"],
}
"""What a command takes without a name."""


class Commands:
    """Whole command lines, in a folder with files that are not what they should be."""

    name = "commands"

    def prepare(self, folder: Path) -> None:
        """Files to name; libraries load once."""
        self.files = folder
        (folder / "folder").mkdir()
        (folder / "empty.toml").write_bytes(b"")
        (folder / "bytes.fallow").write_bytes(bytes(range(256)))
        os.mkfifo(folder / "pipe")
        write_text(folder / "plain.csv", "a,b\n1,2\n")
        (folder / "locked").mkdir(mode=0o500)
        fuzz_program.load()

    def make(self, random: np.random.Generator, folder: Path) -> Case:
        """A command with some of its options."""
        parts = Command.__args__  # type: ignore[attr-defined]
        kind = parts[random.integers(len(parts))]
        command, options = _options(kind)
        line = [command] if random.random() < 0.98 else []
        if command in FIRST and random.random() < 0.9:
            line.append(str(random.choice(FIRST[command])))
        elif command in ("report", "status", "diagnose", "track"):
            line.append(self._value(random, folder))
        for _ in range(random.integers(0, 5)):
            if random.random() < 0.1:
                line.append(self._value(random, folder))
            name = str(random.choice(list(options)))
            n_values = options[name] if random.random() < 0.9 else 2
            line += [name, *(self._value(random, folder) for _ in range(n_values))]
        if command in ("train", "simulate", "demo", "study") and "--out" not in line:
            line += ["--out", str(folder / "out")]
        if command == "track":
            line += ["--idle-s", "0"]  # --follow would wait for ever
        shutil.rmtree(folder / "out", ignore_errors=True)

        def run() -> None:
            with contextlib.chdir(folder):  # odd values also name folders to write to
                fuzz_program.run(line)

        return Case(" ".join(line)[:120], run)

    def _value(self, random: np.random.Generator, folder: Path) -> str:
        if random.random() < 0.35:
            return str(self.files / FILES[random.integers(len(FILES))])
        if random.random() < 0.1:
            return str(folder / "new")
        return ODD[random.integers(len(ODD))]


def _options(kind: object) -> tuple[str, dict[str, int]]:
    """A command's name, and its options as they are typed with how many values each."""
    command_class, subcommand = kind.__origin__, kind.__metadata__[0]  # type: ignore[attr-defined]
    return subcommand.name, {"--help": 0} | {
        "--" + field.name.replace("_", "-"): int(field.type is not bool)
        for field in dataclasses.fields(command_class)
        if "Positional" not in str(field.type)
    }


TARGET = Commands()
