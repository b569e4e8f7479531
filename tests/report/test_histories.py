"""What a report makes of histories: sampled ages, responses, strips and films."""

import dataclasses
import io
import shutil
from pathlib import Path

import numpy as np
import pytest
import small_study
from PIL import Image

from fallow.core.errors import FallowError
from fallow.core.records import Episode
from fallow.logs import History, read_history
from fallow.logs.history import Header
from fallow.report import history_sections, rendering
from fallow.report.figures import filmstrips
from fallow.report.figures.ages import age_figure
from fallow.report.sampled_ages import sampled_ages
from fallow.study.results import read_study_results

NO_RENDERER = "no EGL and no OSMesa here, so nothing can be rendered"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_study.write(tmp_path_factory.mktemp("studies") / "small", seeds=(0,))


# -------------------------------------------------------------------- ages


N_WORLDS, N_STEPS, FRAMES_PER_STEP = 2, 99, 4


def history_of(regimes: list[int], clock: int = 0) -> History:
    """Episodes of two worlds of 100 stored rows each, one regime an episode."""
    header = Header(("v",), ("a",), (0,), 0.02, frames_per_step=FRAMES_PER_STEP)
    episodes = [
        Episode(
            observation=np.zeros((N_STEPS + 1, 1), np.float32),
            action=np.zeros((N_STEPS, 1), np.float32),
            reward=np.zeros(N_STEPS, np.float32),
            regime=np.full(N_STEPS, regime, np.int16),
            world=world,
            start_frame=clock + index * N_STEPS * FRAMES_PER_STEP,
        )
        for index, regime in enumerate(regimes)
        for world in range(N_WORLDS)
    ]
    return History(header, tuple(episodes))


TRUNK = history_of([0] * 10)
CLOCK = 10 * N_STEPS * FRAMES_PER_STEP
BRANCH = history_of([0, 0, 1, 1, 1, 0], CLOCK)


def at(n_episodes: int) -> int:
    """The frame at the end of so many episodes of the branch."""
    return CLOCK + n_episodes * N_STEPS * FRAMES_PER_STEP


@pytest.mark.parametrize(
    ("rule", "n_episodes", "stale"),
    [
        ("passive", 2, 0.0),
        ("passive", 3, 12 / 13),  # 12 of 13 finished ones, none running
        ("passive", 5, 12 / 15),
        ("recency:window_transitions=800", 3, 3 / 4),  # 4 episodes of 2 worlds
        ("recency:window_transitions=800", 5, 1 / 4),
        ("recency:window_transitions=800", 6, 3 / 4),
        ("reset", 5, 0.0),
        ("reset", 6, 3 / 4),  # of four since the first change, three are stale again
        ("matched", 5, 0.0),
    ],
)
def test_stale_shares_worked_out_again(
    rule: str, n_episodes: int, stale: float
) -> None:
    found = sampled_ages(TRUNK, BRANCH, rule, [at(n_episodes)])
    assert found.stale_share == pytest.approx(stale, abs=0.002)
    assert found.share.sum() == pytest.approx(1)


def test_ages_of_passive_are_uniform_and_those_of_recency_end_at_its_window() -> None:
    passive = sampled_ages(TRUNK, BRANCH, "passive", [at(6)])
    n_steps = 16 * (N_STEPS + 1)  # of the agent; ages 0 to 1599
    edges = passive.age_frames / FRAMES_PER_STEP
    expected = np.diff(np.minimum(edges, n_steps)) / n_steps
    np.testing.assert_allclose(passive.share, expected)
    recency = sampled_ages(TRUNK, BRANCH, "recency:window_transitions=256", [at(6)])
    assert recency.age_frames[-1] / FRAMES_PER_STEP == 128  # a window of two worlds
    np.testing.assert_allclose(recency.share[-1], 0.5)
    figure = age_figure({"recency": recency, "passive": passive})
    (axes,) = figure.axes
    assert [t.get_text() for t in figure.legends[0].get_texts()] == [
        "Passive",
        "Recency",
    ]
    assert axes.get_xscale() == "log" and "age" in axes.get_xlabel()
    np.testing.assert_allclose(axes.get_lines()[0].get_ydata().sum(), 100)


