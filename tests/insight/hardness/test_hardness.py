"""The hardness report: identities that any right answer has, closed forms of the paper, and instances that are awkward."""

import math
import pickle
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from blocks import agree, in_blocks
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from strategies import answered, bandits

import allocopt as ao
from allocopt.insight.hardness import leave_one_out
from allocopt.insight.hardness.hardness import hardness
from allocopt.insight.instances import counter_example, finite_armed, optimism_example, random_unit, soare
from allocopt.model.programs import horizon_at_level

ORDINARY = ("plain", "duplicates", "collinear", "as many arms as dimensions", "zero is optimal", "rank-deficient")


def constant(bandit, tol=1e-8):
    return ao.solve(ao.programs.regret(bandit), tol=tol).value


def examined(bandit):
    """The report, unless the solver itself says that this instance is beyond double precision."""
    try:
        return hardness(bandit)
    except ao.SolverFailed:
        assert ao.solve(ao.programs.regret(bandit)).status is ao.Status.FAILED
        reject()


def moved(bandit, theta):
    return ao.LinearBandit(bandit.arms, theta, bandit.noise_variance)


def test_the_papers_example_in_one_object():
    h = hardness(counter_example(0.01))
    assert h.constant == pytest.approx(8, rel=1e-12)
    assert h.proven.lower <= 8.0000000001
    assert h.proven.gap < 1e-12
    assert h.ucb_constant == pytest.approx(202)
    assert h.ucb_ratio == pytest.approx(25.25)
    assert [e.arm for e in h.informative] == [1]
    assert [e.arm for e in h.confusing] == [2]
    assert h.alternatives[0].theta == pytest.approx([1, 0.5])
    assert h.gradient == pytest.approx([-8, 24])
    assert h.warnings == ()


@pytest.mark.parametrize("epsilon", [0.2, 0.05, 0.01, 1e-4, 1e-6])
def test_without_the_informative_arm_the_constant_is_2_over_epsilon(epsilon):
    rows = {r.arm: r for r in hardness(counter_example(epsilon)).leave_one_out}
    assert rows[1].value == pytest.approx(2 / epsilon, rel=1e-8)
    assert rows[1].role == "informative"
    assert rows[1].change == pytest.approx(2 / epsilon - 8, rel=1e-8)


@given(bandits())
def test_the_gradient_times_theta_is_minus_c(bandit):
    h = examined(bandit)
    if h.gradient is None:
        assert len(bandit.optimal_arms) > 1
        assert "tie" in h.sensitivity.note
        return
    assert bandit.theta @ h.gradient == pytest.approx(-h.constant, rel=max(1e-7, 3 * h.solution.gap))


@pytest.mark.parametrize(("dim", "n_arms"), [(2, 6), (3, 10), (5, 20), (10, 50), (10, 200)])
@pytest.mark.parametrize("noise", [1.0, 2.5])
def test_the_gradient_agrees_with_finite_differences(dim, n_arms, noise):
    unit = random_unit(dim, n_arms)
    bandit = ao.LinearBandit(unit.arms, unit.theta, noise)
    h = hardness(bandit)
    assert h.sensitivity.unique
    step = 1e-5 * np.eye(dim)
    differences = [
        (constant(moved(bandit, bandit.theta + e), 1e-11) - constant(moved(bandit, bandit.theta - e), 1e-11)) / 2e-5
        for e in step
    ]
    assert np.abs(h.gradient - differences).max() <= 1e-5 * np.abs(h.gradient).max()


@settings(max_examples=40)
@given(bandits(kinds=ORDINARY), st.integers(0, 2**32 - 1))
def test_the_gradient_agrees_with_a_difference_in_a_random_direction(bandit, seed):
    h = examined(bandit)
    assume(h.sensitivity.unique and h.constant > 0)
    assume(bandit.gap_min > 1e-2 * bandit.gap_max)
    direction = np.random.default_rng(seed).normal(size=bandit.dim)
    # so small a step that no gap changes by more than a millionth, and the third derivative does not show
    reach = np.abs((bandit.arms - bandit.arms[bandit.optimal_arms[0]]) @ direction).max()
    assume(reach > 0)
    direction *= 1e-5 * bandit.gap_min / reach
    ends = [constant(moved(bandit, bandit.theta + s * direction), 1e-11) for s in (1, -1)]
    slope = h.gradient @ direction
    assert (ends[0] - ends[1]) / 2 == pytest.approx(slope, rel=1e-4, abs=2e-10 * h.constant)


