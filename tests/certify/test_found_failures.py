"""What an outside check found: each was certified and wrong, or called infeasible and was not. And the laws that forbid it."""

import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import allocopt as ao
from allocopt.certify.proofs.writing import proof_document
from allocopt.certify.referee import judge
from allocopt.certify.verdict import recertify
from allocopt.model.levels import confidence_widths

COPIED = [[1, -0.4, 1], [-1.4, -0.6, -1.4], [0.9, 0.6, 0.9]]


def holds(solution):
    """The referee follows the claim, and the interval is not trivial."""
    verdict = judge(proof_document(solution))
    assert verdict.proven, verdict.problems
    assert verdict.upper is not None
    return verdict


@pytest.mark.parametrize(
    ("arms", "theta", "value"),
    [
        (COPIED, [-0.3, 0.9, 0], 200 / 93),
        ([[1, 0], [0.5, 1e-16]], [1, 0], 4.0),
        ([[1, 0], [0.999, 1e-16], [0, 1e-15]], [1, 0], 2000.0),
    ],
)
def test_values_that_were_certified_and_wrong(arms, theta, value):
    for road in (
        lambda: ao.regret_constant(arms, theta),
        lambda: ao.regret_constant(arms, theta, method="interior-point"),
        lambda: ao.regret_constant(arms, theta, method="active-set"),
        lambda: ao.Allocator(arms).solve(ao.LinearBandit(arms, theta).gaps),
        lambda: ao.solve_many([ao.LinearBandit(arms, theta)]).solution(0),
    ):
        s = road()
        assert s.status is ao.Status.CERTIFIED
        assert s.assumptions == ()
        assert s.lower * (1 - 1e-12) <= value <= s.upper * (1 + 1e-12)
        holds(s)
        assert s.verify().lower <= value <= s.verify().upper or s.verify().gap <= 1e-7


@pytest.mark.parametrize("seed", range(25))
def test_all_columns_copied_scaled_or_summed_change_nothing(seed):
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(2, 4)), int(rng.integers(3, 7))
    arms, theta = rng.integers(-300, 300, (k, d)) / 100, rng.integers(-100, 100, d) / 100
    try:
        plain = ao.regret_constant(arms, theta)
    except ao.InvalidInstance:
        return
    wider = {
        "copied": np.hstack([arms, arms]),
        "doubled": np.hstack([arms, 2.0 * arms[:, :1], -4.0 * arms[:, 1:2]]),
        "zeros": np.hstack([arms, np.zeros((k, 2))]),
        "summed": np.hstack([arms, arms[:, :1] + arms[:, 1:2]]),  # rounded: an assumption
    }
    for name, columns in wider.items():
        s = ao.regret_constant(columns, np.concatenate([theta, np.zeros(columns.shape[1] - d)]))
        assert s.status is plain.status or (name == "summed" and s.status is ao.Status.CONDITIONAL), name
        assert s.value == pytest.approx(plain.value, rel=1e-7), name
        holds(s)


def test_a_target_outside_the_span_is_infeasible_and_one_inside_is_not():
    with pytest.raises(ao.Infeasible):
        ao.solve(ao.AllocationProgram([[1, 0]], [1], [[1, 1e-10]], [1.0]))
    scales = ao.AllocationProgram([[1, 0], [1, 6]], [1, 1], [[1, 0], [1, 6]], [1e20, 1e-12], None, [2e-20, np.inf])
    s = ao.solve(scales)  # feasible; doubles may not be enough to prove the value
    assert s.lower <= 1e12 * (1 + 1e-9) and s.upper >= 1e12


@pytest.mark.parametrize("seed", range(40))
def test_g_optimal_is_never_infeasible(seed):
    rng = np.random.default_rng(seed)
    arms = rng.integers(-2, 3, (int(rng.integers(2, 9)), int(rng.integers(1, 5)))).astype(float)
    arms = np.hstack([arms, arms[:, :1] * 2]) * 2.0 ** rng.integers(-45, 46, (len(arms), 1))
    if not arms.any():
        return
    s = ao.solve(ao.programs.g_optimal(arms))
    rank = np.linalg.matrix_rank(arms / np.maximum(np.abs(arms).max(axis=1, keepdims=True), 1e-300))
    if s.status is ao.Status.CERTIFIED:
        assert s.value == pytest.approx(rank, rel=1e-7)
    holds(s)