def test_a_run_that_ended_between_two_worlds_counts_up_to_there() -> None:
    cut = History(BRANCH.header, BRANCH.episodes[:-1])
    found = sampled_ages(TRUNK, cut, "passive", [at(5)])
    assert found.stale_share == pytest.approx(12 / 15)
    with pytest.raises(FallowError, match="ends before"):
        sampled_ages(TRUNK, cut, "passive", [at(6)])


def test_ages_that_are_not_known() -> None:
    for rule in ("graded", "curious", "adaptive"):
        with pytest.raises(FallowError, match="model's error"):
            sampled_ages(TRUNK, BRANCH, rule, [at(1)])
    with pytest.raises(FallowError, match="ends before"):
        sampled_ages(TRUNK, BRANCH, "passive", [at(7)])
    alone = History(BRANCH.header, BRANCH.episodes[1:])
    with pytest.raises(FallowError, match="do not begin and end"):
        sampled_ages(TRUNK, alone, "passive", [at(1)])


# -------------------------------------------------------------------- responses


def test_ages_and_responses_of_a_study(folder: Path) -> None:
    study = read_study_results(folder)
    ages = history_sections.age_section(study)
    assert [p.name for p in ages.figures] == [
        "age-gain",
        "age-recurring-period-frames-4000",
    ]
    assert "Not for Graded" in ages.figures[0].caption and ages.notes == []
    shown = history_sections.selector_section(study)
    names = [picture.name for picture in shown.figures]
    assert names[:3] == [
        "response-none",
        "response-gain",
        "response-recurring-period-frames-4000",
    ]
    assert names[3:] == ["decision-plane", "selector-agreement"]
    gain = shown.figures[1]
    assert gain.caption.startswith(
        "Changes: detected at episode 18; recorded at episode 18."
    )
    (axes,) = gain.figure.axes
    assert axes.get_xlim() == (4.5, 27.5)  # five of 28 episodes are not shown
    upright = [ln for ln in axes.get_lines() if list(ln.get_xdata()) == [17.5, 17.5]]
    assert len(upright) == 2  # found and recorded
    bars = shown.figures[4].figure.axes[0]
    assert [t.get_text() for t in bars.texts] == ["1/1", "0/1", "0/1", "1/2"]


def test_a_damaged_history_is_a_note_and_the_rest_goes_on(
    folder: Path, tmp_path: Path
) -> None:
    broken = shutil.copytree(folder, tmp_path / "small")
    small_study.history(broken, "passive").write_bytes(b"no history")
    small_study.history(broken).unlink()
    study = read_study_results(broken)
    assert history_sections.selector_section(study).figures == []
    shown = history_sections.age_section(study)
    assert any("Gain reduction, Passive" in note for note in shown.notes)
    assert shown.figures[0].name == "age-gain"  # of recency alone


# -------------------------------------------------------------------- bodies


def test_matched_episodes_share_world_and_frame(folder: Path) -> None:
    histories = {
        rule: read_history(small_study.history(folder, rule))
        for rule in ("passive", "recency")
    }
    scene = filmstrips.matched(histories, regime=1)
    assert scene.start_frame == 27_000 and set(scene.episodes.values()) == {15}
    assert filmstrips.matched(histories, regime=0).start_frame == 17_000
    cut = History(histories["recency"].header, histories["recency"].episodes[:9])
    assert filmstrips.matched(histories | {"recency": cut}).start_frame == 20_000
    with pytest.raises(FallowError, match="share no episode under regime 7"):
        filmstrips.matched(histories, regime=7)