def test_the_derivatives_with_respect_to_the_gaps_agree_with_finite_differences():
    bandit = random_unit(4, 12)
    h = hardness(bandit)
    assert h.sensitivity.gaps_unique
    assert np.isnan(h.gap_derivatives[bandit.optimal_arms]).all()

    def value(gaps):
        return ao.solve(horizon_at_level(bandit.arms, gaps, 2.0, None), tol=1e-11).value

    for i in bandit.suboptimal_arms:
        step = 1e-5 * bandit.gaps[i] * np.eye(12)[i]
        difference = (value(bandit.gaps + step) - value(bandit.gaps - step)) / (2 * step[i])
        assert h.gap_derivatives[i] == pytest.approx(difference, rel=1e-5, abs=1e-5 * h.constant)


@given(bandits(), st.sampled_from([1.0, 0.25, 9.0]))
def test_alternatives_are_as_the_proof_of_the_lower_bound_says(bandit, noise):
    bandit = ao.LinearBandit(bandit.arms, bandit.theta, noise)
    h = examined(bandit)
    assume(h.solution.status is ao.Status.CERTIFIED)
    support, alpha = h.solution.support, h.solution.allocation
    best = bandit.arms[bandit.optimal_arms]
    for found in h.alternatives:
        means = bandit.arms[support] @ found.shift
        assert (alpha[support] * means**2).sum() / (2 * noise) == pytest.approx(1, abs=1e-6)
        assert found.evidence == pytest.approx(1, abs=1e-6)
        terms = np.abs(bandit.arms) @ np.abs(found.shift)
        # it leaves the optimal means alone and makes the arm as good as they are
        assert (np.abs(best @ found.shift) <= 1e-12 * terms[bandit.optimal_arms] + 1e-9 * bandit.gaps[found.arm]).all()
        gained = bandit.arms[found.arm] @ found.shift
        assert gained == pytest.approx(bandit.gaps[found.arm], rel=1e-9, abs=1e-12 * terms[found.arm])
    others = np.setdiff1d(bandit.suboptimal_arms, h.solution.binding)
    assert (h.evidence[others] > 1).all()
    assert h.evidence[h.solution.binding] == pytest.approx(1, abs=1e-6)
    assert np.isinf(h.evidence[bandit.optimal_arms]).all()


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(0, 5))
def test_no_other_parameter_is_more_confusing(seed, dim, extra):
    rng = np.random.default_rng(seed)
    bandit = ao.LinearBandit(rng.normal(size=(dim + 2 + extra, dim)), rng.normal(size=dim))
    h = hardness(bandit)
    best = bandit.arms[bandit.optimal_arms[0]]
    for arm in bandit.suboptimal_arms[:4]:
        found = h.alternative(int(arm))
        assert found.evidence == pytest.approx(h.evidence[arm], rel=1e-6)
        shift = rng.normal(size=dim)
        shift -= best * (best @ shift) / (best @ best)
        shift *= bandit.gaps[arm] / (bandit.arms[arm] @ shift)
        means = bandit.arms[h.solution.support] @ shift
        assert (h.solution.allocation[h.solution.support] * means**2).sum() / 2 >= found.evidence * (1 - 1e-9)


@given(bandits(kinds=ORDINARY))
def test_shares_add_up_and_arms_pay_for_the_evidence_they_bring(bandit):
    h = examined(bandit)
    assume(h.constant > 0)
    assert sum(e.regret_share for e in h.informative) == pytest.approx(1)
    assert sum(e.information_share for e in h.informative) == pytest.approx(1)
    assert sum(e.multiplier for e in h.confusing) == pytest.approx(h.constant, rel=1e-6)
    # weighted by the multipliers, the evidence an arm brings is the regret it pays (complementary slackness)
    brought = sum(e.share * a.contributions for e, a in zip(h.confusing, h.alternatives, strict=True))
    paid = {e.arm: e.regret_share for e in h.informative}
    assert brought == pytest.approx([paid[i] for i in h.solution.support.tolist()], abs=1e-5)


