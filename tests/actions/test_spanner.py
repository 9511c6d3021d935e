"""Laws of barycentric spanners: few arms, bounded coefficients, every arm rebuilt, on nice and on nasty sets."""

from __future__ import annotations

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import hadamard

from allocopt.actions import spanner as module
from allocopt.actions.spanner import Spanner, barycentric_spanner
from allocopt.base.errors import InvalidInstance, InvalidOption, SlowWarning
from allocopt.base.validation import Array

ROUNDING = 1e-12  # a few times RANK: what may be missing from an arm, relative to the terms of its sum
SLACK = 1e-10

BOUNDS = [1.0, 1.5, 2.0]


def random_sets() -> dict[str, Array]:
    rng = np.random.default_rng(7)
    normal = rng.standard_normal((200, 8))
    grid = np.linspace(-1, 1, 300)[:, None]
    return {
        "normal": normal,
        "sphere": normal / np.linalg.norm(normal, axis=1, keepdims=True),
        "positive": rng.uniform(0, 1, (300, 10)),
        "heavy tails": rng.standard_cauchy((100, 6)),
        "rank deficient": rng.standard_normal((150, 4)) @ rng.standard_normal((4, 9)),
        "duplicated": np.repeat(rng.standard_normal((12, 5)), 7, axis=0),
        "more columns than rows": rng.standard_normal((4, 11)),
        "square": rng.standard_normal((6, 6)),
        "one arm": rng.standard_normal((1, 3)),
        "one column": rng.standard_normal((50, 1)),
        "with zeros": np.concatenate([np.zeros((3, 4)), rng.standard_normal((9, 4)), np.zeros((2, 4))]),
        "signs": rng.choice([-1.0, 1.0], (400, 12)),
        "monomials": grid ** np.arange(9),
        "almost collinear": np.ones(5) + 1e-9 * rng.standard_normal((60, 5)),
        "almost on one axis": np.eye(5)[0] + 1e-9 * rng.standard_normal((60, 5)),
        "row scales": normal * 10 ** rng.uniform(-6, 6, (200, 1)),
        "column scales": normal * 10 ** rng.uniform(-6, 6, 8),
        "both scales": normal * 10 ** rng.uniform(-6, 6, (200, 1)) * 10 ** rng.uniform(-6, 6, 8),
        "collinear and scaled": (np.eye(5)[0] + 1e-9 * rng.standard_normal((60, 5)))
        * 10 ** rng.uniform(-6, 6, (60, 1)),
    }


SETS = random_sets()


def assert_spanner(result: Spanner, arms: Array, C: float) -> None:
    """The whole contract, from the arms alone."""
    arms = np.asarray(arms, dtype=np.float64)
    assert result.indices.dtype == np.int64
    assert result.indices.shape == (result.dim,)
    assert result.coefficients.shape == (len(arms), result.dim)
    assert len(set(result.indices.tolist())) == result.dim
    assert np.abs(result.coefficients).max() == result.C
    assert 1.0 <= result.C <= C * (1 + SLACK)
    np.testing.assert_array_equal(result.coefficients[result.indices], np.eye(result.dim))
    assert_rebuilt(result, arms)


def assert_rebuilt(result: Spanner, arms: Array) -> None:
    """Every arm is its combination of the spanner, relative to the size of the terms that are summed."""
    # columns in other units are compared in units of their own: coefficients do not depend on them
    columns = np.linalg.norm(arms / np.maximum(np.abs(arms).max(axis=1, keepdims=True), 1e-300), axis=0)
    arms = arms / np.where(columns > 0, columns, 1.0)
    basis = arms[result.indices]
    missing = np.linalg.norm(result.coefficients @ basis - arms, axis=1)
    terms = np.abs(result.coefficients) @ np.linalg.norm(basis, axis=1)
    assert (missing <= ROUNDING * terms).all()


def squared_volume(rows: list[list[int]]) -> Fraction:
    """det(B Bᵀ) in exact arithmetic."""
    gram = [[Fraction(sum(a * b for a, b in zip(x, y, strict=True))) for y in rows] for x in rows]
    result = Fraction(1)
    for i in range(len(gram)):
        pivot = next((r for r in range(i, len(gram)) if gram[r][i]), None)
        if pivot is None:
            return Fraction(0)
        gram[i], gram[pivot] = gram[pivot], gram[i]
        result *= gram[i][i] * (1 if pivot == i else -1)
        for r in range(i + 1, len(gram)):
            factor = gram[r][i] / gram[i][i]
            gram[r] = [a - factor * b for a, b in zip(gram[r], gram[i], strict=True)]
    return result


