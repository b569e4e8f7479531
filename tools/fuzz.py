"""Damages valid inputs at random and looks for anything but success or one sentence.

    python tools/fuzz.py logs --count 5000 --seed 0
    python tools/fuzz.py all --count 1000

A case is made from (seed, number) alone, so a finding can be reproduced. Each runs in a
worker process, which is watched for time, memory and death; after a finding a new
worker continues. Inputs of findings are kept in --keep, with what happened.

To add a target: write a module `fuzz_<name>` beside this one with a `TARGET`, and name
it in `TARGETS`.
"""

import argparse
import importlib
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fallow.core.errors import FallowError

HERE = Path(__file__).resolve().parent
TARGETS = ("logs", "toml", "commands", "folders")
"""Modules `fuzz_<name>` beside this file."""
MAX_SENTENCE = 2000
"""Characters of an error."""


class Target(Protocol):
    """One kind of input."""

    name: str

    def prepare(self, folder: Path) -> None:
        """Write the valid inputs and load what reading them needs, once."""

    def make(self, random: np.random.Generator, folder: Path) -> "Case":
        """Damage one of them into an empty folder."""


@dataclass(frozen=True)
class Case:
    """One input to try."""

    name: str
    """What was damaged and how, e.g. `npz, flip bits`."""
    run: Callable[[], object]
    """Must return, or raise a FallowError."""


@dataclass(frozen=True)
class Limits:
    """What one case may take."""

    seconds: float = 20.0
    memory_mb: int = 300


@dataclass(frozen=True)
class Finding:
    """A case that went wrong."""

    number: int
    name: str
    kind: str
    """`exception`, `mistake` (of ours), `sentence`, `time`, `memory`, `death`, or
    `tool` if the case could not even be made."""
    detail: str


@dataclass
class Result:
    """What came out of all cases."""

    findings: list[Finding] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    """How many were `read`, `refused` or `failed`."""
    slowest_s: float = 0.0
    largest_mb: int = 0


def search(
    target: Target,
    count: int,
    seed: int = 0,
    limits: Limits | None = None,
    keep: Path | None = None,
) -> Result:
    """Try `count` cases of a target."""
    limits = limits or Limits()
    result, number = Result(), 0
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "valid").mkdir()
        target.prepare(Path(scratch) / "valid")
        while number < count:
            number = _watch(target, range(number, count), seed, limits, result, scratch)
            last = result.findings[-1] if result.findings else None
            if keep is not None and last is not None and last.number == number - 1:
                _keep(keep, target.name, seed, last, Path(scratch) / "case")
    return result


