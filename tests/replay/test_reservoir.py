"""The reservoir by whole episodes, against brute force and closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_rules import two_regimes

from fallow.core.errors import FallowError
from fallow.replay import Buffer, Field, Rule


@given(
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(0, 2), st.integers(2, 90)), max_size=40),
    st.integers(1, 400),
    st.integers(0, 5),
)
@settings(max_examples=80, deadline=None)
def test_reservoir_by_episodes_equals_a_list_of_episodes(
    n_worlds: int, lives: list[tuple[int, int]], budget: int, seed: int
) -> None:
    """A brute-force reservoir: sort finished episodes by key, keep while they fit."""
    fields = {"at": Field((), "int64")}
    rule = f"reservoir:budget_transitions={budget}"
    buffer = Buffer(fields, n_worlds, 100_000, rule, seed)
    finished: list[tuple[float, list[int]]] = []
    step = 0
    for world, length in lives:
        steps = list(range(step, step + length))
        step += length
        buffer.add_episode(world % n_worlds, at=np.array(steps))
        finished.append((buffer.ledger.episodes["key"][len(finished)], steps))
    n_running = min(7, budget + 1)  # no longer than the budget, as all others
    for serial in range(n_running):  # running ones are sampled from their first row
        first = np.full(n_worlds, serial == 0)
        buffer.add(is_first=first, at=np.arange(step, step + n_worlds))
        step += n_worlds
    expected, used = set(range(step - n_running * n_worlds, step)), 0
    for _, steps in sorted(finished, reverse=True):
        used += len(steps) - 1
        if used > budget:
            break
        expected |= set(steps)
    longest = max((len(steps) - 1 for _, steps in finished), default=0)
    if longest > budget:
        with pytest.raises(FallowError, match=f"an episode has {longest} steps"):
            buffer.sample(1, 1)
        return
    assert sampled_steps(buffer) == expected
    assert set(buffer.sample(64, 1)["at"].ravel().tolist()) <= expected


def sampled_steps(buffer: Buffer) -> set[int]:
    """What can be sampled, read from the bytes themselves."""
    (spans,) = buffer.sampler.parts()
    found: set[int] = set()
    for world, start, stop in zip(spans.world, spans.start, spans.stop, strict=True):
        serial = np.arange(start, stop)
        rows = buffer.ledger.rows(np.full(len(serial), world), serial)
        found |= set(buffer.storage.columns["at"][rows].tolist())
    return found


def test_reservoir_by_episodes_is_uniform() -> None:
    """Every episode of the history is kept equally often over many seeds."""
    counts = np.zeros(12)
    for seed in range(400):
        rule = "reservoir:budget_transitions=30"
        buffer = Buffer({"at": Field((), "int64")}, 1, 10_000, rule, seed)
        for episode in range(12):
            buffer.add_episode(at=np.full(11, episode))  # ten transitions
        kept = sampled_steps(buffer)
        assert len(kept) == 3
        counts[list(kept)] += 1
    expected = 400 * 3 / 12
    assert abs(counts - expected).max() < 4 * np.sqrt(expected * 0.75)


def test_a_dropped_episode_never_comes_back() -> None:
    rule = "reservoir:budget_transitions=100"
    buffer = Buffer({"at": Field((), "int64")}, 1, 10_000, rule, 3)
    gone: set[int] = set()
    random = np.random.default_rng(0)
    for episode in range(60):
        buffer.add_episode(at=np.full(random.integers(2, 40), episode))
        kept = sampled_steps(buffer)
        assert not kept & gone
        gone |= set(range(episode + 1)) - kept


def test_reservoir_by_episodes_in_a_full_buffer() -> None:
    """What is kept is stored whole; what was given up for capacity is not sampled."""
    rule = "reservoir:budget_transitions=640"
    buffer = Buffer({"at": Field((), "int64")}, 2, 2_000, rule, 0)
    step = 0
    for episode in range(80):
        buffer.add_episode(episode % 2, at=np.arange(step, step + 65))
        step += 65
    kept = sampled_steps(buffer)
    episodes = {at // 65 for at in kept}
    assert kept == {65 * e + i for e in episodes for i in range(65)}
    keys = buffer.ledger.episodes["key"]
    assert episodes == set(np.argsort(-keys)[:10].tolist())


def test_units_of_a_reservoir_are_checked() -> None:
    with pytest.raises(FallowError, match="unknown unit of rule 'reservoir' 'epsode'"):
        Rule.parse("reservoir:unit=epsode")
    remedy = "or keep chunks: reservoir:unit=chunk,stretch_transitions=512"
    for rule in ("reservoir", "reservoir:unit=episode"):
        with pytest.raises(FallowError, match=remedy):
            Rule.parse(f"{rule}{',' if ':' in rule else ':'}stretch_transitions=512")
    assert str(Rule.parse("reservoir:unit=episode")) == "reservoir"
    assert Rule.parse("reservoir").needs_episodes
    assert not Rule.parse("reservoir:unit=chunk").needs_episodes


def test_a_reservoir_of_episodes_has_the_stale_share_of_passive() -> None:
    """T / (T + k), averaged over keys."""
    found = []
    for seed in range(60):
        rule = "reservoir:budget_transitions=1000"
        buffer = Buffer({"at": Field((), "int64")}, 1, 20_000, rule, seed)
        for episode in range(200):
            buffer.add_episode(regime=int(episode >= 120), at=np.arange(51))
        found.append(buffer.composition().stale_share)
    # 20 episodes each time, without replacement from 200
    sigma = np.sqrt(0.6 * 0.4 / (20 * 60))
    assert np.mean(found) == pytest.approx(0.6, abs=4 * sigma)


def test_all_episodes_are_kept_as_long_as_they_fit() -> None:
    buffer = Buffer({"at": Field((), "int64")}, 1, 20_000, "reservoir")
    for episode in range(20):
        buffer.add_episode(at=np.arange(501))
        assert buffer.sampler.parts()[0].n_steps == 501 * (episode + 1)
    buffer.add_episode(at=np.arange(501))
    assert buffer.sampler.parts()[0].n_steps == 501 * 20


def test_an_episode_longer_than_the_budget_is_named() -> None:
    rule = "reservoir:budget_transitions=100"
    remedy = "or keep chunks: reservoir:budget_transitions=100,unit=chunk"
    buffer = Buffer({"at": Field((), "int64")}, 1, 10_000, rule)
    buffer.add_episode(at=np.arange(101))
    assert buffer.sample(4, 64)["at"].shape == (4, 64)
    with pytest.raises(FallowError, match="no finished episode of 200 steps in a row"):
        buffer.add_episode(at=np.arange(101))
        buffer.sample(4, 200, within_episodes=True)
    buffer.add_episode(at=np.arange(102))
    with pytest.raises(FallowError, match=f"is 100 and an episode has 101.*{remedy}"):
        buffer.sample(4, 64)
    buffer.rule = "reservoir:budget_transitions=101"
    assert buffer.sample(4, 64)["at"].shape == (4, 64)
    for _ in range(102):  # also before it is over
        buffer.add(is_first=np.zeros(1, bool), at=np.zeros(1, np.int64))
    assert buffer.sample(4, 64)["at"].shape == (4, 64)
    buffer.add(is_first=np.zeros(1, bool), at=np.zeros(1, np.int64))
    with pytest.raises(FallowError, match="is 101 and an episode has 102 steps"):
        buffer.sample(4, 64)


def test_rows_that_are_whole_transitions_all_count() -> None:
    buffer = Buffer({"at": Field((), "int64")}, 1, 10_000, "reservoir")
    buffer.ledger.leading_rows = 0
    buffer.rule = "reservoir:budget_transitions=100"
    for episode in range(40):
        buffer.add_episode(at=np.full(10, episode))
    assert buffer.sampler.parts()[0].n_steps == 100


def test_a_buffer_saved_by_chunks_is_loaded_by_chunks(tmp_path) -> None:
    """Files name no algorithm before the third."""
    buffer = two_regimes(4_000, 0 + 1, "reservoir:unit=chunk,budget_transitions=2000")
    saved = buffer.sampler.save()
    assert saved.pop("algorithm") == 3
    saved["rule"] = "reservoir:budget_transitions=2000,stretch_transitions=128"
    buffer.sampler.restore(saved)
    rule = "reservoir:budget_transitions=2000,unit=chunk,stretch_transitions=128"
    assert str(buffer.rule) == rule
    buffer.save(tmp_path / "replay")
    buffer.rule = "passive"
    buffer.load(tmp_path / "replay")
    assert str(buffer.rule) == rule
