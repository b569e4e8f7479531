"""The reference's own numbers on known inputs, through its own weight names."""

import re
from pathlib import Path

import jax
import numpy as np
import pytest

from fallow.agents.dreamer import latent, losses, twohot
from fallow.agents.dreamer.layers import n_parameters
from fallow.agents.dreamer.reference import from_reference
from fallow.agents.dreamer.rssm import Sequence
from fallow.errors import FallowError

DATA = Path(__file__).parent / "data"
NAMED = re.compile(r"(\S+) \((.*)\)")
NORM = re.compile(r"norm|_layers\.1\.")


def weight(index: int, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The known weights: a formula of the index and the entry."""
    if name.endswith("ema_vals"):
        return np.zeros(shape, np.float32)
    k = np.arange(int(np.prod(shape)), dtype=np.int64)
    m = (31 * k**2 + 17 * (index + 1) * k + 7919 * index) % 10007
    s = (2 * m / 10006 - 1).reshape(shape)
    if NORM.search(name):
        values = 0.1 * s + name.endswith("weight")
    elif name == "_wm.heads.cont.mean_layer.bias":
        values = 3 + 0.1 * s
    elif name.endswith("bias"):
        values = 0.1 * s
    elif name.endswith(".W"):
        values = 0.5 * s
    else:
        factor = 4 if "stat_layer" in name else 2
        values = factor * s / np.sqrt(shape[1])
    return values.astype(np.float32)


@pytest.fixture(scope="module")
def known() -> dict[str, np.ndarray]:
    weights = {}
    lines = (DATA / "dreamer_reference_names.txt").read_text().splitlines()
    for index, line in enumerate(lines):
        name, sizes = NAMED.fullmatch(line).groups()
        shape = tuple(int(size) for size in sizes.split(",") if size.strip())
        weights[name] = weight(index, name, shape)
    return weights


@pytest.fixture(scope="module")
def computed(known) -> dict[str, np.ndarray]:
    """All arrays of the file, computed by our networks."""
    given = np.load(DATA / "dreamer_reference.npz")
    learner = from_reference(known)
    model = learner.model
    batch = {
        name: np.swapaxes(given[name], 0, 1)
        for name in ("observation", "action", "reward", "is_first")
    }
    batch["is_first"] = batch["is_first"].astype(bool)
    errors, states = losses.model_errors(model, batch, None)
    embed = model.embed(batch["observation"])
    sequence = Sequence(embed, batch["action"], batch["is_first"], None)
    _, logits = model.rssm.observe(model.rssm.nothing(2), sequence)
    start = model.rssm.start()
    feature = states.feature
    decoded = twohot.symexp(model.decoder(feature))
    policy = learner.actor(feature)
    last = jax.tree.map(lambda x: x[-1], states)
    imagined, imagined_logits = model.rssm.imagine(last, given["action"][:, 0], None)
    dynamics = np.maximum(errors.dynamics, 1)
    representation = np.maximum(errors.representation, 1)
    shape = (6, 2, 32, 32)
    timed = {
        "embed": embed,
        "deter": states.deter,
        "posterior_logits": logits,
        "posterior_mode": latent.mode(logits).reshape(shape),
        "prior_logits": model.rssm.prior_logits(states.deter),
        "feature": feature,
        "kl_value": errors.dynamics,
        "dyn_loss": dynamics,
        "rep_loss": representation,
        "kl_loss": 0.5 * dynamics + 0.1 * representation,
        "decoded_orientations": decoded[..., :14],
        "decoded_height": decoded[..., 14:15],
        "decoded_velocity": decoded[..., 15:],
        "decoder_loss": errors.decoder,
        "reward_estimate": twohot.estimate(model.reward(feature))[..., None],
        "reward_loss": errors.reward,
        "cont_mean": jax.nn.sigmoid(model.proceeds(feature)),
        "cont_loss": errors.proceeds,
        "actor_mean": policy.mean,
        "actor_mode": policy.mean,
        "actor_std": policy.std,
        "actor_entropy": policy.entropy(),
        "critic_estimate": twohot.estimate(learner.critic(feature))[..., None],
    }
    once = {
        "initial_deter": np.tile(start.deter, (2, 1)),
        "initial_stoch": np.tile(start.stoch.reshape(32, 32), (2, 1, 1)),
        "imagined_deter": imagined.deter,
        "imagined_logits": imagined_logits,
    }
    return once | {name: np.swapaxes(x, 0, 1) for name, x in timed.items()}


INPUTS = {"observation", "action", "reward", "is_first"}
NAMES = sorted(set(np.load(DATA / "dreamer_reference.npz").files) - INPUTS)


@pytest.mark.parametrize("name", NAMES)
def test_equals_the_reference(name: str, computed) -> None:
    expected = np.load(DATA / "dreamer_reference.npz")[name]
    scale = np.abs(expected).max()
    np.testing.assert_allclose(
        computed[name], expected, rtol=1e-3, atol=1e-4 * max(scale, 1e-3)
    )


def test_parameter_counts(known) -> None:
    learner = from_reference(known)
    counts = [n_parameters(x) for x in (learner.model, learner.actor, learner.critic)]
    assert counts == [16_469_784, 1_056_780, 1_181_439]


def test_a_missing_name_and_a_wrong_shape(known) -> None:
    less = {k: v for k, v in known.items() if k != "_wm.dynamics.W"}
    with pytest.raises(FallowError, match=r"no '_wm\.dynamics\.W'"):
        from_reference(less)
    with pytest.raises(FallowError, match=r"shape \(1, 7\)"):
        from_reference(known | {"_wm.dynamics.W": np.zeros((1, 7))})