def _watch(
    target: Target,
    numbers: range,
    seed: int,
    limits: Limits,
    result: Result,
    scratch: str,
) -> int:
    """Run cases in one worker until one goes wrong; returns the next case's number."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    arguments = (target, numbers, seed, limits, Path(scratch), sender)
    worker = context.Process(target=_work, args=arguments, daemon=True)
    worker.start()
    sender.close()
    current, name = numbers.start, "?"
    try:
        while True:
            if not receiver.poll(2 * limits.seconds + 1):
                result.findings.append(Finding(current, name, "time", "no answer"))
                return current + 1
            try:
                message = receiver.recv()
            except EOFError:
                worker.join()
                detail = f"exit code {worker.exitcode}"
                result.findings.append(Finding(current, name, "death", detail))
                return current + 1
            if message is None:
                return numbers.stop
            if isinstance(message, tuple):
                current, name = message
                continue
            _count(result, message)
            if message.finding is not None:
                result.findings.append(message.finding)
                return current + 1
    finally:
        worker.kill()
        worker.join()


@dataclass(frozen=True)
class Report:
    """What a worker says about one case."""

    outcome: str
    seconds: float
    memory_mb: int
    finding: Finding | None = None


def _count(result: Result, report: Report) -> None:
    result.outcomes[report.outcome] += 1
    result.slowest_s = max(result.slowest_s, report.seconds)
    result.largest_mb = max(result.largest_mb, report.memory_mb)


def _work(
    target: Target,
    numbers: range,
    seed: int,
    limits: Limits,
    scratch: Path,
    sender: Connection,
) -> None:
    """In the worker: make and run one case after the other."""
    _silence()
    folder = scratch / "case"
    for number in numbers:
        sender.send((number, "making the case"))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            case = target.make(np.random.default_rng([seed, number]), folder)
        except Exception:
            found = Finding(number, "making the case", "tool", traceback.format_exc())
            sender.send(Report("not made", 0.0, 0, found))
            return
        sender.send((number, case.name))
        report = _run(number, case, limits)
        sender.send(report)
        if report.finding is not None:
            return  # the folder stays as it is, to be kept
    sender.send(None)


def _run(number: int, case: Case, limits: Limits) -> Report:
    kind, detail, outcome = "", "", "read"
    before_mb, start = _restart_peak(), time.monotonic()
    try:
        case.run()
    except FallowError as error:
        outcome = "refused"
        kind, detail = _check_sentence(error)
    except Exception:
        kind, detail, outcome = "exception", traceback.format_exc(), "failed"
    seconds, memory_mb = time.monotonic() - start, _memory_mb("VmHWM") - before_mb
    if not kind and seconds > limits.seconds:
        kind, detail = "time", f"{seconds:.1f} s"
    if not kind and memory_mb > limits.memory_mb:
        kind, detail = "memory", f"{memory_mb} MB"
    finding = Finding(number, case.name, kind, detail) if kind else None
    return Report(outcome, seconds, memory_mb, finding)


def _check_sentence(error: FallowError) -> tuple[str, str]:
    """An error is one printable line, and is not made of a mistake in our code."""
    text = str(error)
    if not text.isprintable() or not text or len(text) > MAX_SENTENCE:
        return "sentence", repr(text[:MAX_SENTENCE])
    cause = error.__cause__
    if type(cause).__module__ == "builtins" and cause is not None:
        frames = traceback.extract_tb(cause.__traceback__)
        if frames and f"{os.sep}fallow{os.sep}" in frames[-1].filename:
            return "mistake", "".join(traceback.format_exception(cause))
    return "", ""


def _silence() -> None:
    """Libraries write to the standard error behind Python's back."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def _restart_peak() -> int:
    """MB in use now, from where the peak is counted."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return 0
    return _memory_mb("VmRSS")


def _memory_mb(name: str) -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    found = [line for line in lines if line.startswith(name)]
    return int(found[0].split()[1]) // 1024 if found else 0


def _keep(keep: Path, target: str, seed: int, finding: Finding, folder: Path) -> None:
    place = keep / f"{target}-{seed}-{finding.number}"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder, place)
    (place / "finding.txt").write_text(
        f"{finding.kind}: {finding.name}\n{finding.detail}\n"
    )


def target_of(name: str) -> Target:
    """The target of a module beside this one."""
    sys.path.insert(0, str(HERE))
    return importlib.import_module(f"fuzz_{name}").TARGET


def main(arguments: Sequence[str] | None = None) -> int:
    """Search one target or all; returns 1 if something was found."""
    parser = argparse.ArgumentParser(description="Look for inputs that break Fallow.")
    parser.add_argument("target", choices=[*TARGETS, "all"])
    parser.add_argument("--count", type=int, default=1000, help="cases of each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=Limits.seconds)
    parser.add_argument("--memory-mb", type=int, default=Limits.memory_mb)
    parser.add_argument("--keep", type=Path, default=Path("runs/fuzz"))
    chosen: Any = parser.parse_args(arguments)
    n_findings = 0
    for name in TARGETS if chosen.target == "all" else (chosen.target,):
        limits = Limits(chosen.seconds, chosen.memory_mb)
        result = search(target_of(name), chosen.count, chosen.seed, limits, chosen.keep)
        for finding in result.findings:
            last = finding.detail.strip().splitlines()[-1:]
            print(f"{name} {finding.number}: {finding.kind}, {finding.name}: {last}")
        counted = ", ".join(f"{n} {word}" for word, n in result.outcomes.items())
        print(
            f"{name}: {chosen.count} cases, seed {chosen.seed}: {counted}; "
            f"{len(result.findings)} findings; slowest {result.slowest_s:.1f} s, "
            f"largest {result.largest_mb} MB"
        )
        n_findings += len(result.findings)
    return 1 if n_findings else 0


if __name__ == "__main__":
    sys.exit(main())