def assert_no_swap_enlarges_the_volume(indices: list[int], arms: list[list[int]], C: float) -> None:
    """The definition of the spanner by exact volumes: a swap multiplies the volume by the coefficient."""
    basis = [arms[i] for i in indices]
    volume = squared_volume(basis)
    assert volume > 0
    for arm, j in itertools.product(arms, range(len(basis))):
        swapped = [*basis[:j], arm, *basis[j + 1 :]]
        assert squared_volume(swapped) <= volume * Fraction(C * (1 + SLACK)) ** 2


@pytest.mark.parametrize("C", BOUNDS)
@pytest.mark.parametrize("name", SETS)
def test_every_arm_is_a_combination_with_coefficients_within_c(name: str, C: float) -> None:
    assert_spanner(barycentric_spanner(SETS[name], C), SETS[name], C)


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank deficient", 4),
        ("duplicated", 5),
        ("more columns than rows", 4),
        ("with zeros", 4),
        ("one arm", 1),
        ("almost collinear", 5),
        ("almost on one axis", 5),
        ("both scales", 8),
        ("collinear and scaled", 5),
    ],
)
def test_the_spanner_has_as_many_arms_as_the_span_has_dimensions(name: str, rank: int) -> None:
    assert barycentric_spanner(SETS[name]).dim == rank


@pytest.mark.parametrize("C", BOUNDS)
@pytest.mark.parametrize("d", range(1, 7))
def test_ties_of_the_hypercube_are_settled_at_a_local_maximum(d: int, C: float) -> None:
    arms = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
    result = barycentric_spanner(arms, C)
    assert result.dim == d
    assert_spanner(result, arms, C)


@pytest.mark.parametrize("d", [1, 2, 5, 30])
def test_the_spanner_of_simplex_vertices_and_their_means_is_the_vertices(d: int) -> None:
    rng = np.random.default_rng(d)
    arms = np.concatenate([rng.dirichlet(np.ones(d), 50), np.eye(d), np.full((1, d), 1 / d)])
    result = barycentric_spanner(arms)
    if d > 1:
        assert sorted(result.indices) == list(range(50, 50 + d))
    assert_spanner(result, arms, 1.0)


@settings(max_examples=100, deadline=None)
@given(
    arrays(np.int64, st.tuples(st.integers(1, 7), st.integers(1, 4)), elements=st.integers(-3, 3)),
    st.sampled_from(BOUNDS),
)
def test_no_single_swap_enlarges_the_exact_volume_by_more_than_c(integers: np.ndarray, C: float) -> None:
    assume(integers.any())
    result = barycentric_spanner(integers, C)
    assert result.dim == np.linalg.matrix_rank(integers)
    assert_spanner(result, integers, C)
    assert_no_swap_enlarges_the_volume(result.indices.tolist(), integers.tolist(), C)


