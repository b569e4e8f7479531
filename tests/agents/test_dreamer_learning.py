"""Updates with the GPU kernels learn as much as those without, from the same replay.

`benchmarks/forms.py` makes the updates. Rounding differs, and what it grows into makes
single seeds differ, so means of paired differences are compared. On a GPU, by
`make test-gpu`, it is `lean` with its kernels; here the comparison itself is tested,
with a Dreamer that learns in seconds and has none.
"""

import dataclasses
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from small_dreamer import MICRO

from fallow.agents.dreamer.config import PRESETS
from fallow.agents.dreamer.gpu import launch
from fallow.core import options

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import forms

Curves = dict[str, np.ndarray]
METRICS = (
    "model/decoder",
    "model/reward",
    "model/dynamics",
    "critic/loss",
    "imagined/return",
)
N_ERRORS = 4
"""Standard errors; noise of eight seeds is beyond them once in 200 times."""
NEGLIGIBLE, LARGE = 0.01, 0.2
"""Shares of a metric: differences that always agree, and that never do."""
LEAN = forms.Comparison(
    task="walker-walk",
    agent="dreamer",
    preset="lean",
    seeds=8,
    frames=0,
    updates=2000,
    every=20,
)


def micro() -> forms.Comparison:
    tiny = dataclasses.asdict(PRESETS["tiny"])
    changes = {k: v for k, v in dataclasses.asdict(MICRO).items() if tiny[k] != v}
    return dataclasses.replace(
        LEAN,
        task="pendulum-swingup",
        preset=options.render("tiny", changes),
        seeds=2,
        updates=30,
        every=5,
    )


@pytest.fixture(autouse=True)
def kernels_setting(monkeypatch) -> None:
    """Set by the comparison; restored after each test."""
    monkeypatch.setenv("FALLOW_KERNELS", os.environ.get("FALLOW_KERNELS", "default"))


def disagreements(plain: Curves, other: Curves) -> list[str]:
    """Metrics whose mean over the last third of updates differs by more than noise."""
    found = []
    for name in METRICS:
        before, after = forms.late(plain[name]), forms.late(other[name])
        apart, size = after - before, np.abs(before).mean()
        error = apart.std(ddof=1) / len(apart) ** 0.5
        allowed = min(max(N_ERRORS * error, NEGLIGIBLE * size), LARGE * size)
        if not abs(apart.mean()) <= allowed:  # NaN does not agree
            found.append(
                f"{name}: {before.mean():.4f} and {apart.mean():+.4f} ± {error:.4f}, "
                f"at most {allowed:.4f} is allowed"
            )
    return found


@pytest.mark.slow
@pytest.mark.skipif(not launch.on_gpu(), reason="needs a GPU, for compiled kernels")
def test_kernels_learn_as_much_as_plain_jax(monkeypatch) -> None:
    monkeypatch.delenv("FALLOW_KERNELS")
    assert launch.available(), "this jax cannot compile the kernels"
    plain, kernels = forms.compare(LEAN, ["bfloat16", "kernels"])
    assert not disagreements(plain, kernels)
    decoder = plain["model/decoder"].mean(1)
    assert decoder[-1] < decoder[0] / 2  # there was something to learn


def test_the_same_form_learns_the_same_twice() -> None:
    first, again = forms.compare(micro(), ["float32", "float32"])
    assert set(METRICS) <= set(first)
    for name, curve in first.items():
        assert curve.shape == (6, 2) and np.isfinite(curve).all()
        np.testing.assert_array_equal(curve, again[name], name)
    assert np.ptp(first["model/decoder"], axis=0).min() > 0  # it learns
    assert not disagreements(first, again)


def made_up(random, offset: float = 0.0, noise: float = 0.0) -> Curves:
    """Curves of eight seeds around 3; noise has the mean 0."""
    seeds = 3 + 0.15 * np.random.default_rng(1).normal(size=8)
    each = random.normal(size=(len(METRICS), 8))
    each = seeds + offset + noise * (each - each.mean(1, keepdims=True))
    return {name: np.tile(row, (9, 1)) for name, row in zip(METRICS, each, strict=True)}


@pytest.mark.parametrize(
    ("offset", "noise", "agrees"),
    [
        (0.02, 0.0, True),  # below 1 %
        (0.1, 0.3, True),  # within the noise
        (0.1, 0.02, False),  # beyond it
        (0.7, 2.0, False),  # beyond 20 %, whatever the noise
        (np.nan, 0.0, False),
    ],
)
def test_noise_agrees_and_a_shift_does_not(random, offset, noise, agrees) -> None:
    found = disagreements(made_up(random), made_up(random, offset, noise))
    assert len(found) == (0 if agrees else len(METRICS))
