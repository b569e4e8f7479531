"""Editing a running model equals compiling one that was written that way."""

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest

from fallow.core.errors import FallowError
from fallow.dynamics import TASKS, Worlds
from fallow.dynamics.conditions import Condition
from fallow.dynamics.simulator import compile_body
from fallow.dynamics.tasks import Body

N_FRAMES = 300
Edit = Callable[[Any], None]


def recompiled(body: Body, edit: Edit) -> mujoco.MjModel:
    """The body's model, compiled anew from a description with other numbers."""
    spec = mujoco.MjSpec.from_string(body.mjcf)
    edit(spec)
    model = spec.compile()
    if body.total_mass_kg is not None:
        mujoco.mj_setTotalmass(model, body.total_mass_kg)
        mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def reference(
    model: mujoco.MjModel, body: Body, start: np.ndarray, actions: np.ndarray
) -> np.ndarray:
    """Positions after each frame of plain MuJoCo in dm_control's order of stepping."""
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, start, mujoco.mjtState.mjSTATE_INTEGRATION)
    mujoco.mj_forward(model, data)
    positions = []
    for action in actions:
        data.ctrl[:] = action
        mujoco.mj_step2(model, data)
        mujoco.mj_step(model, data, body.n_substeps - 1)
        mujoco.mj_step1(model, data)
        positions.append(data.qpos.copy())
    return np.array(positions)


def set_gain(*gains: float) -> Edit:
    def edit(spec: Any) -> None:
        for index, actuator in enumerate(spec.actuators):
            actuator.gainprm[0] *= gains[index % len(gains)]

    return edit


def kill(*dead: int) -> Edit:
    return lambda spec: set_gain(
        *[float(index not in dead) for index in range(len(spec.actuators))]
    )(spec)


def set_damping(joints: list[str], value: float | None, factor: float = 1) -> Edit:
    def edit(spec: Any) -> None:
        for name in joints:
            damping = spec.joint(name).damping  # a polynomial; the linear term first
            damping[0] = damping[0] * factor if value is None else value

    return edit


def set_friction(value: float) -> Edit:
    def edit(spec: Any) -> None:
        for geom in spec.geoms:
            geom.friction[0] = value

    return edit


WALKER_LEGS = [f"{s}_{j}" for s in ("right", "left") for j in ("hip", "knee", "ankle")]
CHEETAH_LEGS = ["bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot"]
HOPPER_LEG = ["waist", "hip", "knee", "ankle"]

CASES = [
    ("walker-walk", "gain:g=0.3", set_gain(0.3)),
    ("walker-walk", "gain:g=1/0.5/0.2/1/2/0", set_gain(1, 0.5, 0.2, 1, 2, 0)),
    ("walker-walk", "damage", kill(0)),
    ("walker-walk", "damage:actuator=1", kill(1)),
    ("walker-walk", "damage:actuator=0/4", kill(0, 4)),
    ("walker-walk", "reversal", set_gain(-1)),
    ("pendulum-swingup", "reversal", set_gain(-1)),
    ("walker-walk", "damping:level=3.7", set_damping(WALKER_LEGS, 3.7)),
    ("walker-walk", "friction:level=0.05", set_friction(0.05)),
    ("cheetah-run", "gain:g=0.3", set_gain(0.3)),
    ("cheetah-run", "damage:actuator=1", kill(1)),
    ("cheetah-run", "damping:level=2.5", set_damping(CHEETAH_LEGS, None, 2.5)),
    ("cheetah-run", "friction:level=0.05", set_friction(0.05)),
    ("hopper-hop", "damping:level=1.5", set_damping(HOPPER_LEG, 1.5)),
    ("hopper-hop", "friction:level=0.05", set_friction(0.05)),
    ("pendulum-swingup", "damping:level=0.7", set_damping(["hinge"], 0.7)),
]


def permanent(text: str, shift_frame: int) -> str:
    extra = f"schedule=permanent,shift_frame={shift_frame}"
    return f"{text},{extra}" if ":" in text else f"{text}:{extra}"


@pytest.mark.parametrize(("task", "text", "edit"), CASES)
def test_shifted_from_the_start_equals_recompiled(
    task: str, text: str, edit: Edit, random: np.random.Generator
) -> None:
    worlds = Worlds(task, permanent(text, 0), action_repeat=1)
    model = recompiled(worlds.task.body, edit)
    actions = random.uniform(-1, 1, (N_FRAMES, worlds.n_actuators))
    expected = reference(model, worlds.task.body, worlds.start_state[0, 0], actions)
    for action, qpos in zip(actions, expected, strict=True):
        worlds.step(action[None, None])
        np.testing.assert_array_equal(worlds.snapshot()[1].qpos, qpos)


