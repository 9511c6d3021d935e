"""Informative and confusing arms: closed forms with independent arms, and constraints that are tight by the definition."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import answered, bandits

import allocopt as ao
from allocopt.insight.hardness.optimum import optimum
from allocopt.insight.hardness.roles import confusing, informative
from allocopt.insight.instances import finite_armed


@given(st.lists(st.floats(0.05, 20.0), min_size=1, max_size=6))
def test_independent_arms_are_informative_and_confusing_about_themselves(gaps):
    """c = Σ 2/Δ, α = 2/Δ², λ = 2/Δ: shares are those of 1/Δ, and every arm has the same leverage."""
    at = optimum(finite_armed([0.0, *gaps]), 1e-8)
    assert answered(at.solution)
    found, inverse = informative(at), 1 / np.array(gaps)
    played = {e.arm: e for e in found}
    against = {e.arm: e for e in confusing(at)}
    assert set(played) == set(against) == set(range(1, len(gaps) + 1))
    for i, gap in enumerate(gaps, start=1):
        assert played[i].gap == against[i].gap == pytest.approx(gap, rel=1e-12)
        assert played[i].allocation == pytest.approx(2 / gap**2, rel=1e-6)
        share = pytest.approx(1 / gap / inverse.sum(), rel=1e-6)
        assert played[i].regret_share == share
        assert against[i].share == share
        assert played[i].information_share == pytest.approx(1 / len(gaps), rel=1e-6)
        assert against[i].multiplier == pytest.approx(2 / gap, rel=1e-6)


@settings(max_examples=60)
@given(bandits())
def test_the_dearest_and_the_most_confusing_arms_come_first(bandit):
    at = optimum(bandit, 1e-8)
    assert answered(at.solution)
    assert np.all(np.diff([e.regret_share for e in informative(at)]) <= 1e-12)
    assert np.all(np.diff([e.multiplier for e in confusing(at)]) <= 0)
    assert {e.arm for e in informative(at)} == set(at.solution.support.tolist() if at.bounds is not None else [])
    assert {e.arm for e in confusing(at)} == set(at.solution.binding.tolist())


@settings(max_examples=60)
@given(bandits(kinds=("plain", "integers", "as many arms as dimensions")))
def test_constraints_of_confusing_arms_are_tight_by_the_definition(bandit):
    assume(len(bandit.optimal_arms) == 1)
    at = optimum(bandit, 1e-8)
    assume(at.bounds is not None and bandit.rank == bandit.dim)
    assert answered(at.solution)
    best = bandit.arms[bandit.optimal_arms[0]]
    assume(best.any())
    others = np.linalg.svd(best[None])[2][1:]  # modulo the best arm, which is played without end
    rows = bandit.arms @ others.T
    played = at.solution.support
    information = (rows[played] * at.solution.allocation[played, None]).T @ rows[played]
    assume(np.linalg.cond(information) < 1e9)
    for e in confusing(at):
        norm = rows[e.arm] @ np.linalg.solve(information, rows[e.arm])
        assert norm == pytest.approx(e.gap**2 / 2, rel=1e-4)


def test_with_nothing_to_explore_nobody_has_a_role():
    at = optimum(ao.LinearBandit([[1, 0], [2, 0], [3, 0]], [1, 0]), 1e-8)
    assert answered(at.solution)
    assert informative(at) == confusing(at) == ()
