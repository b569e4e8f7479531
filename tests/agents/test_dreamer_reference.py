"""The reference's own numbers on known inputs, through its own weight names."""

import re

import jax
import numpy as np
import pytest
from known_weights import DATA, known_weights, n_parameters

from fallow.agents.dreamer import latent, losses
from fallow.agents.dreamer.bins import BINS
from fallow.agents.dreamer.reference import from_reference
from fallow.agents.dreamer.rssm import Sequence
from fallow.agents.shared.bins import symexp
from fallow.core.errors import FallowError

NORM = re.compile(r"norm|_layers\.1\.")


def scaled(name: str, s: np.ndarray) -> np.ndarray:
    if name.endswith("ema_vals"):
        return 0 * s
    if NORM.search(name):
        return 0.1 * s + name.endswith("weight")
    if name == "_wm.heads.cont.mean_layer.bias":
        return 3 + 0.1 * s
    if name.endswith("bias"):
        return 0.1 * s
    if name.endswith(".W"):
        return 0.5 * s
    return (4 if "stat_layer" in name else 2) * s / np.sqrt(s.shape[1])


@pytest.fixture(scope="module")
def known() -> dict[str, np.ndarray]:
    return known_weights("dreamer_reference_names.txt", scaled)


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
    _, posterior = model.rssm.observe(model.rssm.zero_state(2), sequence)
    logits = posterior()
    start = model.rssm.start()
    feature = states.feature
    decoded = symexp(model.decoder(feature))
    policy = learner.actor(feature)
    last = jax.tree.map(lambda x: x[-1], states)
    imagined = model.rssm.imagine(last, given["action"][:, 0], None)
    imagined_logits = model.rssm.expected(imagined.deter)()
    dynamics = np.maximum(errors.dynamics, 1)
    representation = np.maximum(errors.representation, 1)
    shape = (6, 2, 32, 32)
    timed = {
        "embed": embed,
        "deter": states.deter,
        "posterior_logits": logits,
        "posterior_mode": latent.mode(logits).reshape(shape),
        "prior_logits": model.rssm.expected(states.deter)(),
        "feature": feature,
        "kl_value": errors.dynamics,
        "dyn_loss": dynamics,
        "rep_loss": representation,
        "kl_loss": 0.5 * dynamics + 0.1 * representation,
        "decoded_orientations": decoded[..., :14],
        "decoded_height": decoded[..., 14:15],
        "decoded_velocity": decoded[..., 15:],
        "decoder_loss": errors.decoder,
        "reward_estimate": BINS.estimate(model.reward(feature))[..., None],
        "reward_loss": errors.reward,
        "cont_mean": jax.nn.sigmoid(model.continues(feature)),
        "cont_loss": errors.continues,
        "actor_mean": policy.mean,
        "actor_mode": policy.mean,
        "actor_std": policy.std,
        "actor_entropy": policy.entropy(),
        "critic_estimate": BINS.estimate(learner.critic(feature))[..., None],
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