@st.composite
def nasty_arms(draw: st.DrawFn) -> Array:
    """Rank deficiency, near duplicates, near collinearity, mixed scales: in any combination."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k, d = draw(st.integers(1, 14)), draw(st.integers(1, 6))
    rank = draw(st.integers(1, d))
    arms = rng.integers(-2, 3, (k, rank)) @ rng.standard_normal((rank, d))
    if draw(st.booleans()):
        arms = arms[rng.integers(0, k, k)] * (1 + 10.0 ** draw(st.integers(-16, -7)) * rng.standard_normal((k, d)))
    if draw(st.booleans()):
        arms = arms[0] + 10.0 ** draw(st.integers(-9, -1)) * arms
    arms = arms * 10 ** (draw(st.sampled_from([0, 6, 12])) * rng.uniform(-1, 1, (k, 1)))
    return arms * 10 ** (draw(st.sampled_from([0, 6, 12])) * rng.uniform(-1, 1, d))


@settings(max_examples=200, deadline=None)
@given(nasty_arms(), st.sampled_from(BOUNDS))
def test_bound_and_reconstruction_survive_nasty_sets(arms: Array, C: float) -> None:
    assume(arms.any())
    result = barycentric_spanner(arms, C)
    assert 1.0 <= result.C <= C * (1 + SLACK)
    scaled, exponents = module.equilibrated(arms)
    scaled = np.ldexp(scaled, exponents[:, None] - exponents[arms.any(axis=1)].max())
    basis = scaled[result.indices]
    missing = np.linalg.norm(result.coefficients @ basis - scaled, axis=1)
    terms = np.abs(result.coefficients) @ np.linalg.norm(basis, axis=1) + np.linalg.norm(scaled, axis=1)
    assert (missing <= ROUNDING * terms).all()


@settings(max_examples=50, deadline=None)
@given(
    arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 5)), elements=st.integers(-3, 3).map(float)),
    st.lists(st.integers(-40, 40), min_size=5, max_size=5),
)
def test_units_of_the_columns_do_not_matter(arms: Array, exponents: list[int]) -> None:
    assume(arms.any())
    scaled = np.ldexp(arms, exponents[: arms.shape[1]])
    before, after = barycentric_spanner(arms), barycentric_spanner(scaled)
    assert before.dim == after.dim
    assert after.C <= 1 + SLACK
    np.testing.assert_allclose(after.coefficients @ arms[after.indices], arms, atol=1e-11)


def test_a_zero_in_the_largest_column_does_not_hide_the_others() -> None:
    # the last arm is zero just where all others have their large entries; scaling by largest entries gets this wrong
    arms = np.array([[-2.0, 1, 3, 0], [0, 2, -1, 3], [-1, -2, 1, 2], [1, 3, -2, 1], [1, -1, 0, 0]])
    arms = arms @ np.diag([1e-20, 1e-14, 1e20, 1e17])
    result = barycentric_spanner(arms)
    assert result.dim == 4
    assert_spanner(result, arms, 1.0)
    np.testing.assert_allclose(result.coefficients @ arms[result.indices], arms, rtol=1e-12, atol=1e-33)


def test_arms_from_the_smallest_to_the_largest_doubles_are_fine() -> None:
    arms = np.diag([1e300, 1.0, 1e-300])
    np.testing.assert_array_equal(
        barycentric_spanner(arms).coefficients, np.eye(3)[barycentric_spanner(arms).indices].T
    )
    assert barycentric_spanner([[1e308, 1e308], [1e-308, -1e-308], [5e-324, 0]]).dim == 2


def test_rounding_of_huge_arms_is_no_direction_to_span_tiny_arms_with() -> None:
    direction = np.array([1.0, 1.0, 1.0]) / 3
    arms = np.array([1e12 * direction, 1e12 * direction * (1 + np.array([2.0, -3, 1]) * 2.0**-52), [0, 1e-12, -1e-12]])
    result = barycentric_spanner(arms)
    assert result.dim == 2
    assert 2 in result.indices
    assert_spanner(result, arms, 1.0)


def test_a_plane_tilted_by_rounding_does_not_add_a_dimension() -> None:
    # the plane of the two long arms is only known to 1e-6; the short arm, which lies in the true plane, is off it
    first, second = np.array([0.3, 0.7, 1.1]), np.array([-0.9, 0.2, 0.6])
    arms = np.array([1e6 * first, 1e6 * (first + 1e-10 * second), 1e-8 * second])
    result = barycentric_spanner(arms)
    assert sorted(result.indices) == [0, 1]
    assert_spanner(result, arms, 1.0)


def test_a_lost_right_angle_does_not_hide_a_tiny_direction() -> None:
    # the direction of the second arm keeps few digits, which must not pass for a new direction of the third
    arms = np.array([[1.1, 1.3, 0], [1.1, 1.3 * (1 + 1e-10), 0], [0.3e-12, 0.7e-12, 0], [0, 0, 1e-22]])
    result = barycentric_spanner(arms)
    assert sorted(result.indices) == [0, 1, 3]
    assert_spanner(result, arms, 1.0)


def test_the_span_of_the_exact_duplicates_is_the_span_of_one_copy() -> None:
    arms = SETS["normal"][:9]
    once, thrice = barycentric_spanner(arms), barycentric_spanner(np.tile(arms, (3, 1)))
    assert sorted(thrice.indices % 9) == sorted(once.indices)
    np.testing.assert_allclose(thrice.coefficients[:9], thrice.coefficients[9:18], rtol=0, atol=1e-14)


def kahan(size: int) -> Array:
    """Arms on which the greedy start is poor: the classical failure of pivoted QR, and one short arm that shows it."""
    s, c = np.sin(1.0), np.cos(1.0)
    triangle = (np.eye(size) - c * np.triu(np.ones((size, size)), 1)) * (s ** np.arange(size))[:, None]
    columns = triangle.T * (1 - 1e-6) ** np.arange(size)[:, None]
    arms = np.concatenate([columns, 0.99 * s ** (size - 1) * np.eye(size)[-1:]]) @ hadamard(size)
    # many tiny arms of equal entries keep the scaling of the columns from helping
    return np.concatenate([arms, 1e-9 * np.random.default_rng(0).choice([-1.0, 1.0], (500, size))])


@pytest.mark.parametrize("C", BOUNDS)
def test_a_poor_start_is_swapped_into_the_bound(C: float) -> None:
    arms = kahan(16)
    start = barycentric_spanner(arms, np.inf)
    assert start.C > 10
    result = barycentric_spanner(arms, C)
    assert result.swaps > 0
    assert_spanner(result, arms, C)


def test_the_start_prefers_long_arms_so_that_scales_cost_no_swaps() -> None:
    for name in ("row scales", "both scales", "heavy tails"):
        assert barycentric_spanner(SETS[name], 2.0).swaps <= 2


@pytest.mark.parametrize("r", [5, 20, 60])
def test_two_approximate_spanners_take_few_swaps_from_any_start(r: int) -> None:
    rng = np.random.default_rng(r)
    arms = rng.standard_cauchy((500, r))
    assert barycentric_spanner(arms, 2.0).swaps <= r
    arms[:r] = np.eye(r)  # the swap loop alone, from a basis that is far too small
    indices, coefficients, swaps = module._swap_until(arms, np.arange(r), 2.0)
    assert r / 2 <= swaps <= 2 * r * np.log2(r)
    assert np.abs(coefficients).max() <= 2.0
    np.testing.assert_allclose(coefficients @ arms[indices], arms, rtol=0, atol=1e-12 * np.abs(arms).max())


def test_swaps_multiply_the_volume_by_more_than_c_each() -> None:
    rng = np.random.default_rng(3)
    arms = np.concatenate([np.eye(10), rng.standard_normal((300, 10))])
    for C in BOUNDS:
        indices, _, swaps = module._swap_until(arms, np.arange(10), C * (1 + 1e-11))
        assert swaps > 0
        assert np.linalg.slogdet(arms[indices])[1] > swaps * np.log(C)


def test_the_loop_ends_where_it_began_if_no_volume_ever_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = module._factorised
    monkeypatch.setattr(module, "_factorised", lambda basis: (*genuine(basis)[:2], 0.0))
    arms = np.concatenate([np.eye(4), np.random.default_rng(0).standard_normal((30, 4))])
    indices, coefficients, swaps = module._swap_until(arms, np.arange(4), 1.0)
    assert (indices.tolist(), swaps) == ([0, 1, 2, 3], 0)
    np.testing.assert_array_equal(coefficients, arms)


def test_updated_coefficients_agree_with_solved_ones() -> None:
    arms = np.concatenate([np.eye(6), np.random.default_rng(1).standard_normal((40, 6))])
    updated = module._exchange(arms.copy(), 17, 2)
    basis = arms[[0, 1, 17, 3, 4, 5]]
    np.testing.assert_allclose(updated, np.linalg.solve(basis.T, arms.T).T, atol=1e-12)


def test_results_are_read_only_and_arms_are_left_alone() -> None:
    arms = SETS["normal"].copy()
    result = barycentric_spanner(arms)
    np.testing.assert_array_equal(arms, SETS["normal"])
    assert arms.flags.writeable
    for array in (result.indices, result.coefficients):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.C = 2.0  # type: ignore[misc]


@pytest.mark.parametrize("C", [0.999, 0, -1, float("nan"), "1", True, [1.0], 1j])
def test_a_bound_below_one_or_no_number_is_refused(C: object) -> None:
    with pytest.raises(InvalidOption, match=r"^C: expected a number >= 1, got ") as caught:
        barycentric_spanner(np.eye(2), C)  # type: ignore[arg-type]
    assert repr(C) in str(caught.value)


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        (np.zeros((3, 2)), "expected at least one arm that is not zero, got none in 3 row"),
        (np.zeros((0, 2)), "expected at least one arm that is not zero, got none in 0 row"),
        (np.zeros((2, 0)), "expected at least one arm that is not zero, got none in 2 row"),
        ([], "expected a matrix of numbers"),
        ([1.0, 2.0], "expected a matrix of numbers"),
        ([[1.0, 2.0], [1.0]], "rows have different lengths"),
        ([[1.0, float("nan")]], "expected finite numbers, but row 0, column 1 is nan"),
        ([[float("inf"), 1.0]], "expected finite numbers, but row 0, column 0 is inf"),
        ([["a", "b"]], "expected a matrix of numbers"),
    ],
)
def test_arms_that_span_nothing_or_are_no_matrix_are_refused(arms: object, message: str) -> None:
    with pytest.raises(InvalidInstance, match="^arms: .*" + message):
        barycentric_spanner(arms)


def test_what_takes_long_is_said_before(monkeypatch):
    monkeypatch.setattr(module, "_LONG", 1e-12)
    with pytest.warns(SlowWarning, match="^barycentric_spanner: 3 arms in 2 dimensions will take about"):
        barycentric_spanner([[1, 0], [0, 1], [1, 1]])
