"""Made minari-mujoco.tar.xz: real data sets by Minari's own writer, not run by tests.

    pip install 'minari[hdf5,arrow,create]==0.5.4' mujoco==3.17.0 imageio pillow
    cd tests/data && python make_minari_mujoco.py

Ant-v5, HalfCheetah-v5 and Hopper-v5 (the last one in Arrow), twelve episodes of forty
random actions each; from the seventh episode on every actuator has half its gear.
"""

import os
import shutil
import tarfile
import tempfile
from pathlib import Path

import gymnasium as gym

N_EPISODES, N_STEPS = 12, 40
ENVIRONMENTS = {
    "Ant-v5": ("hdf5", {"terminate_when_unhealthy": False}),
    "HalfCheetah-v5": ("hdf5", {}),
    "Hopper-v5": ("arrow", {"terminate_when_unhealthy": False}),
}


def record(env_id: str, data_format: str, options: dict) -> None:
    """One data set, `<name>/test-v0`."""
    import minari

    env = minari.DataCollector(
        gym.make(env_id, max_episode_steps=N_STEPS, **options), data_format=data_format
    )
    env.action_space.seed(0)
    for episode in range(N_EPISODES):
        if episode == N_EPISODES // 2:
            env.unwrapped.model.actuator_gear[:] *= 0.5
        env.reset(seed=episode)
        truncated = False
        while not truncated:
            *_, truncated, _ = env.step(env.action_space.sample())
    env.create_dataset(f"{env_id.split('-')[0].lower()}/test-v0")
    env.close()


if __name__ == "__main__":
    folder = Path(tempfile.mkdtemp())
    os.environ["MINARI_DATASETS_PATH"] = str(folder)
    for env_id, (data_format, options) in ENVIRONMENTS.items():
        record(env_id, data_format, options)
    with tarfile.open("minari-mujoco.tar.xz", "w:xz") as archive:
        for path in sorted(folder.iterdir()):
            if path.is_dir():
                archive.add(path, path.name)
    shutil.rmtree(folder)
