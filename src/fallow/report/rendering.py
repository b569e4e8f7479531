"""Renders bodies offscreen with MuJoCo, through EGL or OSMesa, whichever works.

A process can use only one of them, and a broken driver can end it, so all rendering is
done in a separate process. `MUJOCO_GL` chooses, as usual with MuJoCo.
"""

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fallow.core.errors import FallowError
from fallow.dynamics import Worlds, simulator
from fallow.logs.history import History, HistoryWriter, read_history
from fallow.logs.resimulate import resimulate

BACKENDS = ("egl", "osmesa")
SWITCHED_OFF = ("disable", "disabled", "off", "false", "0")
"""Values of MUJOCO_GL with which MuJoCo does not render."""
TRIAL_S, RENDER_S = 60, 600
"""After so long a driver that hangs counts as none."""
TRIAL = """
from fallow.report import rendering
from fallow.dynamics import Worlds
view = rendering.FollowingCamera(rendering.context({backend!r}, 64, 64), 32, 32)
assert view.picture(Worlds("pendulum-swingup")).any()
"""
WORK = "import sys; from fallow.report import rendering; rendering.work(sys.argv[1])"
JOB = "job.json"
BODY_RGBA, EMISSION = (0.30, 0.53, 0.74, 1.0), 0.45
FLOOR_RGBA = (138, 145, 153, 70)
"""Plain and half transparent, for light pages and dark ones."""
FINER = 2
"""Drawn so many times larger each way and averaged, which is quicker than samples."""
DISTANCE, ELEVATION_DEG, AZIMUTH_DEG = 1.5, -6.0, 90.0
"""Of the camera, in extents of the body; from the side."""
LOOK_DOWN = 0.8
"""How high the camera looks, relative to the body's middle in the first picture."""
NO_RENDERER = (
    "No picture can be rendered here: MuJoCo finds neither EGL nor OSMesa, or "
    "MUJOCO_GL switches it off. Install one (on Debian: apt install libegl1 "
    "libgl1-mesa-dri, or libosmesa6) and make the report again."
)


@functools.cache
def backend() -> str | None:
    """The way to render here, or None; the first call tries for some seconds."""
    wanted = os.environ.get("MUJOCO_GL", "").lower().strip()
    if wanted in SWITCHED_OFF:
        return None
    for name in (wanted,) if wanted in BACKENDS else BACKENDS:
        trial = [sys.executable, "-c", TRIAL.format(backend=name)]
        try:
            done = subprocess.run(trial, capture_output=True, timeout=TRIAL_S)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return name
    return None


def context(name: str, width: int, height: int) -> Any:
    """A current OpenGL context of one kind, width and height in pixels."""
    simulator.load()
    if name == "egl":
        from mujoco.egl import GLContext
    else:
        from mujoco.osmesa import GLContext
    made = GLContext(width, height)
    made.make_current()
    return made


class FollowingCamera:
    """A camera beside a body that follows it; pictures have no background."""

    def __init__(self, context: Any, width: int, height: int) -> None:
        self._mujoco = simulator.load()
        self._context, self._size = context, (FINER * height, FINER * width)
        self._scene: Any = None
        self._look_at_m = 0.0

    def picture(self, worlds: Worlds) -> np.ndarray:
        """(height, width, 4) the only world of these, as it is now; RGB and alpha."""
        mujoco = self._mujoco
        model, data = worlds.snapshot()
        model.geom_size[model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE, :2] = (
            0  # endless
        )
        if self._scene is None:
            self._dress(model)
            self._look_at_m = LOOK_DOWN * data.subtree_com[0][2]
        camera, options = mujoco.MjvCamera(), mujoco.MjvOption()
        camera.azimuth, camera.elevation = AZIMUTH_DEG, ELEVATION_DEG
        camera.distance = DISTANCE * model.stat.extent
        camera.lookat[:] = (data.subtree_com[0][0], 0, self._look_at_m)
        every = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(model, data, options, None, camera, every, self._scene)
        floors = [self._paint(self._scene.geoms[i]) for i in range(self._scene.ngeom)]
        shown, number = self._read(False), self._numbers()
        alpha = np.where(number > 0, 255, 0).astype(np.uint8)
        picture = np.dstack([shown, alpha])
        picture[np.isin(number, [i + 1 for i in np.flatnonzero(floors)])] = FLOOR_RGBA
        return _averaged(picture)

    def _paint(self, geom: Any) -> bool:
        """Colour a geom; returns whether it is a floor."""
        geom.rgba[:], geom.emission = BODY_RGBA, EMISSION
        return bool(geom.type == self._mujoco.mjtGeom.mjGEOM_PLANE)

    def _dress(self, model: Any) -> None:
        mujoco = self._mujoco
        model.vis.global_.offheight, model.vis.global_.offwidth = self._size
        model.vis.quality.offsamples = 0
        self._scene = mujoco.MjvScene(model, maxgeom=1000)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        self._gl = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._gl)

    def _read(self, segments: bool) -> np.ndarray:
        mujoco, (height, width) = self._mujoco, self._size
        for flag in ("mjRND_SEGMENT", "mjRND_IDCOLOR"):
            self._scene.flags[getattr(mujoco.mjtRndFlag, flag)] = int(segments)
        place = mujoco.MjrRect(0, 0, width, height)
        mujoco.mjr_render(place, self._scene, self._gl)
        pixels = np.empty((height, width, 3), np.uint8)
        mujoco.mjr_readPixels(pixels, None, place, self._gl)
        return pixels[::-1]

    def _numbers(self) -> np.ndarray:
        """(height, width) one more than the place in the scene of what is there."""
        red, green, blue = np.moveaxis(self._read(True).astype(np.int64), 2, 0)
        return red + 256 * green + 65536 * blue


