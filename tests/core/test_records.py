"""The one place where actions taken at become actions that led to."""

import numpy as np

from fallow.core.records import Episode, replay_rows


def test_replay_rows_by_hand() -> None:
    episode = Episode(
        observation=np.array([[10.0], [11.0], [12.0]], np.float32),
        action=np.array([[1.0], [2.0]], np.float32),
        reward=np.array([0.1, 0.2], np.float32),
    )
    rows = replay_rows(episode)
    assert rows.observation[:, 0].tolist() == [10, 11, 12]
    assert rows.action[:, 0].tolist() == [0, 1, 2]  # 1 was taken at 10 and led to 11
    np.testing.assert_allclose(rows.reward, [0, 0.1, 0.2], rtol=1e-6)
    assert rows.is_first.tolist() == [True, False, False]
    assert rows.action.dtype == rows.reward.dtype == np.float32
