"""Rules in TorchRL's replay buffers; needs `make test-extras`."""

from pathlib import Path
from typing import Any

import pytest
from conftest import output_of_example

from fallow.core.errors import FallowError

WHY = "{} is not installed: `make test-extras` runs the tests of the adapters"
torch = pytest.importorskip("torch", reason=WHY.format("torch"))
rl = pytest.importorskip("torchrl.data", reason=WHY.format("torchrl"))

from tensordict import TensorDict  # noqa: E402

from fallow.replay.adapters.torchrl import RuleSampler, RuleWriter  # noqa: E402
from fallow.replay.labeler import Tracked  # noqa: E402

EXPECTED = {
    "replay_torchrl.py": (
        "adaptive:kappa_transitions=20: response 0.55, truth 0.50\n"
        "a buffer restored from state_dict samples the same: True"
    )
}


@pytest.mark.parametrize("name", EXPECTED)
def test_example(name: str, tmp_path: Path) -> None:
    assert EXPECTED[name] in output_of_example(name, tmp_path)


def pair(rule: str = "passive", n_rows: int = 1000, **more: Any) -> Any:
    sampler = RuleSampler(rule, seed=0)
    return rl.TensorDictReplayBuffer(
        storage=rl.LazyTensorStorage(n_rows, **more),
        sampler=sampler,
        writer=RuleWriter(sampler),
    )


def items(start: int, stop: int) -> TensorDict:
    step = torch.arange(start, stop)
    return TensorDict({"step": step, "twice": 2 * step[:, None]}, [stop - start])


def sampled_steps(buffer: Any, n: int = 4000) -> set[int]:
    """Items that are sampled; every one must have been written."""
    batch = buffer.sample(n)
    assert torch.equal(batch["twice"][:, 0], 2 * batch["step"])
    return set(batch["step"].tolist())


def test_rule_decides_what_is_sampled() -> None:
    buffer = pair("recency:window_transitions=70")
    buffer.extend(items(0, 100))
    for start in range(100, 400, 30):
        buffer.extend(items(start, start + 30))
        assert sampled_steps(buffer) == set(range(start - 40, start + 30))
    buffer.sampler.replay.rule = "passive"
    assert sampled_steps(buffer, 10_000) == set(range(400))
    assert len(buffer) == buffer.write_count == 400


@pytest.mark.parametrize("n_rows", [192, 250, 320])
def test_wraps_around(n_rows: int) -> None:
    buffer = pair(n_rows=n_rows)
    usable = n_rows // 64 * 64
    for start in range(0, 900, 10):
        index = buffer.extend(items(start, start + 10))
        assert int(index.max()) < usable
    steps = sampled_steps(buffer)
    assert steps >= set(range(900 - (usable - 128), 900))
    assert min(steps) >= 900 - usable
    assert usable - 64 <= len(buffer) <= usable


CHUNKS = "reservoir:budget_transitions=128,unit=chunk"


def test_whole_episodes_need_to_be_read() -> None:
    with pytest.raises(FallowError, match="keep chunks: reservoir:unit=chunk, or give"):
        RuleSampler("reservoir")
    RuleSampler("reservoir", tracked=Tracked("observation[0:2]", "action"))


@pytest.mark.parametrize("rule", ["passive", CHUNKS])
def test_batch_larger_than_the_storage(rule: str) -> None:
    one, many = pair(rule, 256), pair(rule, 256)
    index = one.extend(items(0, 1000))
    for step in range(1000):
        assert many.add(items(step, step + 1)[0]) == index[step]
    assert sampled_steps(one) == sampled_steps(many)
    if rule != "passive":
        assert min(sampled_steps(one)) < 1000 - 256


def test_list_storage() -> None:
    sampler = RuleSampler("recency:window_transitions=50")
    buffer = rl.ReplayBuffer(
        storage=rl.ListStorage(256),
        sampler=sampler,
        writer=RuleWriter(sampler),
        collate_fn=torch.stack,
        batch_size=2000,
    )
    buffer.extend(list(torch.arange(300)))
    assert set(buffer.sample().tolist()) == set(range(250, 300))
    with pytest.raises(FallowError, match="given a tuple"):
        buffer.extend((torch.arange(3), torch.arange(3)))


