"""Gymnasium: our tasks as environments, and a shift for any MuJoCo environment.

    import gymnasium
    from fallow.dynamics.gym import ShiftDynamics  # this registers our tasks too

    env = gymnasium.make("fallow/WalkerWalk-v0", condition="gain:shift_frame=10000")
    env = ShiftDynamics(gymnasium.make("HalfCheetah-v5"), "recurring")

The true regime is in `info["regime"]`, the level of a drifting condition in
`info["level"]`; neither is in the observation. Resets do not change the clock.
"""

from typing import Any, SupportsFloat

import gymnasium
import numpy as np

from fallow.core import options as checks
from fallow.core.errors import FallowError
from fallow.dynamics import simulator
from fallow.dynamics.conditions import Condition, Course
from fallow.dynamics.schedules import Drift
from fallow.dynamics.shifts import Original, write
from fallow.dynamics.tasks import ACTION_REPEAT, EPISODE_FRAMES, TASKS
from fallow.dynamics.worlds import Worlds

NAMESPACE = "fallow"
ORIGINAL = "_fallow_original"
"""Attribute of an environment: its model, and that model's original numbers."""


def environment_id(task: str) -> str:
    """`walker-walk` is `fallow/WalkerWalk-v0`."""
    name = "".join(word.capitalize() for word in task.split("-"))
    return f"{NAMESPACE}/{name}-v0"


def register() -> None:
    """Register every task with Gymnasium; importing this module does it."""
    for task in TASKS:
        if environment_id(task) not in gymnasium.registry:
            gymnasium.register(
                environment_id(task),
                entry_point="fallow.dynamics.gym:TaskEnv",
                kwargs={"task": task},
            )


class TaskEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """One world of a task under a condition.

    Args:
        task: its name.
        condition: what changes and when, e.g. `gain:g=0.7`.
        action_repeat: frames for which one action is held.
        n_worlds: how many such environments one agent steps together, as in a vector
            environment; its clock counts the frames of all of them.
        schedule_seed: seed of a drifting condition.
        render_mode: None or `rgb_array`.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012

    def __init__(
        self,
        task: str,
        condition: str | Condition = "none",
        action_repeat: int = ACTION_REPEAT,
        n_worlds: int = 1,
        schedule_seed: int = 0,
        render_mode: str | None = None,
    ) -> None:
        self.worlds = Worlds(
            task,
            condition,
            schedule_seeds=[schedule_seed],
            action_repeat=action_repeat,
            frames_per_step=n_worlds * action_repeat,
            n_threads=1,
        )
        self._next_is_begun = False
        self.render_mode = render_mode
        self._renderer: Any = None
        n_columns = len(self.worlds.task.body.columns)
        self.observation_space = gymnasium.spaces.Box(
            -np.inf, np.inf, (n_columns,), np.float64
        )
        self.action_space = gymnasium.spaces.Box(-1, 1, (self.worlds.n_actuators,))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode; a seed fixes its start and those after it."""
        super().reset(seed=seed)
        if seed is not None or not self._next_is_begun:
            self.worlds.reset(seed)
        self._next_is_begun = False
        return self.worlds.observation[0, 0], self.worlds.truth()

    def step(
        self, action: np.ndarray
    ) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Hold an action for one transition; ends by truncation, never termination."""
        truth = self.worlds.truth()
        step = self.worlds.step(np.asarray(action)[None, None])
        truncated = bool(step.truncated[0, 0])
        self._next_is_begun = truncated  # the worlds begin the next episode at once
        reward = float(step.reward[0, 0])
        return step.observation[0, 0], reward, False, truncated, truth

    def render(self) -> np.ndarray | None:
        """The world as an RGB image; needs OpenGL, e.g. MUJOCO_GL=egl or osmesa."""
        if self.render_mode is None:
            return None
        mujoco = simulator.load()
        model, data = self.worlds.snapshot()
        mujoco.mj_forward(model, data)
        if self._renderer is None:
            self._renderer = mujoco.Renderer(model, 240, 320)
        self._renderer.update_scene(data, camera="side")
        return self._renderer.render()

    def __getstate__(self) -> dict[str, Any]:
        """All but the renderer, which a copy makes for itself."""
        return vars(self) | {"_renderer": None}

    def close(self) -> None:
        """Free the renderer."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None


