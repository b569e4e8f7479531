"""A scripted gait for the walker: it walks without learning, close to falling.

Each leg swings for half a period while the other holds the torso up. The swing leg
reaches further the faster the body goes and the further it is ahead of the standing
foot. Its stiffnesses suit the original body, so a weaker one falls.
"""

from dataclasses import dataclass

import numpy as np

PERIOD_S = 0.52
THIGH_M, SHANK_M = 0.45, 0.5
GEAR_N_M = np.array([100.0, 50.0, 20.0])  # hip, knee, ankle at full action
N_JOINTS = 3

STAND = np.array([0.95 * np.cos(0.2) - 0.95, 0, 0, 0.2, -0.4, 0.2, 0.2, -0.4, 0.2])
"""Positions of a walker on both feet with slightly bent knees, from which it starts."""
START_NOISE_RAD = 0.02


@dataclass(frozen=True)
class Gait:
    """Constants of the gait, found by search on the original body."""

    reach_rad: float = 0.05
    """Forward angle of the swing thigh at rest."""
    reach_per_speed: float = 0.2
    """Added to it for each m/s forward."""
    reach_per_lead: float = 0.8
    """Added to it for each metre that the hips are ahead of the standing ankle."""
    fold_rad: float = 1.3
    """Bend of the knee in mid swing, beyond that of the standing leg."""
    bend_rad: float = 0.2
    """Bend of the standing leg's knee."""
    stiffness_n_m: tuple[float, float, float] = (150.0, 50.0, 15.0)
    """Hip, knee and ankle, for each radian."""
    damping_s: float = 0.065
    """Damping over stiffness, at every joint."""

    def __call__(self, observation: np.ndarray, time_s: float) -> np.ndarray:
        """Actions (…, 6) for walker observations (…, 24) at a time since the start."""
        legs = (*observation.shape[:-1], 2, N_JOINTS)
        pitch = np.arctan2(-observation[..., 1:14:2], observation[..., 0:14:2])
        torso, torso_rate = pitch[..., :1], -observation[..., 17:18]
        thigh, shank, foot = np.moveaxis(pitch[..., 1:].reshape(legs), -1, 0)
        rates = np.moveaxis(observation[..., 18:24].reshape(legs), -1, 0)
        hip_rate, knee_rate, ankle_rate = rates
        hip_n_m, knee_n_m, ankle_n_m = self.stiffness_n_m

        phase = (time_s / PERIOD_S + np.array([0.0, 0.5])) % 1.0  # right leg, left leg
        swings = phase < 0.5
        fold = self.fold_rad * np.maximum(np.sin(2 * np.pi * phase), 0.0)
        lead_m = -(THIGH_M * np.sin(thigh) + SHANK_M * np.sin(shank))
        reach = (
            self.reach_rad
            + self.reach_per_speed * observation[..., 16:17]
            + self.reach_per_lead * lead_m[..., ::-1]
        )
        error = reach + fold / 2 - thigh - self.damping_s * (hip_rate + torso_rate)
        pull = np.clip(hip_n_m * error, -GEAR_N_M[0], GEAR_N_M[0]) * swings
        hold = hip_n_m * (torso + self.damping_s * torso_rate)
        hip = np.where(swings, pull, hold - pull[..., ::-1])
        bend = thigh - shank - self.bend_rad - fold
        knee = knee_n_m * (bend - self.damping_s * knee_rate)
        ankle = ankle_n_m * (-foot - self.damping_s * ankle_rate)
        action = np.stack([hip, knee, ankle], axis=-1) / GEAR_N_M
        return np.clip(action, -1.0, 1.0).reshape(*observation.shape[:-1], 2 * N_JOINTS)
