"""What changes in the body: the numbers of its MuJoCo model that a shift rewrites.

A shift maps the original numbers and a level to new ones and never changes a model
itself, so the same shift serves many worlds at once and a single Gymnasium model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fallow.core import options
from fallow.core.errors import FallowError
from fallow.dynamics.schedules import Range

Fields = dict[str, np.ndarray]
"""MuJoCo model fields by name."""

PLAIN_GAIN = 0  # mjGAIN_FIXED: force = gain * control + bias
PLAIN_BIAS = (0, 1)  # mjBIAS_NONE, mjBIAS_AFFINE
JOINT_DRIVE = (0, 1)  # mjTRN_JOINT, mjTRN_JOINTINPARENT

MAX_FRICTION = 2.0
MIN_FRICTION = 0.01
"""Bounds of the Real-World RL suite for a walker's contact friction."""


@dataclass(frozen=True)
class Original:
    """The numbers of a compiled model before anything changed."""

    gain: np.ndarray  # (nu, n) actuator_gainprm
    bias: np.ndarray  # (nu, n) actuator_biasprm
    scalable: np.ndarray  # (nu,) whether the actuator's force scales with its gain
    damping: np.ndarray  # (nv,)
    actuated: np.ndarray  # velocities that an actuator drives, each once
    friction: np.ndarray  # (ngeom, 3) geom_friction
    pair_friction: np.ndarray  # (npair, 5) of contacts that have their own

    @classmethod
    def of(cls, model: Any) -> "Original":
        """Copy what shifts need from an `MjModel`."""
        drives_joint = np.isin(model.actuator_trntype, JOINT_DRIVE)
        joints = np.unique(model.actuator_trnid[drives_joint, 0])
        return cls(
            gain=model.actuator_gainprm.copy(),
            bias=model.actuator_biasprm.copy(),
            scalable=(model.actuator_gaintype == PLAIN_GAIN)
            & np.isin(model.actuator_biastype, PLAIN_BIAS),
            damping=model.dof_damping.copy(),
            actuated=model.jnt_dofadr[joints].copy(),
            friction=model.geom_friction.copy(),
            pair_friction=model.pair_friction.copy(),
        )


class Shift:
    """A change of the body. `level` is its one number, where it has one."""

    def levels(self, original: Original) -> Any:
        """The level of the shifted regime, checked against the body."""
        raise NotImplementedError

    def gains(self, n_actuators: int) -> np.ndarray | None:
        """(n_actuators,) the shifted strength of each; None: it is not strength."""
        return None

    def range(self, original: Original) -> Range:
        """Where the level starts and how far it goes when it drifts."""
        raise NotImplementedError

    def fields(self, original: Original, level: Any) -> Fields:
        """The model fields at a level; a level of None gives the original ones."""
        raise NotImplementedError


def _scaled(original: Original, gain: np.ndarray) -> Fields:
    """Actuator forces times `gain` (nu,), for motors and for servos alike."""
    touched = gain != 1
    if (touched & ~original.scalable).any():
        actuator = int(np.flatnonzero(touched & ~original.scalable)[0])
        raise FallowError(
            f"actuator {actuator} is neither a motor nor a servo, so its strength "
            "cannot be scaled; choose other actuators"
        )
    fields = {"actuator_gainprm": original.gain * gain[:, None]}
    if original.bias.any():
        fields["actuator_biasprm"] = original.bias * gain[:, None]
    return fields


@dataclass(frozen=True)
class Gain(Shift):
    """Actuator strength times `g`: one factor for all, or one for each actuator."""

    g: float | tuple[float, ...] = 0.5

    def __post_init__(self) -> None:
        for factor in self.g if isinstance(self.g, tuple) else (self.g,):
            options.check_number("gain", "g", factor, at_least=0)

    def levels(self, original: Original) -> np.ndarray:
        return self.gains(len(original.gain))

    def gains(self, n_actuators: int) -> np.ndarray:
        """(n_actuators,) the shifted strength of each, relative to the original."""
        if isinstance(self.g, tuple) and len(self.g) != n_actuators:
            raise FallowError(
                f"gain: g has {len(self.g)} factors and the body {n_actuators} "
                "actuators; give one factor, or one for each actuator"
            )
        return np.broadcast_to(np.asarray(self.g, dtype=float), n_actuators)

    def range(self, original: Original) -> Range:
        return Range(start=1.0, min=0.3, max=1.0, std=0.02)

    def fields(self, original: Original, level: Any) -> Fields:
        n_actuators = len(original.gain)
        gain = np.broadcast_to(1.0 if level is None else level, n_actuators)
        if (gain < 0).any():
            raise FallowError(f"gain: a level of {gain.min():g}; it must be 0 or more")
        return _scaled(original, gain)


