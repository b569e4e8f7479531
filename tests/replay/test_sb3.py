"""Rules in Stable-Baselines3's buffers; needs `make test-extras`."""

import pickle
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import output_of_example
from gymnasium import spaces

from fallow.core.errors import FallowError

WHY = "{} is not installed: `make test-extras` runs the tests of the adapters"
torch = pytest.importorskip("torch", reason=WHY.format("torch"))
sb3 = pytest.importorskip("stable_baselines3", reason=WHY.format("stable-baselines3"))

from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402
from stable_baselines3.common.vec_env import VecNormalize  # noqa: E402

from fallow.replay.adapters.sb3 import RuleReplayBuffer  # noqa: E402
from fallow.replay.labeler import Tracked  # noqa: E402

EXPECTED = {
    "replay_torch.py": "recency:window_transitions=400: squared error 0.000",
    "replay_sb3.py": "regime 1 since episode 15: gain 0.3",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_example(name: str, tmp_path: Path) -> None:
    assert EXPECTED[name] in output_of_example(name, tmp_path)


NUMBER = spaces.Box(-np.inf, np.inf, (1,))
SPACES = {
    "float32": (spaces.Box(-1, 1, (3,)), spaces.Box(-1, 1, (2,))),
    "float64": (
        spaces.Box(-1, 1, (3,), np.float64),
        spaces.Box(-1, 1, (2,), np.float64),
    ),
    "image": (spaces.Box(0, 255, (1, 8, 8), np.uint8), spaces.Discrete(4)),
    "discrete": (spaces.Discrete(5), spaces.MultiDiscrete([2, 3])),
    "binary": (spaces.MultiBinary(4), spaces.MultiBinary(2)),
}


def plain(rule: str = "passive", size: int = 1000, n_envs: int = 1, **more: Any) -> Any:
    return RuleReplayBuffer(
        size, NUMBER, NUMBER, "cpu", n_envs, rule=rule, seed=0, **more
    )


def fill(buffer: Any, start: int, stop: int, episode: int = 50) -> None:
    """Observation t + 1000 × env, the next one 1 more, action -t, reward t."""
    n_envs = buffer.n_envs
    for step in range(start, stop):
        observation = (step + 1000.0 * np.arange(n_envs))[:, None]
        done = np.full(n_envs, step % episode == episode - 1)
        action, reward = np.full((n_envs, 1), -step), np.full(n_envs, step)
        infos: list[dict[str, Any]] = [{}] * n_envs
        buffer.add(observation, observation + 1, action, reward, done, infos)


def sampled_steps(buffer: Any, n: int = 4000) -> set[int]:
    """Steps that are sampled; every row must be one that was stored."""
    batch = buffer.sample(n)
    step = batch.rewards
    assert torch.equal(batch.actions, -step)
    assert torch.equal(batch.observations % 1000, step)
    assert torch.equal(batch.next_observations, batch.observations + 1)
    assert torch.equal(batch.dones, (step % 50 == 49).float())
    return set(step[:, 0].int().tolist())


def test_rule_decides_what_is_sampled() -> None:
    buffer = plain("recency:window_transitions=70")
    for stop in range(100, 500, 30):
        fill(buffer, max(0, stop - 30) if stop > 100 else 0, stop)
        assert sampled_steps(buffer) == set(range(stop - 70, stop))
    buffer.replay.rule = "passive"
    assert sampled_steps(buffer, 10_000) == set(range(buffer.size()))


def test_wraps_around() -> None:
    buffer = plain(size=128)
    fill(buffer, 0, 900)
    sampled = sampled_steps(buffer)
    assert sampled >= set(range(900 - 128, 900))
    assert min(sampled) > 900 - 128 - 64 - 1
    assert buffer.full and buffer.pos == 900 % 128
    assert 128 <= buffer.size() <= 192


def test_reservoir_keeps_old_chunks_when_full() -> None:
    buffer = plain("reservoir:unit=chunk,budget_transitions=128", size=128)
    fill(buffer, 0, 900)
    sampled = sampled_steps(buffer)
    assert len(sampled) == 128
    assert min(sampled) < 900 - 192


def test_reservoir_keeps_whole_episodes() -> None:
    """Every row of one is a transition, the first too."""
    buffer = plain("reservoir:budget_transitions=100", size=400)
    fill(buffer, 0, 900)
    sampled = sampled_steps(buffer)
    episodes = {step // 50 for step in sampled}
    assert sampled == {50 * one + step for one in episodes for step in range(50)}
    assert len(episodes) == 2
    buffer.reset()
    fill(buffer, 0, 101, episode=102)
    with pytest.raises(FallowError, match="is 100 and an episode has 101 steps"):
        buffer.sample(1)


def test_two_environments() -> None:
    buffer = plain("recency:window_transitions=70", size=400, n_envs=2)
    fill(buffer, 0, 300)
    assert 200 <= buffer.size() < 200 + 128
    assert sampled_steps(buffer) == set(range(300 - 35, 300))
    observations = buffer.sample(500).observations
    assert (observations >= 1000).float().mean() == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("handle", [True, False])
def test_time_limits(handle: bool) -> None:
    buffer = plain(n_envs=2, handle_timeout_termination=handle)
    one = np.ones((2, 1))
    limit = [{"TimeLimit.truncated": True}, {"TimeLimit.truncated": False}]
    both = np.ones(2, bool)
    buffer.add(np.array([[0], [1]]), one, one, np.ones(2), both, limit)
    batch = buffer.sample(50)
    over = batch.dones[:, 0][batch.observations[:, 0] == 0]
    terminal = batch.dones[:, 0][batch.observations[:, 0] == 1]
    assert set(over.tolist()) == {0.0 if handle else 1.0}
    assert set(terminal.tolist()) == {1.0}
    assert buffer.replay.ledger.episodes.n == 2


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("name", SPACES)
def test_batches_look_like_its_own(name: str, n_envs: int) -> None:
    observation_space, action_space = SPACES[name]
    batches = []
    for cls in (RuleReplayBuffer, ReplayBuffer):
        buffer = cls(100, observation_space, action_space, "cpu", n_envs)
        observation = np.stack([observation_space.sample() for _ in range(n_envs)])
        action = np.stack([action_space.sample() for _ in range(n_envs)])
        zeros = np.zeros(n_envs)
        infos: list[dict[str, Any]] = [{}] * n_envs
        buffer.add(observation, observation, action, zeros, zeros, infos)
        batches.append(buffer.sample(7))
    for ours, theirs in zip(*batches, strict=True):
        if theirs is None:
            assert ours is None
        else:
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)


def test_normalises() -> None:
    env = VecNormalize(make_vec_env("Pendulum-v1", 1))
    env.obs_rms.mean, env.obs_rms.var = np.full(3, 2.0), np.full(3, 4.0)
    env.ret_rms.var = np.array(25.0)
    buffer = RuleReplayBuffer(100, env.observation_space, env.action_space, "cpu")
    four, five = np.full((1, 3), 4.0), np.full(1, 5.0)
    buffer.add(four, four, np.zeros((1, 1)), five, np.zeros(1), [{}])
    batch = buffer.sample(2, env)
    assert batch.observations == pytest.approx(np.ones((2, 3)), abs=1e-4)
    assert batch.rewards == pytest.approx(np.ones((2, 1)), abs=1e-4)
    assert batch.rewards.dtype == batch.observations.dtype == torch.float32
    env.close()


@pytest.mark.parametrize(
    "rule",
    [
        "recency:window_transitions=100",
        "reservoir:budget_transitions=128",
        "reservoir:budget_transitions=128,unit=chunk",
    ],
)
def test_state_round_trip(rule: str) -> None:
    buffer = plain(rule, size=200, n_envs=2)
    fill(buffer, 0, 333)
    again = pickle.loads(pickle.dumps(buffer))
    for start in (333, 444):  # at once, and after both continued
        for _ in range(3):
            for ours, theirs in zip(buffer.sample(32), again.sample(32), strict=True):
                assert theirs is None if ours is None else torch.equal(ours, theirs)
        fill(buffer, start, start + 111)
        fill(again, start, start + 111)
    assert str(again.replay.rule) == rule


@pytest.mark.parametrize("n_envs", [1, 2])
@pytest.mark.parametrize("rule", ["passive", "reservoir:budget_transitions=150"])
def test_returns_of_several_steps_equal_its_own(rule: str, n_envs: int) -> None:
    """Every start has one return, which Stable-Baselines3's buffer gives too."""
    shared = (200, NUMBER, NUMBER, "cpu", n_envs)
    options: dict[str, Any] = {"n_steps": 3, "gamma": 0.9}
    ours = RuleReplayBuffer(*shared, rule=rule, seed=0, **options)
    theirs = NStepReplayBuffer(*shared, **options)
    random = np.random.default_rng(0)
    number = 0.0
    for step in range(70):
        observation = number + 1000.0 * np.arange(n_envs)[:, None]
        done = np.full(n_envs, step % 13 == 12)
        limit = [{"TimeLimit.truncated": step % 26 == 12}] * n_envs
        reward = random.normal(size=n_envs)
        for buffer in (ours, theirs):
            buffer.add(observation, observation + 1, reward, reward, done, limit)
        number += 1 + done[0]
    found = []
    for buffer in (ours, theirs):
        b = buffer.sample(5000)
        columns = [b.observations, b.next_observations, b.dones, b.rewards, b.discounts]
        assert {column.dtype for column in columns} == {torch.float32}
        rows = torch.cat(columns, 1).double().numpy().round(3)
        found.append(set(map(tuple, rows.tolist())))
    assert found[0] == found[1] and len(found[0]) == 70 * n_envs


def test_an_environment_that_was_reset_begins_an_episode() -> None:
    """A second `learn` resets it without `done`; its last episode ends there."""
    buffer = plain(n_envs=2)
    fill(buffer, 0, 30)
    fill(buffer, 30, 40)  # continues
    assert buffer.replay.ledger.episodes.n == 2
    again = pickle.loads(pickle.dumps(buffer))
    for one in (buffer, again):
        fill(one, 10, 15)
        assert one.replay.ledger.episodes["start"].tolist() == [0, 0, 40, 40]
    env = gymnasium.make("Pendulum-v1")
    model = sb3.SAC("MlpPolicy", env, replay_buffer_class=RuleReplayBuffer)
    model.learn(30).learn(30)
    model.learn(30, reset_num_timesteps=False)  # which continues
    assert model.replay_buffer.replay.ledger.episodes.n == 2


def test_reset_empties() -> None:
    buffer = plain("recency:window_transitions=10")
    fill(buffer, 0, 100)
    buffer.reset()
    assert buffer.size() == buffer.pos == 0
    fill(buffer, 0, 5)
    assert sampled_steps(buffer) == set(range(5))


def test_regimes_come_from_info() -> None:
    buffer = plain("matched", n_envs=2)
    row, zeros = np.zeros((2, 1)), np.zeros(2)
    for step in range(30):
        done = np.full(2, step % 10 == 9)
        infos = [{"regime": int(step >= 20)}] * 2
        buffer.add(row, row, row, np.full(2, step), done, infos)
    steps = set(buffer.sample(500).rewards[:, 0].int().tolist())
    assert steps == set(range(20, 30))
    with pytest.raises(FallowError, match=r"regimes \[0, 1\] at once"):
        buffer.add(row, row, row, zeros, zeros, [{"regime": 0}, {"regime": 1}])


def test_label_is_that_of_the_end_of_the_episode() -> None:
    buffer = plain()
    buffer.replay.set_present_regime(0)
    fill(buffer, 0, 50)  # one whole episode
    buffer.replay.set_present_regime(1)
    fill(buffer, 50, 60)
    assert buffer.replay.composition().share_by_regime == {0: 50 / 60, 1: 10 / 60}


def test_errors() -> None:
    with pytest.raises(FallowError, match="did you mean 'recency'"):
        plain("recensy")
    with pytest.raises(FallowError, match="the buffer can hold 100;"):
        plain("recency:window_transitions=101", size=100)
    with pytest.raises(FallowError, match="optimize_memory_usage is True"):
        plain(optimize_memory_usage=True)
    with pytest.raises(FallowError, match="is a Dict and one array is stored"):
        RuleReplayBuffer(10, spaces.Dict(a=NUMBER), NUMBER)
    with pytest.raises(FallowError, match="empty"):
        plain().sample(1)
    with pytest.raises(FallowError, match="n_steps is 0; it must be"):
        plain(n_steps=0)
    with pytest.raises(FallowError, match="gamma is x; it must be"):
        plain(n_steps=2, gamma="x")
    with pytest.raises(FallowError, match="tracked is observation; name the fields"):
        plain("adaptive", tracked="observation")
    one = np.ones((1, 1))
    with pytest.raises(FallowError, match="regime is trot; it must be a whole number"):
        plain().add(one, one, one, one[0], one[0], [{"regime": "trot"}])
    plain().add(one, one, one, one[0], one[0], [{"regime": None}])


def test_sac_learns_and_resumes(tmp_path: Path) -> None:
    def make() -> Any:
        return sb3.SAC(
            "MlpPolicy",
            make_vec_env("Pendulum-v1", 2, seed=0),
            learning_starts=100,
            buffer_size=1000,
            batch_size=32,
            seed=0,
            device="cpu",
            policy_kwargs={"net_arch": [16]},
            replay_buffer_class=RuleReplayBuffer,
            replay_buffer_kwargs={"rule": "recency:window_transitions=60"},
        )

    model, twin = make().learn(300), make().learn(300)
    replay = model.replay_buffer.replay
    assert len(replay) == 300
    assert replay.sampled().age_histogram[6:].sum() == 0  # ages from 32 steps on
    assert replay.sampled().n_steps > 1000
    batch, other = model.replay_buffer.sample(64), twin.replay_buffer.sample(64)
    assert torch.equal(batch.observations, other.observations)  # the model's seed
    model.save_replay_buffer(tmp_path / "replay")
    expected = model.replay_buffer.sample(64)
    resumed = make()
    resumed.load_replay_buffer(tmp_path / "replay")
    assert torch.equal(resumed.replay_buffer.sample(64).actions, expected.actions)
    resumed.learn(120)


def test_dqn_learns() -> None:
    model = sb3.DQN(
        "MlpPolicy",
        gymnasium.make("CartPole-v1"),
        learning_starts=100,
        buffer_size=200,
        device="cpu",
        policy_kwargs={"net_arch": [16]},
        replay_buffer_class=RuleReplayBuffer,
        replay_buffer_kwargs={"rule": "wmar:short_transitions=50,long_transitions=64"},
    )
    model.learn(400)
    assert model.replay_buffer.replay.sampled().n_steps > 1000


def push(buffer: Any, gains: list[float], seed: int = 0) -> None:
    """One episode of two environments for each gain, of 40 steps; two joints."""
    random = np.random.default_rng(seed)
    for gain in gains:
        velocity = np.zeros((2, 2))
        for step in range(40):
            action = random.uniform(-1, 1, (2, 2))
            after = 0.9 * velocity + gain * action + random.normal(0, 0.1, (2, 2))
            done = np.full(2, step == 39)
            buffer.add(velocity, after, action, np.zeros(2), done, [{}, {}])
            velocity = after


def adaptive() -> Any:
    box = spaces.Box(-np.inf, np.inf, (2,))
    return RuleReplayBuffer(
        *(10_000, box, spaces.Box(-1, 1, (2,)), "cpu", 2),
        rule="adaptive:kappa_transitions=20",
        seed=0,
        tracked=Tracked("observation", "action"),
    )


def test_adaptive_finds_the_change_in_what_is_stored() -> None:
    """Actions stand beside the observation they are taken at, in this layout."""
    buffer = adaptive()
    push(buffer, [1.0] * 12 + [0.4] * 6)
    labels = buffer.replay.tracker.labels()
    assert labels.tolist() == [0] * 24 + [1] * 12
    gain = buffer.replay.tracker.regime.gain
    np.testing.assert_allclose(gain, 0.4, atol=0.1)
    buffer.replay.sampler.labeler.apply()
    spans = buffer.replay.sampler.parts()[0]
    assert spans.weight.max() == 1 and spans.weight.min() < 0.2


def test_adaptive_is_pickled_with_its_tracker() -> None:
    whole, cut = adaptive(), adaptive()
    push(whole, [1.0] * 12 + [0.4] * 6)
    push(cut, [1.0] * 12 + [0.4] * 6)
    copied = pickle.loads(pickle.dumps(cut))
    for buffer in (whole, copied):
        push(buffer, [1.0] * 4, seed=1)
    assert torch.equal(whole.sample(64).actions, copied.sample(64).actions)
    trackers = [b.replay.tracker for b in (whole, copied)]
    assert trackers[0].labels().tolist() == trackers[1].labels().tolist()
    assert trackers[0].present == 0


def test_adaptive_asks_for_the_columns() -> None:
    with pytest.raises(FallowError, match="name their fields"):
        plain("adaptive")