def test_a_strip_and_a_film_show_the_bodies(folder: Path, monkeypatch) -> None:
    if rendering.backend() is None:
        pytest.skip(NO_RENDERER)
    monkeypatch.setattr(filmstrips, "FILM_ROWS", 20)
    study = read_study_results(folder)
    shown = history_sections.film_section(study)
    assert [p.name for p in shown.figures] == [
        "strip-gain",
        "strip-recurring-period-frames-4000",
    ]
    assert shown.notes == []
    grid = shown.figures[0].figure.axes
    pictures = [axes.get_images()[0].get_array() for axes in grid]
    assert (pictures[0] != pictures[1]).any()  # it moves
    half = len(filmstrips.STEPS)
    for one, other in zip(pictures[:half], pictures[half:], strict=True):
        np.testing.assert_array_equal(one, other)  # the two histories are copies
    film = shown.films[0]
    assert film.name == "film-gain"
    assert "Passive left, Recency right" in film.caption
    with Image.open(io.BytesIO(film.webp)) as image:
        assert image.format == "WEBP" and image.size == (400, 150)
        assert image.n_frames == 20 // filmstrips.FILM_EVERY + 1


def test_the_names_in_a_strip_stay_in_their_rows(folder: Path, monkeypatch) -> None:
    def blank(shots: list, *size: int) -> list:
        return [np.zeros((len(shot.rows), 75, 100, 4), np.uint8) for shot in shots]

    monkeypatch.setattr(rendering, "films", blank)
    history = read_history(small_study.history(folder))
    rules = ("passive", "recency:window_transitions=20000")
    scene = filmstrips.matched(dict.fromkeys(rules, history))
    figure = filmstrips.filmstrip(scene, {})
    figure.draw_without_rendering()
    rows = [a.yaxis.label for a in figure.axes if a.yaxis.label.get_text()]
    first, second = (label.get_window_extent() for label in rows)
    assert first.y0 > second.y1 and second.y0 >= 0


def test_histories_too_short_for_the_selector_are_one_note(tmp_path: Path) -> None:
    study = read_study_results(small_study.write(tmp_path / "s", seeds=(0, 1)))
    (tmp_path / "short.fallow").write_bytes(b"")
    broken = dict.fromkeys(study.histories, tmp_path / "short.fallow")
    study = dataclasses.replace(study, histories=broken)
    notes = history_sections.selector_section(study).notes
    assert len(notes) == len({note.split(",")[0] for note in notes})
    assert all(", seeds 0, 1: no selector, since" in note for note in notes)


def test_a_picture_holds_a_body_on_a_floor_and_nothing_behind(folder: Path) -> None:
    if rendering.backend() is None:
        pytest.skip(NO_RENDERER)
    history = read_history(small_study.history(folder))
    shot = rendering.Shot(history, 0, [0, 40])
    ((first, later),) = rendering.films([shot], 100, 80)
    assert first.shape == (80, 100, 4) and first.dtype == np.uint8
    assert (first[0, :, 3] == 0).all()  # sky
    assert (first[-1] == rendering.FLOOR_RGBA).all()
    body = (first[..., 3] == 255) & (first[..., 2] > first[..., 0])
    assert 50 < body.sum() < 2000
    assert (first != later).any()


@pytest.mark.parametrize("value", ["off", "Disable ", "0"])
def test_rendering_can_be_switched_off(value: str, monkeypatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", value)
    assert rendering.backend.__wrapped__() is None


def test_without_a_renderer_there_is_a_note(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(rendering, "backend", lambda: None)
    shown = history_sections.film_section(read_study_results(folder))
    assert shown.empty
    assert "neither EGL nor OSMesa" in shown.notes[0]
    history = read_history(small_study.history(folder))
    with pytest.raises(FallowError, match="libosmesa6"):
        rendering.films([rendering.Shot(history, 0, [0])], 20, 20)


def test_a_driver_that_ends_its_process_is_an_error(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(rendering, "backend", lambda: "egl")
    monkeypatch.setattr(rendering, "WORK", "import os; os.abort()")
    history = read_history(small_study.history(folder))
    with pytest.raises(FallowError, match="egl cannot render: it died"):
        rendering.films([rendering.Shot(history, 0, [0])], 20, 20)


def test_a_driver_that_fails_is_a_note(folder: Path, monkeypatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("the driver is broken")

    monkeypatch.setattr(rendering, "backend", lambda: "egl")
    monkeypatch.setattr(filmstrips, "filmstrip", fail)
    shown = history_sections.film_section(read_study_results(folder))
    assert shown.empty
    assert "Gain reduction: no film, since the driver" in shown.notes[0]
