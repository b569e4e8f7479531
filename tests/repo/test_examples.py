"""Every example runs as its first lines say."""

from pathlib import Path

import pytest
from conftest import EXAMPLES, output_of_example

EXPECTED = {
    "diagnose_logs.py": "change at (35,), m_hat 0.5",
    "log_in_memory.py": "change at (30,)\nm_hat 0.51: discard the old data",
    "plan_a_study.py": "branches   12",
    "replay_numpy.py": "regime 1 since episode 40, gain 0.5",
    "record_and_look_back.py": "episode 3 simulated again: 500 transitions",
    "robot_loop.py": "train on 34 of 50 episodes, the last is 49",
    "shift_any_gymnasium.py": "the body changed at frames [300, 500, 700, 900]",
}


WITH_TORCH = {"replay_torch.py", "replay_sb3.py", "replay_torchrl.py"}
"""Run by test_sb3.py and test_torchrl.py, where torch is installed."""


def test_all_examples_are_run() -> None:
    found = {path.name for path in EXAMPLES.glob("*.py")}
    assert found == set(EXPECTED) | WITH_TORCH


@pytest.mark.parametrize("name", EXPECTED)
def test_example(name: str, tmp_path: Path) -> None:
    assert EXPECTED[name] in output_of_example(name, tmp_path)