def _averaged(fine: np.ndarray) -> np.ndarray:
    """Means of blocks of pixels; what is seen through counts less for the colour."""
    height, width = (side // FINER for side in fine.shape[:2])
    blocks = fine.reshape(height, FINER, width, FINER, 4).astype(np.float32)
    alpha = blocks[..., 3:]
    total = alpha.sum(axis=(1, 3))
    colour = (blocks[..., :3] * alpha).sum(axis=(1, 3)) / np.maximum(total, 1)
    mean = np.concatenate([colour, total / FINER**2], axis=-1)
    return np.rint(mean).astype(np.uint8)


class Shot(NamedTuple):
    """An episode of a history, and the rows of it to show, in their order."""

    history: History
    episode: int
    rows: Sequence[int]


def films(shots: Sequence[Shot], width: int, height: int) -> list[np.ndarray]:
    """Pictures (rows, height, width, 4) of each shot, simulated again.

    Raises:
        FallowError: nothing can be rendered here, or the driver fails.
    """
    name = backend()
    if name is None:
        raise FallowError(NO_RENDERER)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for index, shot in enumerate(shots):
            with HistoryWriter(_history(folder, index), shot.history.header) as writer:
                writer.add(shot.history.episodes[shot.episode])
        rows = [list(shot.rows) for shot in shots]
        job = {"backend": name, "rows": rows, "size": [width, height]}
        (folder / JOB).write_text(json.dumps(job))
        command = [sys.executable, "-c", WORK, place]
        try:
            done = subprocess.run(command, capture_output=True, timeout=RENDER_S)
        except subprocess.TimeoutExpired:
            raise FallowError(f"{name} did not render within {RENDER_S} s") from None
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise FallowError(
                f"{name} cannot render: {lines[-1] if lines else 'it died'}"
            )
        return [np.load(_pictures(folder, index)) for index in range(len(shots))]


def work(place: str) -> None:
    """The work of the rendering process: all shots of a job."""
    folder = Path(place)
    job = json.loads((folder / JOB).read_text())
    width, height = job["size"]
    opened = context(job["backend"], FINER * width, FINER * height)
    for index, rows in enumerate(job["rows"]):
        shot = Shot(read_history(_history(folder, index)), 0, rows)
        seen = list(_film(FollowingCamera(opened, width, height), shot))
        np.save(_pictures(folder, index), np.stack(seen))


def _film(view: FollowingCamera, shot: Shot) -> Iterator[np.ndarray]:
    wanted = list(shot.rows)
    for row, worlds in enumerate(resimulate(shot.history, shot.episode)):
        if wanted and row == wanted[0]:
            wanted.pop(0)
            yield view.picture(worlds)
        if not wanted:
            return


def _history(folder: Path, index: int) -> Path:
    return folder / f"{index}.fallow"


def _pictures(folder: Path, index: int) -> Path:
    return folder / f"{index}.npy"