@pytest.mark.parametrize(("task", "text", "edit"), CASES)
def test_shifted_mid_episode_equals_recompiled_from_there(
    task: str, text: str, edit: Edit, random: np.random.Generator
) -> None:
    """Not one substep after the change still sees the old numbers."""
    shift_frame = 60
    worlds = Worlds(task, permanent(text, shift_frame), action_repeat=1)
    model = recompiled(worlds.task.body, edit)
    for _ in range(shift_frame):
        worlds.step(random.uniform(-1, 1, (1, 1, worlds.n_actuators)))
    data = worlds.snapshot()[1]
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION)
    start = np.empty(size)
    mujoco.mj_getState(model, data, start, mujoco.mjtState.mjSTATE_INTEGRATION)
    actions = random.uniform(-1, 1, (50, worlds.n_actuators))
    expected = _without_forward(model, worlds.task.body, start, actions)
    for action, qpos in zip(actions, expected, strict=True):
        worlds.step(action[None, None])
        np.testing.assert_array_equal(worlds.snapshot()[1].qpos, qpos)


def _without_forward(model, body: Body, start: np.ndarray, actions: np.ndarray):
    """As `reference`, keeping the warm start that the running simulation has."""
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, start, mujoco.mjtState.mjSTATE_INTEGRATION)
    positions = []
    for action in actions:
        data.ctrl[:] = action
        mujoco.mj_step(model, data, body.n_substeps)
        positions.append(data.qpos.copy())
    return np.array(positions)


def test_walker_friction_and_damping_equal_dm_control_compiled_that_way(
    random: np.random.Generator,
) -> None:
    """The Real-World RL suite edits dm_control's XML and builds it again."""
    walker = pytest.importorskip("dm_control.suite.walker")
    xml, assets = walker.get_model_and_assets()
    text = xml.decode() if isinstance(xml, bytes) else xml
    for condition, old, new in [
        ("damping:level=3.7", 'damping=".1"', 'damping="3.7"'),
        ("friction:level=0.05", 'friction=".7 .1 .1"', 'friction=".05 .1 .1"'),
    ]:
        assert old in text
        physics = walker.Physics.from_xml_string(text.replace(old, new), assets)
        task = walker.PlanarWalker(move_speed=1, random=5)
        from dm_control.rl import control

        env = control.Environment(physics, task, control_timestep=0.025)
        worlds = Worlds("walker-walk", permanent(condition, 0), 5, action_repeat=1)
        env.reset()
        for _ in range(N_FRAMES):
            action = random.uniform(-1, 1, 6)
            timestep = env.step(action)
            step = worlds.step(action[None, None])
            flat = np.concatenate([np.ravel(v) for v in timestep.observation.values()])
            np.testing.assert_allclose(step.observation[0, 0], flat, 0, 1e-9)
            assert step.reward[0, 0] == pytest.approx(timestep.reward, abs=1e-9)


def one_joint(actuator: str) -> mujoco.MjModel:
    body = '<body><joint name="j"/><geom size="0.1"/></body>'
    return mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody>{body}</worldbody><actuator>{actuator}</actuator></mujoco>"
    )


def test_a_servo_loses_force_and_stiffness_together() -> None:
    """A position servo at half gain pulls half as hard towards the same place."""
    model = one_joint('<position joint="j" kp="8"/>')
    fields = Condition.parse("gain:shift_frame=0").on(model).fields(1)
    assert fields["actuator_gainprm"][0, 0] == 4
    assert fields["actuator_biasprm"][0, 1] == -4


def test_a_muscle_is_refused_by_name() -> None:
    model = one_joint('<muscle joint="j" lengthrange="0 1"/>')
    with pytest.raises(FallowError, match="actuator 0 is neither a motor nor a servo"):
        Condition.parse("gain").on(model)


@pytest.mark.parametrize("task", TASKS)
def test_a_gain_of_one_is_no_change(task: str, random: np.random.Generator) -> None:
    one = Worlds(task, "gain:g=1.0,shift_frame=0", seeds=3)
    none = Worlds(task, "none", seeds=3)
    for _ in range(100):
        action = random.uniform(-1, 1, (1, 1, one.n_actuators))
        step, other = one.step(action), none.step(action)
        np.testing.assert_array_equal(step.observation, other.observation)
        np.testing.assert_array_equal(step.reward, other.reward)


def test_shifts_leave_the_original_numbers_alone() -> None:
    """However often a shift comes and goes, the original numbers return exactly."""
    model = compile_body(TASKS["walker-walk"].body)
    course = Condition.parse("recurring").on(model)
    for segment in (0, 2, 40):
        np.testing.assert_array_equal(
            course.fields(segment)["actuator_gainprm"], model.actuator_gainprm
        )
    for segment in (1, 3, 41):
        assert (course.fields(segment)["actuator_gainprm"][:, 0] == 0.5).all()
