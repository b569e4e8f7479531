"""The demo shows what it says, for more than one start."""

from pathlib import Path

import numpy as np
import pytest

from fallow.logs import read_history
from fallow.report.demo import simulate


@pytest.mark.parametrize("seed", range(5))
def test_only_the_weakened_walker_falls(tmp_path: Path, seed: int) -> None:
    walk = simulate(tmp_path / "walker.fallow", seed)
    before, after = walk.reward[: walk.shift_row], walk.reward[walk.shift_row :]
    np.testing.assert_array_equal(before[:, 0], before[:, 1])
    assert after[:, 0].mean() > 0.9 and after[:, 1].mean() < 0.2
    assert walk.height_m[walk.shift_row :, 0].min() > 1.0
    fall_s = walk.fall_s()
    assert fall_s is not None and 0.2 < fall_s < 1.5


def test_its_history_has_the_change_in_the_middle(tmp_path: Path) -> None:
    simulate(tmp_path / "walker.fallow", 0)
    history = read_history(tmp_path / "walker.fallow")
    assert [episode.regime.tolist() for episode in history.episodes] == [
        [0] * 250 + [1] * 250
    ]
