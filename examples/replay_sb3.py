"""Train Stable-Baselines3's SAC on a pendulum whose motor weakens, unannounced.

python examples/replay_sb3.py    # needs the extra `sb3`

The rule `adaptive` finds the change in the velocities and actions that are stored.
"""

import gymnasium
import numpy as np
from stable_baselines3 import SAC

from fallow.replay.adapters.sb3 import RuleReplayBuffer
from fallow.replay.labeler import Tracked


class WeakMotor(gymnasium.ActionWrapper):
    """Scales every action by a gain."""

    gain = 1.0

    def action(self, action: np.ndarray) -> np.ndarray:
        return self.gain * action


env = WeakMotor(gymnasium.make("Pendulum-v1"))
model = SAC(
    "MlpPolicy",
    env,
    learning_starts=3500,  # actions are random until then
    seed=0,
    device="cpu",
    policy_kwargs={"net_arch": [32, 32]},
    replay_buffer_class=RuleReplayBuffer,
    replay_buffer_kwargs={
        "rule": "adaptive",
        # a pendulum's observation is cos, sin and angular velocity; 0.05 s a step
        "tracked": Tracked("observation[2:3]", "action", control_step_s=0.05),
    },
)
replay = model.replay_buffer.replay
model.learn(3000)
env.gain = 0.3  # of its torque
model.learn(1000, reset_num_timesteps=False)

tracker = replay.tracker
first = int(np.argmax(tracker.labels() > 0))
print(f"{len(replay)} transitions stored, sampled by {replay.rule}")
print(
    f"regime {tracker.present} since episode {first}: gain {tracker.regime.gain[0]:.1f}"
)