@settings(max_examples=60)
@given(bandits())
def test_leave_one_out_equals_a_cold_solve(bandit):
    h = examined(bandit)
    listed = {r.arm for r in h.leave_one_out}
    assert set(h.solution.support) | set(h.solution.binding) <= listed
    for row in h.leave_one_out:
        rest = np.delete(np.arange(bandit.n_arms), row.arm)
        smaller = ao.LinearBandit(bandit.arms[rest], bandit.theta)
        if not smaller.gap_max > 0:
            assert row.value == 0
            assert "nothing to learn" in row.note
            continue
        cold = ao.solve(ao.programs.regret(smaller))
        assert row.lower <= cold.upper
        assert cold.lower <= row.upper
        assert answered(cold)
        assert "INACCURATE" not in row.note
        assert row.value == pytest.approx(cold.value, rel=3e-8)
        assert row.change == row.value - h.constant
    assert answered(h.solution)
    if bandit.n_arms > 2:
        for arm in np.setdiff1d(bandit.suboptimal_arms, list(listed))[:3]:  # what is not listed does not matter
            assert h.without(int(arm)).value == pytest.approx(h.constant, rel=3e-8)


@pytest.mark.parametrize(("dim", "n_arms"), [(5, 300), (10, 3000)])
def test_leave_one_out_of_many_arms_equals_a_cold_solve(dim, n_arms):
    h = hardness(random_unit(dim, n_arms))
    for row in h.leave_one_out[:: max(1, len(h.leave_one_out) // 6)]:
        assert row.value == pytest.approx(h.without(row.arm).value, rel=3e-8)


@pytest.mark.parametrize("variances", [False, True])
def test_leave_one_out_and_optimism_of_very_many_arms_are_those_of_few(variances, monkeypatch):
    """Block by block a removed arm becomes a copy of the best one."""
    plain = random_unit(4, 80)
    noise = np.linspace(0.5, 2.0, 80) if variances else 1.0
    few = hardness(ao.LinearBandit(plain.arms, plain.theta, noise)).compute()
    priced = {width: few.optimism(width) for width in (0.6, 1.0, 50.0)}
    with in_blocks():
        monkeypatch.setattr(leave_one_out, "_resolved", lambda *given: pytest.fail("all arms at once"))
        many = hardness(ao.LinearBandit(plain.arms, plain.theta, noise))
        assert many.bandit._store is not None
        for one, other in zip(few.leave_one_out, many.leave_one_out, strict=True):
            assert (one.arm, one.role, one.note, one.optimal_arms) == (
                other.arm,
                other.role,
                other.note,
                other.optimal_arms,
            )
            assert one.lower <= other.upper and other.lower <= one.upper
            assert other.upper - other.lower <= 1e-8 * other.lower
        for width, known in priced.items():
            assert agree(known, many.optimism(width))
            assert many.optimism(width).status == ao.Status.CERTIFIED


def test_removing_the_best_arm_is_reported_as_another_instance():
    h = hardness(counter_example(0.01))
    row = next(r for r in h.leave_one_out if r.arm == 0)
    assert row.role == "optimal"
    assert "another instance" in row.note
    assert row.optimal_arms == (2,)
    assert row.value == pytest.approx(constant(ao.LinearBandit([[0, 1], [0.99, 0.02]], [1, 0])))


def test_removing_an_arm_may_cost_a_dimension():
    h = hardness(finite_armed([0.0, 1.0, 0.5]))
    row = next(r for r in h.leave_one_out if r.arm == 2)
    assert row.value == pytest.approx(2.0)
    assert "span 2 dimensions instead of 3" in row.note


def test_removing_one_of_two_arms_leaves_nothing_to_learn():
    for row in hardness(finite_armed([0.0, 1.0])).leave_one_out:
        assert row.value == 0
        assert "nothing to learn" in row.note


@given(bandits(kinds=ORDINARY), st.integers(0, 2**32 - 1), st.floats(0.01, 3))
def test_adding_an_arm_equals_a_cold_solve(bandit, seed, size):
    h = examined(bandit)
    row = size * np.random.default_rng(seed).normal(size=bandit.dim)
    added = h.with_arm(row)
    cold = ao.LinearBandit(np.vstack([bandit.arms, row]), bandit.theta)
    assert added.gap == pytest.approx(cold.gaps[-1])
    assert added.solution.value == pytest.approx(constant(cold), rel=3e-8)
    assert added.change == added.solution.value - h.constant
    if "changes nothing" in added.note:
        assert added.solution.value == pytest.approx(h.constant, rel=3e-8)


@pytest.mark.parametrize("a", [1.0, 2.0])
@pytest.mark.parametrize("epsilon", [1e-3, 1e-4, 1e-5])
def test_the_price_of_optimism_is_the_closed_form(a, epsilon):
    h = hardness(optimism_example(epsilon, a))
    assert h.constant == pytest.approx(128 * a**2, rel=1e-9)
    value = 4 * a + (2 - 1 / (16 * a)) / epsilon
    assert h.optimism(a).value == pytest.approx(value, rel=1e-7)
    assert h.price_of_optimism(a) == pytest.approx(value / (128 * a**2), rel=1e-7)


def test_the_price_of_optimism_with_many_arms():
    free = hardness(random_unit(10, 2000))
    assert free.price_of_optimism(2.0) == pytest.approx(1, rel=1e-7)  # the optimum keeps within the bounds
    assert free.optimism(2.0).status is ao.Status.CERTIFIED
    example = counter_example(1e-3, 8.0, dim=4)
    others = np.random.default_rng(0).normal(size=(150, 4))
    others /= 1.3 * np.linalg.norm(others, axis=1)[:, None]
    bandit = ao.LinearBandit(np.vstack([example.arms, others]), example.theta)
    h = hardness(bandit)
    for width in (0.6, 1.0, 5.0):
        cold = ao.solve(ao.programs.optimism(bandit, width), method="interior-point")
        assert h.optimism(width).status is ao.Status.CERTIFIED
        assert h.optimism(width).value == pytest.approx(cold.value, rel=3e-8)
        assert h.price_of_optimism(width) > 1.01
        assert (h.optimism(width).allocation <= h.optimism(width).program.upper).all()


@given(bandits(kinds=ORDINARY), st.floats(0.6, 4.0))
def test_the_price_of_optimism_is_at_least_one_and_falls_with_the_width(bandit, width):
    h = examined(bandit)
    price = h.price_of_optimism(width)
    assert price >= 1 - 1e-7
    assert h.price_of_optimism(2 * width) <= price * (1 + 1e-7)


@given(bandits(kinds=ORDINARY), st.floats(1e-3, 1e3))
def test_everything_scales_with_the_noise(bandit, noise):
    one, other = examined(bandit), examined(ao.LinearBandit(bandit.arms, bandit.theta, noise))
    assert other.constant == pytest.approx(noise * one.constant, rel=1e-8)
    assert other.ucb_constant == pytest.approx(noise * one.ucb_constant)
    assert other.price_of_optimism(2) == pytest.approx(one.price_of_optimism(2), rel=1e-6)
    if one.gradient is not None and one.sensitivity.unique:
        size = noise * np.abs(one.gradient).max()
        assert np.abs(other.gradient - noise * one.gradient).max() <= 1e-5 * size


@pytest.mark.parametrize(("dim", "time"), [(2, 220.150), (6, 222.250)])
def test_best_arm_time_of_soares_family(dim, time):
    assert hardness(soare(dim)).best_arm_time == pytest.approx(time, rel=1e-5)


def test_different_tied_arms_have_no_gradient_and_no_best_arm_time():
    h = hardness(ao.LinearBandit([[1, 0, 0], [0, 1, 0], [0.5, 0.2, 1], [0.3, 0.3, 0.3]], [1, 1, 0.1], 4.0))
    assert h.gradient is None
    assert "2 different arms tie" in h.sensitivity.note
    assert h.best_arm is None
    assert h.best_arm_time == math.inf
    assert h.constant == pytest.approx(40)
    assert h.gap_derivatives[2] == pytest.approx(-200)
    assert any("2 arms are taken as optimal" in text for text in h.warnings)
    assert h.alternatives[0].theta[:2] == pytest.approx([1, 1])


def test_duplicates_of_the_best_arm_are_no_tie():
    b = counter_example(0.01)
    h = hardness(ao.LinearBandit(np.vstack([b.arms, b.arms[0]]), b.theta))
    assert h.gradient == pytest.approx([-8, 24])
    assert h.best_arm_time == pytest.approx(hardness(b).best_arm_time)


def test_where_the_multipliers_are_not_unique_the_gradient_is_one_side_of_a_kink():
    b = ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.3], [0.9, -0.3]], [1, 0])
    h = hardness(b)
    assert h.sensitivity.unique is False
    assert "one-sided" in h.sensitivity.note
    assert any("one-sided" in text for text in h.warnings)
    step = np.array([0.0, 1e-6])
    slopes = [(constant(moved(b, b.theta + s * step), 1e-12) - h.constant) / 1e-6 for s in (1, -1)]
    assert slopes[0] > 0 < slopes[1]  # c rises on both sides: no gradient could say so
    # c is the larger of two smooth functions here, and the gradient is that of one of them
    assert h.gradient[1] <= slopes[0] + 1e-2
    assert -h.gradient[1] <= slopes[1] + 1e-2


