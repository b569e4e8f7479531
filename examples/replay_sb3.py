"""Train Stable-Baselines3's SAC on a pendulum that gets heavier, with a rule.

python examples/replay_sb3.py
"""

import gymnasium
from stable_baselines3 import SAC

from fallow.replay.adapters.sb3 import RuleReplayBuffer

env = gymnasium.make("Pendulum-v1")
model = SAC(
    "MlpPolicy",
    env,
    learning_starts=100,
    seed=0,
    device="cpu",
    policy_kwargs={"net_arch": [32, 32]},
    replay_buffer_class=RuleReplayBuffer,
    replay_buffer_kwargs={"rule": "recency:window_transitions=200"},
)
replay = model.replay_buffer.replay
replay.set_present_regime(0)
model.learn(400)

env.unwrapped.m = 2.0  # kg, twice the mass
replay.set_present_regime(1)
replay.sampler.record.clear()  # count samples from here on
model.learn(400, reset_num_timesteps=False)

sampled = replay.sampled()
print(f"{len(replay)} transitions stored, sampled by {replay.rule}")
print(
    f"{sampled.n_steps:.0f} samples since the change, {sampled.stale_share:.0%} stale"
)
