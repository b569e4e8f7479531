"""The fuzzer finds nothing in a short run, and would find what it looks for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
N_CASES = {"logs": 100, "toml": 60, "commands": 50, "folders": 3}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.mark.parametrize("target", N_CASES)
def test_damaged_input_is_read_or_refused_in_one_sentence(
    target: str, tmp_path: Path
) -> None:
    """`make fuzz` is the long run; it leaves nothing where it is started."""
    count, here = N_CASES[target], tmp_path / "here"
    here.mkdir()
    done = subprocess.run(
        [
            *(sys.executable, str(TOOLS / "fuzz.py"), target, "--seed", "0"),
            *("--count", str(count), "--keep", str(tmp_path / "kept")),
            *("--seconds", "200"),  # of a loaded machine
        ],
        capture_output=True,
        text=True,
        cwd=here,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(here.iterdir()) == []
    assert f"{target}: {count} cases, seed 0" in done.stdout
    assert "0 findings" in done.stdout


PLANTED = """
import json, os, signal, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import fuzz
from fallow.core.errors import FallowError
from fallow.core.options import parse
from fallow.logs.readers import one_sentence

def raises(error):
    def run():
        raise error
    return run

def mistake():
    with one_sentence(Path("x")):
        parse(None)  # an AttributeError inside of our code

def large():
    return len(b"x" * (60 << 20))

RUNS = {
    "good": lambda: None,
    "refused": raises(FallowError("no")),
    "exception": raises(KeyError("x")),
    "mistake": mistake,
    "sentence": raises(FallowError("two\\nlines")),
    "slow": lambda: time.sleep(1.2),
    "endless": lambda: time.sleep(60),
    "memory": large,
    "death": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "good after all": lambda: None,
}

class Planted:
    name = "planted"
    def prepare(self, folder):
        pass
    def make(self, random, folder):
        (folder / "input").write_text("x")
        name, run = list(RUNS.items())[len(list(Path(sys.argv[2]).iterdir()))]
        Path(sys.argv[2], name).touch()
        return fuzz.Case(name, run)

limits = fuzz.Limits(seconds=1.0, memory_mb=30)
result = fuzz.search(Planted(), len(RUNS), 7, limits, Path(sys.argv[3]))
print(json.dumps([[f.number, f.name, f.kind] for f in result.findings]))
print(json.dumps(result.outcomes))
"""


def test_what_the_fuzzer_must_find_it_finds(tmp_path: Path) -> None:
    for name in ("seen", "kept"):
        (tmp_path / name).mkdir()
    done = subprocess.run(
        [
            *(sys.executable, "-c", PLANTED, str(TOOLS)),
            *(str(tmp_path / "seen"), str(tmp_path / "kept")),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    findings, outcomes = map(json.loads, done.stdout.splitlines())
    assert findings == [
        [2, "exception", "exception"],
        [3, "mistake", "mistake"],
        [4, "sentence", "sentence"],
        [5, "slow", "time"],
        [6, "endless", "time"],
        [7, "memory", "memory"],
        [8, "death", "death"],
    ]
    assert outcomes == {"read": 4, "refused": 3, "failed": 1}
    kept = {path.name: path for path in (tmp_path / "kept").iterdir()}
    assert set(kept) == {f"planted-7-{number}" for number in range(2, 9)}
    assert (kept["planted-7-2"] / "input").read_text() == "x"
    assert "KeyError" in (kept["planted-7-2"] / "finding.txt").read_text()
