"""Studies in TOML, damaged: bytes, and values of the wrong type, size and depth."""

from pathlib import Path

import fuzz_bytes
import fuzz_program
import numpy as np
from fuzz import Case

VALID = """\
name = "mine"
preset = "tiny"
seeds = "0-2"
trunk_frames = 40000
branch_frames = 60000
shift_frame = 20000
evaluate_frames = 10000
offset_frames = 0
n_episodes = 4
save_frames = 20000
capacity_transitions = 100000
device = "cpu"
seeds_per_fleet = 1

[[cells]]
task = "walker-walk"
agent = "dreamer"
conditions = ["none", "gain:g=0.5", "recurring:period_frames=10000"]
rules = ["passive", "recency:window_transitions=20000", "wmar"]

[[cells]]
task = "cartpole-swingup"
agent = "tdmpc"
conditions = ["damping"]
rules = ["graded"]
"""
VALUES = (
    *("1.5", "-1", "0", "5", "true", "nan", "-inf", "1e400", "9" * 400, "'x'", "''"),
    *("[-1]", "[]", "{}", "[[]]", "{a = 1}", "1979-05-27", "'../../up'", "'a/b'"),
    *("'0-2147483646'", "'5-1'", "'gain:g=nan'", "'gain:g=0.5:g=1'", "'passive,'"),
    *('"\\u0000"', '"\\u001b[31m"', "'infGiB'", "'1e30GiB'", "'tiny:horizon=1e9'"),
    *("1000000000000", "[" * 2000 + "]" * 2000, "['none', 1]", "['none', ['none']]"),
    *("'tiny:" + "x" * 3000 + "'", "0x7fffffffffffffff", "10001", "'lean'", "'gain'"),
)


class Toml:
    """`fallow study FILE --dry-run` for each damaged study."""

    name = "toml"

    def prepare(self, _: Path) -> None:
        """Nothing to write; libraries load once."""
        fuzz_program.load()

    def make(self, random: np.random.Generator, folder: Path) -> Case:
        """One to three lines with another value, or damaged bytes."""
        content, how = VALID.encode(), "bytes"
        if random.random() < 0.7:
            text, how = _other_values(random)
            content = text.encode()
        else:
            content, how = fuzz_bytes.damaged(content, random)
        path = folder / "study.toml"
        path.write_bytes(content)
        command = ["study", str(path), "--dry-run"]
        return Case(how, lambda: fuzz_program.run(command))


def _other_values(random: np.random.Generator) -> tuple[str, str]:
    lines, how = VALID.splitlines(), []
    for _ in range(random.integers(1, 4)):
        place = int(random.integers(len(lines)))
        name = lines[place].partition(" = ")[0]
        value = VALUES[random.integers(len(VALUES))]
        kind = random.random()
        if kind < 0.1:
            lines[place] = ""
        elif kind < 0.2:
            lines.insert(place, lines[int(random.integers(len(lines)))])
        elif name and not name.startswith("["):
            lines[place] = f"{name} = {value}"
        how.append(f"{name} = {value[:30]!r}")
    return "\n".join(lines), "; ".join(how)


TARGET = Toml()