@pytest.mark.parametrize("by_file", [False, True])
@pytest.mark.parametrize("rule", ["recency:window_transitions=90", CHUNKS])
def test_state_round_trip(rule: str, by_file: bool, tmp_path: Path) -> None:
    buffer, again = pair(rule, 256), pair("passive", 256)
    buffer.extend(items(0, 333))
    if by_file:
        buffer.dumps(tmp_path / "replay")
        again.loads(tmp_path / "replay")
    else:
        torch.save(buffer.state_dict(), tmp_path / "state.pt")
        again.load_state_dict(torch.load(tmp_path / "state.pt"))
    assert again.write_count == 333 and len(again) == len(buffer)
    for start in (333, 444):  # at once, and after both continued
        for _ in range(3):
            assert torch.equal(buffer.sample(32)["step"], again.sample(32)["step"])
        buffer.extend(items(start, start + 111))
        again.extend(items(start, start + 111))


def test_empty() -> None:
    buffer = pair("recency:window_transitions=10")
    buffer.extend(items(0, 100))
    buffer.empty()
    with pytest.raises(FallowError, match="empty"):
        buffer.sample(1)
    buffer.extend(items(0, 5))
    assert sampled_steps(buffer) == set(range(5))


def test_regimes() -> None:
    buffer = pair("matched")
    for start, regime in ((0, 0), (30, 1), (60, 0)):
        buffer.sampler.set_present_regime(regime)
        buffer.extend(items(start, start + 30))
    assert sampled_steps(buffer) == {*range(30), *range(60, 90)}
    buffer.sampler.set_present_regime(1)
    assert sampled_steps(buffer) == set(range(30, 60))


def test_priorities_are_errors() -> None:
    buffer = pair("graded:temperature=0.01")
    index = buffer.extend(items(0, 128))
    buffer.update_priority(index, torch.where(index < 64, 1.0, 3.0))
    assert sampled_steps(buffer) == set(range(64))
    buffer.update_priority(index[:64], 9.0)
    assert sampled_steps(buffer) == set(range(64, 128))


def test_errors() -> None:
    with pytest.raises(FallowError, match="did you mean 'recency'"):
        RuleSampler("recensy")
    with pytest.raises(FallowError, match=r"A storage of 1,000 rows .* 832; make"):
        pair("recency:window_transitions=1000", 1000)
    with pytest.raises(FallowError, match="has 100 rows and a rule needs 192"):
        pair(n_rows=100)
    with pytest.raises(FallowError, match="ndim 2"):
        pair(ndim=2)
    lone = rl.ReplayBuffer(storage=rl.ListStorage(256), sampler=RuleSampler())
    lone.extend([1, 2])
    with pytest.raises(FallowError, match=r"pass writer=RuleWriter"):
        lone.sample(1)
    with pytest.raises(FallowError, match="make a pair for each"):
        pair().writer.register_storage(rl.LazyTensorStorage(500))
    writer = pair().writer
    with pytest.raises(FallowError, match="another, with 1,000; make a pair"):
        rl.ReplayBuffer(
            storage=rl.LazyTensorStorage(1000), sampler=writer.sampler, writer=writer
        )
    with pytest.raises(FallowError, match=r"RandomSampler and not by RuleSampler\('pa"):
        rl.ReplayBuffer(storage=rl.ListStorage(256), writer=RuleWriter(RuleSampler()))
    with pytest.raises(FallowError, match="has _sampler and no 'replay'"):
        RuleSampler().load_state_dict({"_sampler": 1})
    buffer = pair("graded")
    index = buffer.extend(items(0, 90))
    with pytest.raises(FallowError, match="3 priorities for 90 items"):
        buffer.update_priority(index, torch.ones(3))
    with pytest.raises(FallowError, match=r"index is \[5000\]…; .* from 0 to 959"):
        buffer.update_priority(torch.tensor([5000]), torch.ones(1))


def adaptive(text: str = "observation[1:3]") -> Any:
    sampler = RuleSampler("adaptive", seed=0, tracked=Tracked(text, "action"))
    return rl.TensorDictReplayBuffer(
        storage=rl.LazyTensorStorage(10_000),
        sampler=sampler,
        writer=RuleWriter(sampler),
    )


def episode(gain: float, n: int = 40, number: int | None = None) -> TensorDict:
    """Two joints, whose velocities follow a constant in the observation."""
    action, velocity = torch.rand(n, 2) * 2 - 1, torch.zeros(n + 1, 2)
    for t in range(n):
        velocity[t + 1] = 0.9 * velocity[t] + gain * action[t] + 0.1 * torch.randn(2)
    rows = torch.cat([torch.ones(n + 1, 1), velocity], dim=1)
    done = (torch.arange(n) == n - 1)[:, None]
    after = TensorDict({"observation": rows[1:], "done": done}, [n])
    item = TensorDict({"observation": rows[:-1], "action": action, "next": after}, [n])
    if number is not None:  # a collector cuts what it hands over, without `done`
        item["next", "done"][:] = False
        item["collector", "traj_ids"] = torch.full((n,), number)
    return item


