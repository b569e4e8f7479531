"""A Stable-Baselines3 replay buffer that keeps and samples by a Fallow rule.

    from fallow.replay.adapters.sb3 import RuleReplayBuffer

    model = SAC("MlpPolicy", env, replay_buffer_class=RuleReplayBuffer,
                replay_buffer_kwargs={"rule": "recency:window_transitions=20000"})
    model.learn(100_000)
    model.replay_buffer.replay.sampled()   # what the updates were made on

A row is a whole transition, so samples are sequences of one step, or of `n_steps` for
n-step returns. `info["regime"]`, as `fallow.dynamics.gym` gives it, labels episodes for
the rules that read regimes. The rule `adaptive` labels them itself, from the velocities
and actions that are stored:

    replay_buffer_kwargs={"rule": "adaptive", "tracked": Tracked("observation[8:14]")}

Where an observation is not the one that the last transition led to, the environment was
reset without `done`, as by a second `learn`, and an episode begins.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from fallow.core.extras import explained

try:
    import torch
    from gymnasium import spaces
    from stable_baselines3.common.buffers import ReplayBuffer
    from stable_baselines3.common.type_aliases import ReplayBufferSamples
    from stable_baselines3.common.vec_env import VecNormalize
except ModuleNotFoundError as error:
    raise explained(error, "fallow.replay.adapters.sb3", "sb3") from None

from fallow.core import options
from fallow.core.errors import FallowError
from fallow.replay import requests
from fallow.replay.adapters.packing import pack, unpack
from fallow.replay.buffer import Buffer
from fallow.replay.labeler import Tracked, checked_tracked
from fallow.replay.rules import Rule
from fallow.replay.storage import IS_FIRST, Field

TIME_LIMIT = "TimeLimit.truncated"
"""Where Stable-Baselines3 notes that an episode ended by its time limit."""


class RuleReplayBuffer(ReplayBuffer):
    """Stable-Baselines3's buffer, with a rule.

    Args:
        buffer_size: at least so many of the newest transitions stay stored, summed
            over environments; whole chunks are given up, so up to 127 more for each.
        observation_space: any but Dict and Tuple.
        action_space: as Stable-Baselines3 has it.
        device: where batches go.
        n_envs: environments that are stepped together.
        optimize_memory_usage: not available.
        handle_timeout_termination: whether an episode that its time limit ended counts
            as continuing.
        rule: what is kept and how it is sampled.
        seed: of samples; None takes one from NumPy's global generator, which
            Stable-Baselines3 seeds with the model's seed.
        tracked: which columns of `observation` are the velocities that the columns of
            `action` drive, for the rule `adaptive`.
        n_steps: of returns; Stable-Baselines3 does not pass its own `n_steps` on.
        gamma: discount of n-step returns; give the model's.

    Raises:
        FallowError: a space or an option that is not available, or a rule that cannot
            work with this buffer.
    """

    replay: Buffer
    """Bytes, ledger and rule: `note_change` and `sampled` are methods of it."""
    pos: int
    full: bool

    def __init__(  # noqa: PLR0913 (the parameters of Stable-Baselines3, and five)
        self,
        buffer_size: int,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        device: torch.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        rule: str | Rule = "passive",
        seed: int | None = None,
        tracked: Tracked | None = None,
        n_steps: int = 1,
        gamma: float = 0.99,
    ) -> None:
        _check(observation_space, optimize_memory_usage)
        self.n_steps = options.integer("RuleReplayBuffer", "n_steps", n_steps, 1)
        options.check_number("RuleReplayBuffer", "gamma", gamma, at_least=0)
        self.gamma = gamma
        # past ReplayBuffer's own, which would allocate a second set of arrays
        super(ReplayBuffer, self).__init__(
            buffer_size, observation_space, action_space, device, n_envs
        )
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.optimize_memory_usage = False
        self.handle_timeout_termination = handle_timeout_termination
        self._seed = np.random.randint(2**31) if seed is None else seed  # noqa: NPY002
        tracked = checked_tracked(tracked)
        self._tracked = tracked and replace(tracked, action_leads=False)
        self._fields = self._make_fields()
        self._make_replay(Rule.parse(rule))

    def _make_fields(self) -> dict[str, Field]:
        observation = Field(self.obs_shape, str(self.observation_space.dtype))
        dtype = np.dtype(self._maybe_cast_dtype(self.action_space.dtype))
        return {
            "observation": observation,
            "next_observation": observation,
            "action": Field((self.action_dim,), dtype.name),
            "done": Field((1,)),
            "reward": Field((1,)),
        }

    def _make_replay(self, rule: Rule) -> None:
        capacity = self.buffer_size * self.n_envs
        self.replay = Buffer(
            self._fields,
            self.n_envs,
            capacity,
            rule,
            self._seed,
            tracked=self._tracked,
        )
        self.replay.ledger.leading_rows = 0  # a row is a whole transition
        self._is_first = np.ones(self.n_envs, bool)
        self._arrived: np.ndarray | None = None
        """The last `next_observation` of every environment."""

    def size(self) -> int:
        """Steps stored of each environment."""
        return len(self.replay) // self.n_envs

    def reset(self) -> None:
        """Begin anew, with nothing stored, under the rule in force."""
        super().reset()
        self._make_replay(self.replay.rule)

    def add(
        self,
        obs: np.ndarray,
        next_obs: np.ndarray,
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """Store one transition of every environment."""
        done = np.asarray(done, bool)
        terminal = done
        if self.handle_timeout_termination:
            terminal = done & ~np.array([bool(i.get(TIME_LIMIT)) for i in infos], bool)
        step = {
            "observation": obs,
            "next_observation": next_obs,
            "action": action,
            "done": terminal,
            "reward": reward,
        }
        rows = self._rows(step)
        is_first = self._is_first | self._is_reset(rows["observation"])
        self.replay.add(is_first, _regime(infos), **rows)
        for world in np.flatnonzero(done).tolist():
            self.replay.end_episode(world)  # now, under the regime it ended in
        self._is_first, self._arrived = done.copy(), rows["next_observation"].copy()
        self.pos = (self.pos + 1) % self.buffer_size
        self.full = self.full or self.pos == 0

    def _is_reset(self, observation: np.ndarray) -> np.ndarray:
        """(n_envs,) whether an environment is elsewhere than its last step led to."""
        if self._arrived is None:
            return np.zeros(self.n_envs, bool)
        differs = observation != self._arrived
        return differs.reshape(self.n_envs, -1).any(axis=1)

    def _rows(self, step: dict[str, Any]) -> dict[str, np.ndarray]:
        """The step in the shapes and types that are stored."""
        return {
            name: np.asarray(step[name], dtype).reshape(self.n_envs, *shape)
            for name, (shape, dtype) in self._fields.items()
        }

    def sample(
        self, batch_size: int, env: VecNormalize | None = None
    ) -> ReplayBufferSamples:
        """Sample transitions by the rule, normalised as `env` does it."""
        sampled = self.replay.sample(batch_size, self.n_steps)
        rewards = self._normalize_reward(sampled["reward"], env)
        returns, last = self._returns(rewards, sampled[IS_FIRST])
        discounts = None
        if self.n_steps > 1:
            n_summed = (last[:, None] + 1).astype(np.float32)
            discounts = self.to_torch(self.gamma**n_summed)
        rows = np.arange(batch_size)
        data = (
            self._normalize_obs(sampled["observation"][:, 0], env),
            sampled["action"][:, 0],
            self._normalize_obs(sampled["next_observation"][rows, last], env),
            sampled["done"][rows, last],
            returns,
        )
        return ReplayBufferSamples(*map(self.to_torch, data), discounts)

    def _returns(
        self, rewards: np.ndarray, is_first: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Discounted sums (B, 1) until an episode ends, and the last step of each."""
        begun = np.cumsum(is_first[:, 1:], axis=1) > 0  # another episode, or a seam
        last = self.n_steps - 1 - begun.sum(axis=1)
        steps = np.arange(self.n_steps)
        weights = self.gamma**steps * (steps <= last[:, None])
        return (rewards * weights[..., None]).sum(axis=1, dtype=np.float32), last

    def __getstate__(self) -> dict[str, Any]:
        """All but the buffer, which goes as the bytes of its own file."""
        return {**self.__dict__, "replay": pack(self.replay)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_replay(Rule.parse("passive"))  # the saved one comes with the bytes
        self._is_first, self._arrived = state["_is_first"], state.get("_arrived")
        unpack(self.replay, state["replay"])


def _check(observation_space: spaces.Space, optimize_memory_usage: bool) -> None:
    """Raise for what this buffer cannot do."""
    if isinstance(observation_space, spaces.Dict | spaces.Tuple):
        raise FallowError(
            f"the observation space is a {type(observation_space).__name__} and one "
            "array is stored; flatten it with gymnasium.wrappers.FlattenObservation"
        )
    if optimize_memory_usage:
        raise FallowError(
            "optimize_memory_usage is True; rules sample single transitions, which are "
            "stored with their next observation: leave it False"
        )


def _regime(infos: list[dict[str, Any]]) -> int | None:
    """The regime in force, where environments report it."""
    given = [info["regime"] for info in infos if info.get("regime") is not None]
    regimes = {requests.regime_of(regime) for regime in given}
    if len(regimes) > 1:
        raise FallowError(
            f"environments are in the regimes {sorted(regimes)} at once and a buffer "
            "knows one; give them the same condition, or take regime out of info"
        )
    return regimes.pop() if regimes else None