@dataclass(frozen=True)
class Damage(Shift):
    """Actuators that give no force at all; their joints are limp, not locked."""

    actuator: int | tuple[int, ...] = 0
    """Which ones, from 0: Walker's right hip, Cheetah's back thigh."""

    def __post_init__(self) -> None:
        for index in self._indices():
            options.check_int("damage", "actuator", index, at_least=0)

    def _indices(self) -> tuple[int, ...]:
        return self.actuator if isinstance(self.actuator, tuple) else (self.actuator,)

    def levels(self, original: Original) -> np.ndarray:
        return self.gains(len(original.gain))

    def gains(self, n_actuators: int) -> np.ndarray:
        """(n_actuators,) the shifted strength of each: 0 where it is dead, else 1."""
        gain = np.ones(n_actuators)
        for index in self._indices():
            if index >= len(gain):
                raise FallowError(
                    f"damage: actuator is {index}; the body has actuators "
                    f"0 to {len(gain) - 1}"
                )
            gain[index] = 0.0
        return gain

    def range(self, original: Original) -> Range:
        raise FallowError(
            "damage does not drift: choose schedule=permanent or schedule=recurring, "
            "or let the gain drift"
        )

    def fields(self, original: Original, level: Any) -> Fields:
        gain = np.ones(len(original.gain)) if level is None else level
        return _scaled(original, gain)


@dataclass(frozen=True)
class Reversal(Shift):
    """All actuators push the other way, as after wires were swapped in a repair."""

    def levels(self, original: Original) -> np.ndarray:
        return self.gains(len(original.gain))

    def gains(self, n_actuators: int) -> np.ndarray:
        """(n_actuators,) of -1: the same strength, the other direction."""
        return np.full(n_actuators, -1.0)

    def range(self, original: Original) -> Range:
        raise FallowError(
            "reversal does not drift: choose schedule=permanent or schedule=recurring, "
            "or let the gain drift"
        )

    def fields(self, original: Original, level: Any) -> Fields:
        gain = np.ones(len(original.gain)) if level is None else level
        return _scaled(original, gain)


def _required(shift: str, level: float | None) -> float:
    if level is None:
        raise FallowError(
            f"{shift}: a switch needs the level to switch to, "
            f"e.g. {shift}:schedule=permanent,level=0.5"
        )
    return level


@dataclass(frozen=True)
class Damping(Shift):
    """Damping of the actuated joints.

    The level is the damping itself where all those joints have the same, as on a
    walker, and a factor on each joint's own where they differ, as on a cheetah.
    """

    level: float | None = None

    def __post_init__(self) -> None:
        if self.level is not None:
            options.check_number("damping", "level", self.level, at_least=0)

    def levels(self, original: Original) -> float:
        return _required("damping", self.level)

    def range(self, original: Original) -> Range:
        """For a walker the Real-World RL suite's: from 0.1 to 10 in steps of 0.5."""
        joints = original.damping[original.actuated]
        if not _all_equal(joints):
            return Range(start=1.0, min=1.0, max=10.0, std=0.5)
        least = joints[0]
        return Range(start=least, min=least, max=100 * least, std=5 * least)

    def fields(self, original: Original, level: Any) -> Fields:
        damping = original.damping.copy()
        if level is not None:
            options.check_number("damping", "level", float(level), at_least=0)
            joints = damping[original.actuated]
            each = level if _all_equal(joints) else joints * level
            damping[original.actuated] = each
        return {"dof_damping": damping}


@dataclass(frozen=True)
class Friction(Shift):
    """Sliding friction of every geom and of every contact with a friction of its own.

    A contact takes the larger of its two geoms', so changing one side alone often
    changes nothing. Bodies without contacts (pendulum, cart-pole) do not feel it.
    """

    level: float | None = None

    def __post_init__(self) -> None:
        if self.level is not None:
            options.check_number("friction", "level", self.level, above=0)

    def levels(self, original: Original) -> float:
        return _required("friction", self.level)

    def range(self, original: Original) -> Range:
        """The suite's: from the body's own friction down to near ice."""
        start = float(original.friction[:, 0].max())
        return Range(start, min=MIN_FRICTION, max=max(MAX_FRICTION, start), std=0.05)

    def fields(self, original: Original, level: Any) -> Fields:
        geoms, pairs = original.friction.copy(), original.pair_friction.copy()
        if level is not None:
            options.check_number("friction", "level", float(level), above=0)
            geoms[:, 0] = pairs[:, :2] = level
        return {"geom_friction": geoms, "pair_friction": pairs}


def _all_equal(values: np.ndarray) -> bool:
    return len(values) > 0 and bool((values == values[0]).all())


def write(fields: Fields, targets: Mapping[str, np.ndarray], rows: Any = ...) -> None:
    """Put field values into arrays of the same names, at `rows` of a leading axis."""
    for name, values in fields.items():
        targets[name][rows] = values