def test_near_ties_of_independent_arms_have_a_formula():
    for gap in (1e-9, 1e-12, 2.0**-46):
        arms, theta = np.eye(3), np.array([1.0, 1.0 - gap, 0.5])
        s = ao.regret_constant(arms, theta, tie_tolerance=0)
        exact = float(sum(2 / (Fraction(1) - Fraction(t)) for t in theta[1:].tolist()))
        assert s.status is ao.Status.CERTIFIED
        assert s.lower <= exact <= s.upper


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.data())
def test_columns_in_other_units_change_no_bit(seed, data):
    """On the roads of solve, Allocator and solve_many; blocks are tested with their own sizes in torture."""
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(2, 5)), int(rng.integers(3, 9))
    arms, theta = rng.normal(size=(k, d)), rng.normal(size=d)
    powers = 2.0 ** np.array(data.draw(st.lists(st.integers(-45, 45), min_size=d, max_size=d)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        gaps = ao.LinearBandit(arms, theta).gaps
        pairs = [
            (ao.regret_constant(arms, theta), ao.regret_constant(arms * powers, theta / powers)),
            (ao.Allocator(arms).solve(gaps), ao.Allocator(arms * powers).solve(gaps)),
            (ao.solve_many(arms, gaps[None]).solution(0), ao.solve_many(arms * powers, gaps[None]).solution(0)),
            (ao.solve(ao.programs.g_optimal(arms)), ao.solve(ao.programs.g_optimal(arms * powers))),
        ]
    for one, other in pairs:
        assert (one.lower, one.upper, one.status) == (other.lower, other.upper, other.status)
        np.testing.assert_array_equal(one.allocation, other.allocation)
        np.testing.assert_array_equal(one.multipliers, other.multipliers)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_other_columns_change_nothing_but_rounding(seed):
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(2, 5)), int(rng.integers(3, 8))
    arms, theta = rng.normal(size=(k, d)), rng.normal(size=d)
    s = ao.regret_constant(arms, theta)
    order = rng.permutation(d)
    for columns, parameter in (
        (arms[:, order], theta[order]),
        (np.hstack([arms, arms[:, order]]), np.concatenate([theta, np.zeros(d)])),
        (np.hstack([np.zeros((k, 1)), arms]), np.concatenate([[3.0], theta])),
        (np.hstack([arms, arms.sum(axis=1, keepdims=True)]), np.concatenate([theta, [0.0]])),
    ):
        t = ao.regret_constant(columns, parameter)
        assert t.status in (ao.Status.CERTIFIED, ao.Status.CONDITIONAL)
        assert t.value == pytest.approx(s.value, rel=1e-6)
        assert all(a.at_rounding_level for a in t.assumptions)


def test_confidence_widths_where_arms_depend():
    arms = np.array([[1.0, 1, 1], [1, 0, 0]])
    np.testing.assert_allclose(confidence_widths(arms, arms.T @ arms, 1.0), [1, 1])


def test_a_bound_on_an_arm_that_tells_nothing_does_not_let_others_be_scaled():
    """The referee takes the allocation as it is where any bound is given; its own cost is then the upper bound."""
    program = ao.AllocationProgram(
        [[0.0], [-1.0], [-2.0]], [1.0, 1.0, 1.0], [[-1.0]], [1.25e-6], upper=[4e-6, np.inf, np.inf]
    )
    found = ao.solve(program)
    allocation = found.allocation * (1 + 1e-9)
    again = recertify(program, allocation, found.multipliers, "interior-point", 1e-8, {})
    assert again.upper >= float(allocation.sum())
    assert again.verify(exact=True).problems == ()


@pytest.mark.parametrize(
    ("arms", "rank", "more", "seed"), [(1200, 2, 1, 351), (1200, 2, 2, 10**6 + 72), (300, 2, 3, 10**6 + 106)]
)
def test_small_rows_of_a_low_rank_product_do_not_add_to_its_rank(arms, rank, more, seed):
    """Their rounding, scaled up with them, was taken for a direction that nothing could be certified in."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(arms, rank)) @ rng.normal(size=(rank, rank + more))
    s = ao.regret_constant(rows, rng.normal(size=rank + more))
    assert s.status is ao.Status.CONDITIONAL
    assert len(s.coordinates) == rank - 1


def test_the_sign_of_a_zero_changes_no_bit():
    """Householder's reflections take a sign from it."""
    rng = np.random.default_rng(0)
    arms = np.round(rng.normal(size=(10, 3)), 1)
    arms[:3, 0] = 0.0
    signed = np.where(arms == 0.0, -0.0, arms)
    costs, radii, lower = rng.uniform(0.1, 2, 10), rng.uniform(0.5, 2, 10), rng.uniform(0, 1, 10)
    one, other = (ao.solve(ao.AllocationProgram(x, costs, x, radii, lower, np.full(10, 20.0))) for x in (arms, signed))
    assert (one.lower, one.upper) == (other.lower, other.upper)
    assert np.array_equal(one.allocation, other.allocation)


def test_prices_that_are_wide_balls_ask_for_more_bits():
    """Scales 1e25 apart: with 128 bits a price was a wide ball, and the lower bound no more than the cost of the lower bounds."""
    scale = np.array([196798.18058774612, 0.013891387656689819, 14828.823184561192, 0.24907271132782188, 2.4999315255198133e-07,
                      12947472.846420022, 0.023365845312444507])  # fmt: skip
    signs = np.array([[-2, 1, -1, 2, 0], [-1, 1, 2, 2, -1], [1, -2, -1, -2, 2], [-1, 1, -2, 2, 1], [2, -2, -1, -1, 0],
                      [0, 2, 2, -2, 0], [-2, 1, -2, 2, 0]]) / 2.0  # fmt: skip
    arms = scale[:, None] * signs
    asked = [0, 1, 2, 4, 5, 6]
    rest = (
        [1.6569229645441728e-07, 21341.796179117835, 10779838.469475145, 0.06389517315515351, 1.1444417367373307e-07,
         7.556670495210642, 31.156918893273918],
        [48038469791.65116, 0.0008618608660181672, 1719645116.512949, 7.047233375119176e-13, 580145505360116.0,
         0.0009623179584782582],
        [0.0, 505.0724327909868, 0.0, 4.8323406797548254e-05, 132738.23291748116, 0.0, 0.0],
        [np.inf, np.inf, 3.761607855674674e-07, np.inf, 3.03520370613475e18, 3.5237706975298447e-09, 24804.499446424037],
    )  # fmt: skip
    for order in ([0, 1, 2, 3, 4], [2, 1, 3, 0, 4]):
        x = arms[:, order]
        s = ao.solve(ao.AllocationProgram(x, rest[0], x[asked], rest[1], rest[2], rest[3]))
        assert s.status is ao.Status.CERTIFIED
        holds(s)


def test_scales_beyond_doubles_are_no_candidates():
    arms = [
        [-1.0, 1.0, 2.0, -1.0, -1.0],
        [2.0, 1.0, -2.0, 2.0, 1.0],
        [2.0, 1.0, 2.0, 1.0, 2.0],
        [-2.0, 2.0, 1.0, -1.0, -1.0],
    ]
    radii = [9.411079895967912e16, 67517.22183665597, 4.632173312136781e17, 0.002774101791239363]
    upper = [527799808970.2633, np.inf, 1.5244003468728817e-18, np.inf]
    s = ao.solve(ao.AllocationProgram(arms, np.ones(4), arms, radii, None, upper))
    assert s.status in (ao.Status.FAILED, ao.Status.INACCURATE, ao.Status.CERTIFIED)
    assert judge(proof_document(s)).problems == []


def test_a_negative_weight_proves_no_finite_time_bound():
    # At the second θ' the best arm stays the best, so K = 0 there, and a negative weight paid for any weight of the first.
    bound = ao.finite_time_bound(ao.LinearBandit(np.eye(3), [1, 0.8, 0.5]), 10**5, 50)
    nowhere = (Fraction(1), Fraction(-100), Fraction(-100))
    changed = replace(
        bound, value=1e4, parameters=(bound.parameters[0], nowhere), regrets=(50.0, 50.0), weights=(1e6, -1e6)
    )
    with pytest.raises(ao.InvalidProof, match=r"weights: expected numbers >= 0, but entry 1 is -1000000"):
        changed.verify()


def test_a_column_of_which_little_is_left_is_no_pivot_of_a_rounded_set():
    # Rank 2 up to rounding. Columns 0 and 4 are nearly proportional: with these as pivots rounding grew to 9.5e-13 and was taken for a
    # direction, but not beside a copied column, where other pivots were chosen.
    arms = np.array([
        [-0.5850236445360771, 0.36671329258059043, 0.38012725034111355, 0.37358521345837653, 0.8588917454994889],
        [-1.2312093620714455, 1.5890332820219828, -0.1409894052583444, -0.7539051407581494, 1.8085092977273483],
        [1.2526246316915093, -1.6072191443166406, 0.13255742449832963, 0.7492037239345085, -1.8399551630151527],
        [-1.1041502512578698, -0.470634199533066, 2.0562069247336, 2.8962868418071803, 1.619712217421449],
        [1.2482901201681063, 1.0150473798731987, -2.880718547610959, -4.184539449165333, -1.8306047810505854],
        [-1.97795554412606, 0.9622108913678629, 1.604873780702515, 1.7862966341832383, 2.903582634427118],
        [-1.6186422751162854, 2.422908587107869, -0.5697356836355404, -1.6202658644371444, 2.3779856964822037],
    ])  # fmt: skip
    theta = np.array(
        [-0.43283969096940716, 1.4736344474001621, 0.4492178419340251, 1.341736186907481, -2.173654626179241]
    )
    u, s, _ = np.linalg.svd(arms)
    gaps = ao.LinearBandit(arms, theta).gaps
    flat = ao.Allocator(u[:, :2] * s[:2]).solve(gaps).value  # two columns, and no question of rank
    for copies in ([], [0], [4], [0, 1, 2, 3, 4]):
        found = ao.regret_constant(np.hstack([arms, arms[:, copies]]), np.append(theta, np.zeros(len(copies))))
        assert found.status is ao.Status.CONDITIONAL
        assert found.value == pytest.approx(flat, rel=1e-8)