def test_duplicated_arms_leave_the_gradient_unique_but_not_the_gap_derivatives():
    b = random_unit(3, 8)
    h = hardness(b)
    support = h.solution.support[0]
    twice = hardness(ao.LinearBandit(np.vstack([b.arms, b.arms[support]]), b.theta))
    assert twice.sensitivity.unique is True
    assert twice.sensitivity.gaps_unique is False
    assert twice.gradient == pytest.approx(h.gradient, rel=1e-6)


def test_arms_along_the_best_one_leave_nothing_to_explore():
    h = hardness(ao.LinearBandit([[1, 0], [0.5, 0]], [1, 0])).compute()
    assert h.constant == 0
    assert h.informative == h.confusing == h.alternatives == ()
    assert h.gradient.tolist() == [0, 0]
    assert h.ucb_ratio == math.inf
    assert h.price_of_optimism(1) == 1
    assert np.isinf(h.evidence).all()


def test_near_ties_and_collinear_arms_are_warned_of_with_numbers():
    labels = ["best", "other", "close"]
    near = hardness(ao.LinearBandit([[1, 0], [0, 1], [1 - 1e-5, 0.5]], [1, 0], labels=labels))
    text = "\n".join(near.warnings)
    assert "near ties: 1 gap(s)" in text
    assert "1e-05" in text
    assert "close" in text
    collinear = hardness(counter_example(1e-5))  # the confusing arm is almost the best one
    assert collinear.geometry.closest_arms == (0, 2)
    assert collinear.geometry.least_sine == pytest.approx(
        2e-5 * math.sqrt(2), rel=1e-3
    )  # two arms along e1: it is scaled by 1/√2
    assert any("nearly collinear arms: arm 0 and arm 2, sine 2.8e-05" in text for text in collinear.warnings)
    flat = hardness(ao.LinearBandit([[1, 1], [0, 1e-8], [1, 1 + 1e-7]], [1, 1e-9]))
    assert any("condition number" in text for text in flat.warnings)
    assert not hardness(random_unit(3, 10)).warnings


