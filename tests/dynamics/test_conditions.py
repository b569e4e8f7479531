"""Conditions by name with options, and what is said of those that cannot be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow.core.errors import FallowError
from fallow.dynamics import CONDITIONS, TASKS, Condition
from fallow.dynamics.simulator import compile_body

NAMES = ["gain", "damage", "recurring", "reversal", "damping", "friction", "none"]


def test_the_papers_conditions_by_their_names() -> None:
    assert list(CONDITIONS) == NAMES


@pytest.mark.parametrize(
    "text",
    [
        *NAMES,
        "gain:g=0.7",
        "gain:g=1/0.5/1/1/1/1",
        "recurring:period_frames=10000",
        "damage:actuator=2",
        "damage:actuator=1/4",
        "damping:schedule=saw_wave,std=0.2",
        "friction:schedule=permanent,level=0.05",
        "gain:schedule=drift_neg,min=0.5",
        "gain:schedule=recurring,period_frames=500",
        "reversal:schedule=recurring,period_frames=500",
    ],
)
def test_text_and_condition_are_inverse(text: str) -> None:
    condition = Condition.parse(text)
    assert str(condition) == text
    assert Condition.parse(str(condition)) == condition


@given(st.floats(0, 10, allow_nan=False), st.integers(0, 10**9), st.integers(1, 10**9))
def test_any_options_survive_the_text(g: float, shift: int, period: int) -> None:
    text = f"recurring:g={g!r},shift_frame={shift},period_frames={period}"
    condition = Condition.parse(text)
    assert Condition.parse(str(condition)) == condition


def test_defaults_are_left_out_of_the_text() -> None:
    assert str(Condition.parse("gain:g=0.5,shift_frame=40000")) == "gain"


def test_regimes() -> None:
    gain = Condition.parse("gain:shift_frame=100")
    assert [gain.regime(frame) for frame in (0, 99, 100)] == [0, 0, 1]
    assert Condition.parse("none").regime(10**9) == 0
    for name in ("damping", "friction"):
        assert Condition.parse(name).regime(50_000) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gian", "did you mean 'gain'"),
        ("gain:gg=1", "did you mean 'g'"),
        ("recuring", "did you mean 'recurring'"),
        ("recurring:period=3", "did you mean 'period_frames'"),
        ("gain:schedule=permanant", "did you mean 'permanent'"),
        ("gain:g=-0.1", "g is -0.1; it must be a number, 0 or more"),
        ("gain:g=nan", "g is nan"),
        ("gain:g=strong", "g is strong"),
        ("gain:g", "option=value"),
        ("gain:g=1,g=2", "given twice"),
        ("none:g=1", "takes no options"),
        ("damage:actuator=-1", "actuator is -1"),
        ("damage:actuator=0.5", "actuator is 0.5"),
        ("recurring:period_frames=0", "period_frames is 0"),
        (
            "friction:schedule=permanent,level=0",
            "level is 0; it must be a number, above",
        ),
        ("friction:schedule=permanent,level=-1", "level is -1"),
        ("friction:level=0.5", "schedule=permanent"),
        ("gain:schedule=uniform,g=0.5", "sets the level itself"),
    ],
)
def test_bad_text_is_a_clear_error(text: str, message: str) -> None:
    with pytest.raises(FallowError, match=message):
        Condition.parse(text)


@pytest.mark.parametrize(
    ("task", "text", "message"),
    [
        ("walker-walk", "damage:actuator=6", "actuator is 6; .* 0 to 5"),
        ("pendulum-swingup", "damage:actuator=1", "actuator is 1; .* 0 to 0"),
        ("walker-walk", "gain:g=1/0.5", "2 factors and the body 6"),
        ("walker-walk", "friction:min=0", "above 0"),
        ("walker-walk", "friction:min=-1", "above 0"),
        ("walker-walk", "damping:start=20", "outside"),
        ("walker-walk", "damping:schedule=permanent", "needs the level"),
        ("walker-walk", "damage:schedule=uniform", "does not drift"),
        ("walker-walk", "reversal:schedule=uniform", "does not drift"),
        ("walker-walk", "gain:schedule=drift_neg,min=-1", "0 or more"),
    ],
)
def test_what_does_not_fit_the_body_is_a_clear_error(
    task: str, text: str, message: str
) -> None:
    model = compile_body(TASKS[task].body)
    with pytest.raises(FallowError, match=message):
        Condition.parse(text).on(model)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", NAMES)
def test_every_condition_fits_every_body(task: str, name: str) -> None:
    course = Condition.parse(name).on(compile_body(TASKS[task].body), seed=1)
    assert set(course.fields(0)) == set(course.fields(1)) == set(course.fields(7))


def test_walker_drifts_have_the_suites_ranges() -> None:
    model = compile_body(TASKS["walker-walk"].body)
    damping = Condition.parse("damping").on(model)._range
    assert damping == pytest.approx((0.1, 0.1, 10.0, 0.5))
    friction = Condition.parse("friction").on(model)._range
    assert friction == pytest.approx((0.7, 0.01, 2.0, 0.05))
