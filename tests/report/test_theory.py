"""Figures of the theory, against counts and closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_figures import legend

from fallow.dynamics import Condition
from fallow.report import theory
from fallow.report.figures import theory as theory_figures
from fallow.report.theory import TheoryCase


@given(
    condition=st.sampled_from(
        ["none", "gain", "recurring", "recurring:period_frames=30000"]
    ),
    branch_frame=st.integers(1, 130).map(lambda k: 1000 * k),
    trunk_frames=st.integers(0, 50).map(lambda k: 4000 * k),
    window=st.integers(1, 200).map(lambda k: 100 * k),
)
@settings(max_examples=60, deadline=None)
def test_stale_shares_are_those_counted_frame_by_frame(
    condition: str, branch_frame: int, trunk_frames: int, window: int
) -> None:
    parsed = Condition.parse(condition)
    every = range(-trunk_frames, branch_frame, 100)  # nothing changes in between
    regime = np.array([parsed.regime(max(frame, 0)) or 0 for frame in every])
    stale = regime != (parsed.regime(branch_frame) or 0)
    shares = theory.stale_shares(parsed, trunk_frames, branch_frame, window)
    n_inside = min(2 * window // 100, len(stale))
    assert shares.rho == pytest.approx(stale.mean())
    assert shares.rho_w == pytest.approx(stale[-n_inside:].mean())
    assert shares.n_full == (trunk_frames + branch_frame) // 2
    assert shares.n_window == min(window, shares.n_full)


def case(
    offset: float, rho: float, rho_w: float, advantage: float
) -> theory.TheoryCase:
    shares = (theory.Shares(rho, rho_w, 10_000, 160_000),)
    return TheoryCase("one", offset, shares, advantage, 10.0)


def test_the_noise_is_fitted_between_the_cases_that_it_must_part() -> None:
    helped, hurt = case(0.5, 0.8, 0.0, 146), case(0.3, 0.8, 0.0, -80)
    never = case(0.5, 0.2, 0.5, -191)  # the window is staler than the whole
    noise_std, n_agree = theory.fitted_noise([helped, hurt, never])
    assert n_agree == 3
    # dE is 0 at sigma = M rho / sqrt(1/w - 1/N)
    unit = 0.8 / np.sqrt(1 / 10_000 - 1 / 160_000)
    assert 0.3 * unit < noise_std < 0.5 * unit
    assert helped.delta_error(noise_std) > 0 > hurt.delta_error(noise_std)
    assert never.delta_error(noise_std) < 0
    assert helped.delta_error(helped.noise_limit) == pytest.approx(0, abs=1e-12)
    wrong = [helped, hurt, case(0.4, 0.8, 0.0, -5), case(0.6, 0.8, 0.0, -5)]
    assert theory.fitted_noise(wrong)[1] == 3


def test_the_line_of_m_star_is_where_the_error_changes_sign() -> None:
    cases = [case(0.5, 0.8, 0.0, 146), case(0.3, 0.8, 0.0, -80)]
    figure = theory_figures.mismatch(cases, 35.0)
    contrast, star = figure.axes[0].get_lines()[0].get_data()
    for x, y in list(zip(contrast, star, strict=True))[::50]:
        on_line = case(float(y), float(np.sqrt(x)), 0.0, 1)
        assert on_line.delta_error(35.0) == pytest.approx(0, abs=1e-9)
    assert "M*, window 10,000" in legend(figure)
    marks = [line.get_marker() for line in figure.axes[0].get_lines()]
    assert marks.count("^") == 2 and marks.count("v") == 2  # one of each is the key


def test_theory_against_measurement_has_a_mark_for_each_case() -> None:
    cases = [case(0.5, 0.8, 0.0, 146), case(0.3, 0.8, 0.0, -80)]
    (axes,) = theory_figures.against_advantage(cases, 35.0).axes
    assert [c[0].get_ydata().tolist() for c in axes.containers] == [[146], [-80]]
    expected = [1e4 * one.delta_error(35.0) / 35.0**2 for one in cases]
    found = [c[0].get_xdata()[0] for c in axes.containers]
    np.testing.assert_allclose(found, expected)


def test_what_a_condition_takes_of_the_gain() -> None:
    def taken(condition: str) -> float | None:
        return theory.offset_of(Condition.parse(condition), "walker-walk")

    assert taken("gain:g=0.7") == pytest.approx(0.3)
    assert taken("damage") == pytest.approx(1 / 6)
    assert taken("none") == 0 and taken("friction") is None
