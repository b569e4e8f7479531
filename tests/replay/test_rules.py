"""Rules against their closed forms, and against what they claim to keep."""

import numpy as np
import pytest

from fallow.core.errors import FallowError
from fallow.replay import RULES, Buffer, Field, Rule, register
from fallow.replay.ledger import CHUNK, Ledger
from fallow.replay.rules import Graded
from fallow.replay.spans import Spans

OLD = 500_000
SERIAL = {"serial": Field((), "int32")}
# stale share of a batch after k new steps on 500k old ones
CLOSED_FORMS = {
    1_000: {"passive": 0.998, "recency": 0.900, "reservoir": 0.998, "wmar": 0.899},
    5_000: {"passive": 0.990, "recency": 0.500, "reservoir": 0.990, "wmar": 0.495},
    10_000: {"passive": 0.980, "recency": 0.000, "reservoir": 0.980, "wmar": 0.490},
    50_000: {"passive": 0.909, "recency": 0.000, "reservoir": 0.909, "wmar": 0.455},
    500_000: {"passive": 0.500, "recency": 0.000, "reservoir": 0.500, "wmar": 0.250},
}
WITH_OPTIONS = {
    "passive": "passive",
    "recency": "recency",
    "reservoir": "reservoir:unit=chunk",
    "wmar": "wmar:short_transitions=5000,long_transitions=5000",
}


def two_regimes(n_old: int, n_new: int, rule: str, seed: int = 0) -> Buffer:
    """One world: `n_old` steps of regime 0, then `n_new` of regime 1."""
    buffer = Buffer(SERIAL, capacity_transitions=1_100_000, rule=rule, seed=seed)
    serial = np.arange(n_old + n_new, dtype=np.int32)
    buffer.add_episode(regime=0, serial=serial[:n_old])
    buffer.note_change()
    buffer.add_episode(regime=1, serial=serial[n_old:])
    return buffer


@pytest.mark.parametrize("n_new", CLOSED_FORMS)
def test_stale_shares_equal_the_closed_forms_by_sampling(n_new: int) -> None:
    buffer = two_regimes(OLD, n_new, "passive")
    for name, expected in CLOSED_FORMS[n_new].items():
        buffer.rule = WITH_OPTIONS[name]
        buffer.sampler.record.clear()
        for _ in range(400):
            buffer.sample(16, 64)
        sampled, allowed = (
            buffer.sampled().stale_share,
            buffer.composition().stale_share,
        )
        # a reservoir of 156 (78) chunks varies with its keys; 6400 sequences as well
        n_chunks = {"reservoir": 156, "wmar": 78}.get(name, np.inf)
        sigma = np.sqrt(expected * (1 - expected) * (1 / n_chunks + 1 / 400))
        assert sampled == pytest.approx(expected, abs=4 * sigma + 0.004), name
        assert allowed == pytest.approx(expected, abs=4 * sigma + 0.004), name


def test_a_batch_of_wmar_comes_wholly_from_one_half() -> None:
    buffer = two_regimes(OLD, 10_000, WITH_OPTIONS["wmar"])
    recent = []
    for _ in range(400):
        is_new = buffer.sample(16, 64)["serial"] >= OLD + 5000
        assert is_new.all() or is_new.mean() < 0.5
        recent.append(is_new.all())
    assert np.mean(recent) == pytest.approx(0.5, abs=0.1)


def kept_chunks(rule: str, n_chunks: int, capacity: int, seed: int) -> np.ndarray:
    ledger = Ledger(1, capacity, seed)
    chosen = Rule.parse(rule)
    for serial in range(n_chunks * CHUNK + 1):
        ledger.advance(0, serial == 0, serial, chosen.victim)
        ledger.now += 1
    return chosen.parts(ledger)[-1].start // CHUNK