@pytest.mark.parametrize("by_id", [False, True])
def test_adaptive_finds_the_change_in_the_items(by_id: bool) -> None:
    torch.manual_seed(0)
    buffer = adaptive()
    gains = [1.0] * 12 + [0.4] * 6
    for number, gain in enumerate(gains):
        buffer.extend(episode(gain, number=number if by_id else None))
    tracker = buffer.sampler.replay.tracker
    expected = [0] * 12 + [1] * (5 if by_id else 6)  # the last one may be running
    assert tracker.labels().tolist() == expected
    one_by_one = adaptive()
    torch.manual_seed(0)
    for number, gain in enumerate(gains):
        for item in episode(gain, number=number if by_id else None):
            one_by_one.add(item)
    assert one_by_one.sampler.replay.tracker.labels().tolist() == expected


N_ENVS, PIECE = 3, 8


def pieces(gains: list[float], by_id: bool, in_turn: bool) -> list[TensorDict]:
    """What a collector hands over: the next steps of every environment at a time."""
    found = []
    for number, gain in enumerate(gains):
        of_envs = [
            episode(gain, number=N_ENVS * number + env if by_id else None)
            for env in range(N_ENVS)
        ]
        if by_id:
            for one in of_envs:
                one["next", "done"][-1] = True
        for start in range(0, 40, PIECE):
            some = [one[start : start + PIECE] for one in of_envs]
            found += some if in_turn else [torch.cat(some)]
    return found


@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize("by_id", [False, True])
def test_adaptive_reads_pieces_of_several_environments(by_id, in_turn: bool) -> None:
    """Pieces are too short for a tracker; each gets the label of its trajectory."""
    torch.manual_seed(0)
    buffer, again = adaptive(), adaptive()
    given = pieces([1.0] * 12 + [0.4] * 6, by_id, in_turn)
    for number, piece in enumerate(given):
        if number == len(given) * 2 // 3 + 1:  # in the middle of an episode
            again.load_state_dict(buffer.state_dict())
        buffer.extend(piece)
        if number > len(given) * 2 // 3:
            again.extend(piece)
    replay = buffer.sampler.replay
    early = N_ENVS - 1 if in_turn else 0  # until it is known that they come in turn
    expected = [0] * 12 * N_ENVS + [1] * 6 * N_ENVS
    assert replay.tracker.labels().tolist() == [0] * early + expected
    replay.sampler.labeler.apply()
    labels = replay.ledger.episodes["label"].tolist()
    assert labels == [0] * 12 * N_ENVS * 5 + [1] * 6 * N_ENVS * 5
    spans = replay.sampler.parts()[0]
    assert spans.weight.max() == pytest.approx(1, abs=0.01)
    assert spans.weight.min() < 0.9
    if by_id or not in_turn:
        other = again.sampler.replay.tracker.labels().tolist()
        assert other[-6 * N_ENVS :] == expected[-6 * N_ENVS :]


def test_adaptive_says_what_it_needs() -> None:
    with pytest.raises(FallowError, match="how many columns"):
        adaptive("observation[1:]")
    with pytest.raises(FallowError, match="where episodes end"):
        adaptive().extend(episode(1.0).exclude("next"))
    with pytest.raises(FallowError, match="unknown key to track"):
        adaptive("state[1:3]").extend(episode(1.0))
    with pytest.raises(FallowError, match="name the velocity"):
        adaptive("observation[0:3]").extend(episode(1.0))
    with pytest.raises(FallowError, match=r"column 3 of 'observation' .* has 3 col"):
        adaptive("observation[2:4]").extend(episode(1.0))
    with pytest.raises(FallowError, match=r"shape \(2, 20\) .* data.reshape\(-1\)"):
        adaptive().extend(episode(1.0).reshape(2, 20))
    with pytest.raises(FallowError, match="tracked is observation; name"):
        RuleSampler("adaptive", tracked="observation")


def test_a_batch_with_nan_is_refused_as_a_whole() -> None:
    buffer, bad = adaptive(), episode(1.0)
    buffer.extend(episode(1.0))
    bad["action"][30] = torch.nan
    with pytest.raises(FallowError, match="action holds NaN or infinity and no item"):
        buffer.extend(bad)
    assert len(buffer) == len(buffer.sampler.replay) == 40