def test_geometry_in_numbers():
    g = hardness(ao.LinearBandit([[1, 0, 1], [0, 1, 0], [0.5, 0.5, 0.5], [1, 0, 1]], [1, 0, 0])).geometry
    assert (g.n_arms, g.dim, g.rank, g.quotient_rank, g.optimal_arms) == (4, 3, 2, 1, 2)
    assert (g.gap_min, g.gap_median, g.gap_max) == (0.5, 0.75, 1.0)


def test_large_sets_seen_block_by_block_give_the_same_report(monkeypatch):
    unit = random_unit(4, 300)
    plain = hardness(unit)
    monkeypatch.setattr("allocopt.model.arms.opening.LARGE", 100)
    monkeypatch.setattr("allocopt.model.arms.opening.MANY", 100)
    stored = hardness(ao.LinearBandit(unit.arms, unit.theta))
    assert stored.bandit._store is not None
    assert stored.gradient == pytest.approx(plain.gradient, rel=1e-8)
    assert [a.arm for a in stored.alternatives] == [a.arm for a in plain.alternatives]
    assert [r.value for r in stored.leave_one_out] == pytest.approx([r.value for r in plain.leave_one_out], rel=3e-8)
    assert stored.price_of_optimism(1.0) == pytest.approx(plain.price_of_optimism(1.0), rel=1e-7)