@pytest.mark.parametrize("stretch", [1, 4])
@pytest.mark.parametrize("capacity", [1_000 * CHUNK, 110 * CHUNK])
def test_the_reservoir_keeps_every_arrival_decile_alike(
    capacity: int, stretch: int
) -> None:
    """Also when the buffer is far too small for the history."""
    n_chunks, budget, n_runs = 1000, 100, 25
    options = f"unit=chunk,stretch_transitions={stretch * 64}"
    options += f",budget_transitions={budget * CHUNK}"
    kept = np.concatenate(
        [
            kept_chunks(f"reservoir:{options}", n_chunks, capacity, seed)
            for seed in range(n_runs)
        ]
    )
    assert len(kept) == budget // stretch * n_runs
    n_a_decile = 100 // stretch * n_runs
    share = np.bincount(kept // 100, minlength=10) / n_a_decile
    sigma = np.sqrt(0.1 * 0.9 / n_a_decile)
    assert abs(share - 0.1).max() < 4 * sigma


def test_a_reservoir_never_shows_more_than_its_budget() -> None:
    buffer = two_regimes(40_000, 10_000, "reservoir:unit=chunk,budget_transitions=2000")
    seen: set[int] = set()
    for length in (64, 64, 64, 10, 1, 130):
        for _ in range(100):
            seen |= set(buffer.sample(16, length)["serial"].ravel().tolist())
    assert 1900 < len(seen) <= 2000
    assert len({serial // CHUNK for serial in seen}) == 2000 // CHUNK


@pytest.mark.parametrize(
    "rule", ["reservoir:unit=chunk", "wmar:long_transitions=10000"]
)
def test_all_is_kept_as_long_as_it_fits(rule: str) -> None:
    buffer = two_regimes(8_000, 2_000, rule)
    assert buffer.sampler.parts()[-1].n_steps == 10_000
    buffer.add(is_first=np.full(1, True), serial=np.full(1, 10_000, np.int32))
    assert 9_400 < buffer.sampler.parts()[-1].n_steps < 10_000  # what is finished


def test_a_long_stretch_has_many_sequences() -> None:
    """As long as its stretch a sequence is always the same; else it starts anywhere."""
    starts = {}
    for stretch in (64, 512):
        rule = "reservoir:unit=chunk,budget_transitions=2048"
        rule += f",stretch_transitions={stretch}"
        buffer = two_regimes(40_000, 10_000, rule)
        sampled = [buffer.sample(16, 64)["serial"] for _ in range(200)]
        starts[stretch] = {int(serial) for batch in sampled for serial in batch[:, 0]}
        seen = {int(serial) for batch in sampled for serial in batch.ravel()}
        assert len(seen) == 2048
        assert len({serial // stretch for serial in seen}) == 2048 // stretch
    assert len(starts[64]) == 32
    assert len(starts[512]) > 1500


def test_a_full_wmar_keeps_its_newest_and_its_sample() -> None:
    rule = "wmar:short_transitions=1000,long_transitions=2000"
    buffer = Buffer(SERIAL, capacity_transitions=4000, rule=rule)
    for serial in range(30_000):
        is_first = np.full(1, serial % 500 == 0)
        buffer.add(is_first=is_first, serial=np.full(1, serial, np.int32))
    newest, sample = buffer.sampler.parts()
    assert newest.n_steps == 1000 and newest.start.min() == 29_000
    assert sample.n_steps == 2000 // CHUNK * CHUNK
    assert sample.start.min() < 15_000  # not just the latest
    for _ in range(50):
        batch = buffer.sample(8, 64)
        follows = ~batch["is_first"][:, 1:]
        assert (np.diff(batch["serial"], axis=1)[follows] == 1).all()


def model_errors(buffer: Buffer) -> None:
    """Errors of a model fitted to the new regime, where x is doubled."""
    for ticket, sequences in buffer.sweep():
        x, y = sequences["x"], sequences["y"]
        buffer.set_errors(ticket, ((y - 2 * x) ** 2).mean(axis=1))


def test_graded_leaves_stale_data_and_curious_returns_to_it() -> None:
    random = np.random.default_rng(0)
    fields = {"x": Field(()), "y": Field(())}
    shares = {}
    for rule in ("passive", "graded", "curious:c=0", "graded:temperature=0.2"):
        buffer = Buffer(fields, capacity_transitions=20_000, rule=rule)
        for regime, slope in enumerate((1.0, 2.0)):
            for _ in range(20):
                x = random.normal(size=500).astype(np.float32)
                y = (slope * x + 0.3 * random.normal(size=500)).astype(np.float32)
                buffer.add_episode(regime=regime, x=x, y=y)
        model_errors(buffer)
        for _ in range(200):
            buffer.sample(16, 64)
        shares[rule] = buffer.sampled().stale_share
    assert shares["passive"] == pytest.approx(0.5, abs=0.03)
    assert shares["graded"] < shares["passive"] - 0.1
    assert shares["graded:temperature=0.2"] < shares["graded"]
    assert shares["curious:c=0"] > shares["passive"] + 0.1


def test_graded_weights_by_hand() -> None:
    buffer = two_regimes(4 * CHUNK, 1, "graded")
    (ticket, _), *rest = buffer.sweep()
    assert len(ticket.slots) == 4 and not rest
    buffer.set_errors(ticket, np.array([1.0, 1.0, 2.0, 0.5]))
    (spans,) = Graded().parts(buffer.ledger)
    expected = np.exp(-(np.array([1.0, 1.0, 2.0, 0.5, 1.0]) - 1))  # the last is unknown
    np.testing.assert_allclose(spans.weight, expected)


def test_curious_prefers_what_was_never_sampled() -> None:
    buffer = two_regimes(20 * CHUNK, 1, "curious")
    for _ in range(40):
        buffer.sample(4, 64)
        buffer.set_present_regime(1)  # weights are worked out anew
    visits = buffer.ledger.visits[buffer.ledger.slots(finished=True)]
    assert visits.min() > 0.4 * visits.mean()


def test_reset_forgets_once_and_only_what_came_before() -> None:
    buffer = two_regimes(1000, 500, "reset")
    assert buffer.sample(64, 8)["serial"].min() >= 1000
    buffer.note_change()  # a second change is not forgotten
    assert buffer.sample(64, 8)["serial"].min() < 1500
    buffer.rule = "reset:change_step=1200"
    assert buffer.sample(64, 8)["serial"].min() >= 1200


def test_matched_opens_old_data_when_its_regime_returns() -> None:
    buffer = two_regimes(1000, 500, "matched")
    assert buffer.sample(64, 8)["serial"].min() >= 1000
    buffer.set_present_regime(0)
    assert buffer.sample(64, 8)["serial"].max() < 1000
    buffer.rule = "matched:beta=0.5"
    share = buffer.composition().stale_share
    assert share == pytest.approx(0.5 * 500 / (0.5 * 500 + 1000))
    buffer.set_regimes([0], [7])  # an estimate says otherwise
    buffer.set_present_regime(7)
    assert buffer.composition().share_by_regime[7] == pytest.approx(1000 / 1250)


def test_recency_counts_the_steps_of_all_worlds() -> None:
    rule = "recency:window_transitions=100"
    buffer = Buffer({"t": Field((), "int64")}, 4, 10_000, rule)
    for t in range(300):
        buffer.add(is_first=np.full(4, t % 50 == 0), t=np.full(4, t))
    assert buffer.sampler.parts()[0].n_steps == 100
    assert set(np.unique(buffer.sample(200, 4)["t"])) == set(range(275, 300))


def test_a_window_as_large_as_the_buffer_is_passive() -> None:
    """Bit for bit, over a full buffer."""
    buffers = [
        Buffer({"t": Field((), "int64")}, 4, 5_000, rule)
        for rule in ("passive", "recency:window_transitions=5000")
    ]
    for t in range(1200):
        for buffer in buffers:
            buffer.add(is_first=np.full(4, t % 50 == 0), t=np.full(4, t))
        if t > 100 and t % 10 == 0:
            one, other = (buffer.sample(8, 64)["t"] for buffer in buffers)
            np.testing.assert_array_equal(one, other)


def test_proof_of_age_and_weight() -> None:
    buffer = two_regimes(900, 100, "passive")
    made = buffer.composition()
    assert made.share_by_regime == pytest.approx({0: 0.9, 1: 0.1})
    assert made.effective_steps == pytest.approx(1000) and made.n_steps == 1000
    assert made.age_histogram.sum() == pytest.approx(1)
    assert made.age_histogram[0] == pytest.approx(0.001)  # age 0
    assert made.age_histogram[7] == pytest.approx(0.064)  # ages 64 to 127
    for _ in range(300):
        buffer.sample(8, 50)
    sampled = buffer.sampled()
    assert sampled.n_steps == 300 * 8 * 50
    assert sampled.stale_share == pytest.approx(0.9, abs=0.03)
    np.testing.assert_allclose(sampled.age_histogram, made.age_histogram, atol=0.03)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_a_rule_with_impossible_weights_is_refused(weight: float) -> None:
    class Broken(Rule):
        name = "broken"

        def parts(self, ledger: Ledger) -> tuple[Spans, ...]:
            slots = ledger.slots()
            return (ledger.chunk_spans(slots, np.full(len(slots), weight)),)

    buffer = two_regimes(200, 10, "passive")
    buffer.rule = Broken()
    with pytest.raises(FallowError, match=f"a weight of {weight}"):
        buffer.sample(1, 1)
    buffer.rule = "passive"
    assert len(buffer.sample(3, 4)["serial"]) == 3


def test_a_new_rule_is_one_small_class() -> None:
    from dataclasses import dataclass

    @register("oldest")
    @dataclass(frozen=True)
    class Oldest(Rule):
        """only the first steps of every world"""

        n_steps: int = 10

        def parts(self, ledger: Ledger) -> tuple[Spans, ...]:
            stored = ledger.stored()
            stop = np.minimum(stored.stop, stored.start + self.n_steps)
            return (Spans(stored.world, stored.start, stop),)

    try:
        buffer = two_regimes(200, 10, "oldest:n_steps=5")
        assert buffer.sample(64, 2)["serial"].max() == 4
        assert str(buffer.rule) == "oldest:n_steps=5"
        assert RULES["oldest"].summary == "only the first steps of every world"
        with pytest.raises(KeyError, match="registered already"):
            register("oldest")(Oldest)
        Oldest.__module__ = "__main__"  # a cell of a notebook that is run again
        assert register("oldest")(Oldest) is RULES["oldest"]
    finally:
        del RULES._entries["oldest"]


@pytest.mark.parametrize("name", RULES)
def test_every_rule_says_its_law_and_its_stale_share(name: str) -> None:
    assert "Stale share" in (RULES[name].__doc__ or "")
    assert str(Rule.parse(name)) == name
