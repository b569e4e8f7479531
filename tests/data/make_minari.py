"""Made minari-0.5.4.hdf5.gz: a real file by Minari's own writer, never run by tests.

    pip install 'minari[hdf5,create]==0.5.4' pillow
    cd tests/data && MINARI_DATASETS_PATH=$PWD python make_minari.py
    gzip -c joints/test-v0/data/main_data.hdf5 > minari-0.5.4.hdf5.gz

Three joints whose gain is 1 for ten episodes and 0.5 for ten more.
"""

import gymnasium as gym
import numpy as np

N_EPISODES, N_STEPS = 20, 20


class Joints(gym.Env):
    """Positions and velocities of three joints that are pushed."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (6,), np.float64)
    action_space = gym.spaces.Box(-1, 1, (3,), np.float32)
    n_resets = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        Joints.n_resets += 1
        self.t, self.q, self.v = 0, np.zeros(3), np.zeros(3)
        return np.concatenate([self.q, self.v]), {}

    def step(self, action):
        gain = 1.0 if Joints.n_resets <= N_EPISODES // 2 else 0.5
        noise = self.np_random.normal(0, 0.1, 3)
        self.v = 0.9 * self.v + gain * np.asarray(action, float) + noise
        self.q = self.q + 0.02 * self.v
        self.t += 1
        observation = np.concatenate([self.q, self.v])
        return observation, 0.0, False, self.t >= N_STEPS, {}


if __name__ == "__main__":
    import minari
    from make_minari import Joints as Registered

    gym.register("Joints-v0", entry_point="make_minari:Joints")
    env = minari.DataCollector(gym.make("Joints-v0"))
    env.action_space.seed(0)
    for episode in range(N_EPISODES):
        env.reset(seed=episode)
        truncated = False
        while not truncated:
            *_, truncated, _ = env.step(env.action_space.sample())
    assert Registered.n_resets == N_EPISODES
    env.create_dataset("joints/test-v0")