class ShiftDynamics(
    gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs
):
    """Changes the dynamics of any MuJoCo-based Gymnasium environment on a schedule.

    Args:
        env: an environment whose `unwrapped.model` is a MuJoCo model.
        condition: what changes and when, e.g. `gain:g=0.7,shift_frame=10000`; one
            `step` of the environment is one frame.
        n_worlds: how many such environments one agent steps together, as in a vector
            environment; its clock counts the frames of all of them.
        schedule_seed: seed of a drifting condition; its level changes at resets only,
            once in `max_episode_steps` times `n_worlds` frames.

    Raises:
        FallowError: no such environment or condition, or a number that does not fit.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        condition: str | Condition,
        n_worlds: int = 1,
        schedule_seed: int = 0,
    ) -> None:
        if not isinstance(env, gymnasium.Env):
            raise FallowError(
                f"{checks.shown(env)} is no single environment; wrap what "
                "gymnasium.make gives, and for a vector pass wrappers=[…] to make_vec"
            )
        owner = "ShiftDynamics"
        n_worlds = checks.integer(owner, "n_worlds", n_worlds, at_least=1)
        schedule_seed = checks.integer(owner, "schedule_seed", schedule_seed, 0)
        gymnasium.utils.RecordConstructorArgs.__init__(
            self,
            condition=str(condition),
            n_worlds=n_worlds,
            schedule_seed=schedule_seed,
        )
        super().__init__(env)
        _refuse_stacked(env)
        self._frames_per_step = n_worlds
        episode_steps = getattr(env.spec, "max_episode_steps", None) or EPISODE_FRAMES
        self._course = Course(
            Condition.parse(condition),
            _original_of(env),
            schedule_seed,
            episode_frames=n_worlds * episode_steps,
        )
        self._segment = 0
        self._apply(0)
        self.clock_frames = 0

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Shift the copied environment, which Gymnasium makes anew, as it was."""
        self.__dict__.update(state)
        self._apply(self._segment)

    @property
    def clock_frames(self) -> int:
        """The agent's clock in frames; set it to resume from a checkpoint."""
        return self._clock_frames

    @clock_frames.setter
    def clock_frames(self, frames: int) -> None:
        if frames < 0:
            raise FallowError(f"a clock of {frames} frames; it must be 0 or more")
        self._clock_frames = int(frames)
        if not self._is_latched and self._due != self._segment:
            self._apply(self._due)

    @property
    def _due(self) -> int:
        """The segment of the clock; a level that is sampled at resets waits for one."""
        return self._course.schedule.segment(self._clock_frames)

    @property
    def _is_latched(self) -> bool:
        schedule = self._course.condition.schedule
        return isinstance(schedule, Drift) and schedule.draw_frames is None

    def _apply(self, segment: int) -> None:
        """Rewrite the model; Gymnasium's next step recomputes everything from it."""
        self._segment = segment
        model, fields = _model_of(self.env), self._course.fields(segment)
        write(fields, {name: getattr(model, name) for name in fields})

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode under the dynamics now in force; the clock stays.

        Args:
            seed: of the environment.
            options: of the environment.

        Returns:
            The first observation; the environment's info, and the regime now in force.
        """
        self._apply(self._due)  # also to a model that was loaded anew
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, info | self._course.truth(self._segment)

    def step(
        self, action: Any
    ) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """One frame of the environment under the dynamics in force.

        Args:
            action: of the environment.

        Returns:
            Observation, reward, terminated, truncated; the environment's info, and the
            regime under which the frame was simulated.
        """
        truth = self._course.truth(self._segment)
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.clock_frames = self._clock_frames + self._frames_per_step
        return observation, reward, terminated, truncated, info | truth


def _refuse_stacked(env: gymnasium.Env[Any, Any]) -> None:
    """Raise if another wrapper below shifts the same model: they undo each other."""
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, ShiftDynamics):
            raise FallowError(
                f"this environment is shifted by '{env._course.condition}' already, "
                "and a second shift would undo the first; wrap env.env instead, with "
                "one condition"
            )
        env = env.env


def _original_of(env: gymnasium.Env[Any, Any]) -> Original:
    """The model's numbers before any wrapper of this environment changed them."""
    model, base = _model_of(env), env.unwrapped
    found = getattr(base, ORIGINAL, None)
    if found is None or found[0] is not model:
        found = (model, Original.of(model))
        setattr(base, ORIGINAL, found)
    original: Original = found[1]
    return original


def _model_of(env: gymnasium.Env[Any, Any]) -> Any:
    if isinstance(env.unwrapped, TaskEnv):
        raise FallowError(
            "this environment is Fallow's own: pass condition=… to gymnasium.make "
            "instead of wrapping it"
        )
    model = getattr(env.unwrapped, "model", None)
    if not isinstance(model, simulator.load().MjModel):
        raise FallowError(
            f"{env.unwrapped} has no MuJoCo model at unwrapped.model, so its dynamics "
            "cannot be changed; wrap a MuJoCo environment such as HalfCheetah-v5 or "
            "InvertedPendulum-v5"
        )
    return model


register()