def test_labels_name_the_arms():
    h = hardness(ao.LinearBandit([[1, 0], [0, 1], [0.99, 0.02]], [1, 0], labels=["a", "b", "c"]))
    assert h.label(1) == "b"
    assert h.with_arm([0.5, 0.5], label="new").solution.labels == ("a", "b", "c", "new")
    assert h.without(1).labels == ("a", "c")
    assert hardness(counter_example(0.1)).label(1) == "arm 1"


def test_compute_tells_its_steps_and_the_object_can_be_pickled():
    steps = []
    h = hardness(random_unit(3, 8)).compute(lambda *step: steps.append(step))
    assert any("without arm" in what for what, _, _ in steps)
    assert all(0 <= done < total for _, done, total in steps)
    again = pickle.loads(pickle.dumps(h))
    assert again.constant == h.constant
    assert again.leave_one_out == h.leave_one_out


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda h: hardness("bandit"), "bandit: expected a LinearBandit, got a str"),
        (lambda h: hardness(h.bandit, tol=-1), "tol: expected"),
        (lambda h: h.alternative(0), "arm 0 is optimal"),
        (lambda h: h.alternative(3), "arm: expected an index below 3, got 3"),
        (lambda h: h.alternative(-1), "arm: expected a whole number"),
        (lambda h: h.without(7), "arm: expected an index below 3"),
        (lambda h: h.with_arm([1, 2, 3]), "arm: expected 2 entries, got 3"),
        (lambda h: h.with_arm([1, math.nan]), "arm: expected finite numbers"),
        (lambda h: h.with_arm([1, 2], label=3), "label: expected a text, got 3"),
        (lambda h: h.label(3), "arm: expected an index below 3"),
        (lambda h: h.label("x"), "arm: expected a whole number"),
        (lambda h: h.price_of_optimism(0), "width: expected"),
        (lambda h: h.price_of_optimism(math.inf), "width: expected"),
        (lambda h: h.price_of_optimism(0.01), "could not be solved|cannot be met"),
        (lambda h: hardness(ao.LinearBandit([[1, 0]], [1, 1])), "at least two arms"),
    ],
)
def test_bad_input_gets_one_clear_line(call, words):
    with pytest.raises(ao.AllocoptError, match=words) as error:
        call(hardness(counter_example(0.01)))
    assert "\n" not in str(error.value)


def test_idle_paths_of_a_graph_are_not_called_informative():
    graph = nx.DiGraph()
    rng = np.random.default_rng(0)
    graph.add_weighted_edges_from((u, v, rng.uniform(0.5, 1.5)) for u, v in nx.grid_2d_graph(4, 4).edges)
    h = hardness(ao.graphs.path_arms(graph, (0, 0), (3, 3)).bandit())
    assert h.solution.status is ao.Status.CERTIFIED
    assert min(entry.regret_share for entry in h.informative) > 1e-6
    assert sum(entry.information_share for entry in h.informative) == pytest.approx(1)


def test_the_report_loads_nothing_heavy():
    code = (
        "import sys, allocopt.insight.hardness.hardness; "
        "print([m for m in ('matplotlib', 'rich', 'numba', 'cvxpy', 'pandas') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
