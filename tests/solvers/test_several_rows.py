"""Arms that show several things: every method, the certificate, balls, the referee and proof files agree, and one row is as ever."""

from __future__ import annotations

import numpy as np
import pytest

import allocopt as ao

METHODS = {"interior-point": 1e-8, "active-set": 1e-8, "frank-wolfe": 1e-5, "conic": 1e-4}


def matrices(seed, k=7, d=3, **more):
    rng = np.random.default_rng(seed)
    shown = [rng.normal(size=(int(rng.integers(1, 4)), d)) for _ in range(k)]
    targets = rng.normal(size=(5, d))
    return ao.AllocationProgram(shown, rng.uniform(0.2, 2, k), targets, rng.uniform(0.2, 1, 5), **more)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(4))
def test_every_method_reaches_the_same_proven_interval(method, seed, tmp_path):
    program = matrices(seed)
    found = ao.solve(program, method, tol=METHODS[method])
    sharp = ao.solve(program, tol=1e-9)
    assert found.status is sharp.status is ao.Status.CERTIFIED
    assert found.lower <= sharp.upper and sharp.lower <= found.upper
    exact = found.verify(exact=True)
    assert not exact.problems and found.lower <= exact.lower <= exact.upper <= found.upper
    found.save(tmp_path / "proof.json")
    again = ao.load_solution(tmp_path / "proof.json")
    assert np.array_equal(again.program.owners, program.owners) and again.status is ao.Status.CERTIFIED


@pytest.mark.parametrize("seed", range(4))
def test_the_value_is_that_of_the_same_program_in_cvxpy(seed):
    cp = pytest.importorskip("cvxpy")
    program = matrices(seed)
    alpha = cp.Variable(program.n_arms, nonneg=True)
    information = sum(alpha[i] * (program.shown(i).T @ program.shown(i)) for i in range(program.n_arms))
    met = [cp.matrix_frac(t, information) <= r for t, r in zip(program.targets, program.radii, strict=True)]
    value = cp.Problem(cp.Minimize(program.costs @ alpha), met).solve(solver="CLARABEL")
    assert abs(ao.solve(program).value / value - 1) < 1e-5


def test_matrices_of_one_row_give_the_same_bits_as_vectors():
    rng = np.random.default_rng(0)
    rows, costs, targets = rng.normal(size=(9, 3)), rng.uniform(0.2, 2, 9), rng.normal(size=(5, 3))
    one = ao.solve(ao.AllocationProgram(rows, costs, targets, np.ones(5)))
    two = ao.solve(ao.AllocationProgram(rows[:, None, :], costs, targets, np.ones(5)))
    assert two.program.owners is None
    assert (one.lower, one.upper, one.allocation.tolist()) == (two.lower, two.upper, two.allocation.tolist())


@pytest.mark.parametrize("seed", range(4))
def test_a_row_that_is_shown_twice_is_a_row_of_half_the_variance(seed):
    rng = np.random.default_rng(seed)
    rows, costs, targets = rng.normal(size=(6, 3)), rng.uniform(0.2, 2, 6), rng.normal(size=(4, 3))
    twice = ao.solve(ao.AllocationProgram([[row, row] for row in rows], costs, targets, np.ones(4)))
    half = ao.solve(ao.AllocationProgram(rows, costs, targets, np.ones(4), noise_variance=0.5))
    assert twice.lower <= half.upper and half.lower <= twice.upper and twice.gap <= 1e-8


def test_a_free_arm_frees_all_its_rows():
    shown = [np.eye(3)[:2], [0, 0, 1], [[1, 0, 1], [0, 1, 1]]]
    found = ao.solve(ao.AllocationProgram(shown, [0, 2, 3], [[1, 1, 1]], [0.5]))
    # modulo the free rows only the last coordinate is left: one unit of it for 2, or two for 3
    assert found.status is ao.Status.CERTIFIED and abs(found.value - 3) < 1e-6 and found.support.tolist() == [2]
    assert not found.verify(exact=True).problems


@pytest.mark.parametrize("more", [{"upper": np.full(7, 40.0)}, {"lower": np.full(7, 0.05)}])
def test_bounds_hold_for_the_arm_and_not_for_its_rows(more):
    found = ao.solve(matrices(3, **more))
    assert found.status is ao.Status.CERTIFIED and not found.verify(exact=True).problems
    assert (found.allocation >= more.get("lower", 0)).all() and (found.allocation <= more.get("upper", np.inf)).all()


def test_every_row_can_have_a_variance_of_its_own():
    noise = [[4.0, 1.0], 0.25]
    program = ao.AllocationProgram([np.eye(2), [[1.0, 1.0]]], [1, 50], np.eye(2), [1, 1], noise_variance=noise)
    assert program.noise_variance.tolist() == [4.0, 1.0, 0.25]
    found = ao.solve(program)
    assert abs(found.value - 4) < 1e-6 and not found.verify(exact=True).problems
    assert found.verify(precision=128).upper <= found.upper


def test_upper_bounds_that_leave_no_room_are_proven_to():
    with pytest.raises(ao.Infeasible, match="at its upper bound"):
        ao.solve(ao.AllocationProgram([np.eye(2)], [1], np.eye(2), [1, 1], upper=[0.5]))


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ([[[1, 0], [0, 1]], [1, 0, 0]], "rows of 2 entries, as arm 0 has, but those of arm 1 have 3"),
        ([[[1, 0], [0]], [1, 0]], "arm 0"),
        ([[[1, 0], [0, np.nan]], [1, 0]], "arm 0"),
        ([[["a", "b"]], [1, 0]], "arm 0"),
    ],
)
def test_what_is_no_matrix_is_refused_with_its_arm(features, words):
    with pytest.raises(ao.InvalidProgram, match=r"^features: ") as caught:
        ao.AllocationProgram(features, [1, 1], [[1, 0]], [1])
    assert words in str(caught.value)


@pytest.mark.parametrize("owners", [[0, 2, 2], [1, 1, 2], [0, 1], [0.0, 1.0, 1.0], [1, 0, 0]])
def test_owners_that_leave_arms_out_or_go_back_are_refused(owners):
    with pytest.raises(ao.InvalidProgram, match=r"^owners: expected 3 whole numbers"):
        ao.AllocationProgram(np.eye(3), [1, 1], [[1, 0, 0]], [1], owners=owners)


def test_a_schedule_of_matrices_meets_the_constraints_of_their_rows():
    program = matrices(1)
    schedule = ao.Schedule.from_solution(ao.solve(program), 10**6)
    counts = np.asarray(schedule.pulls, dtype=float)
    information = sum(n * program.shown(i).T @ program.shown(i) for i, n in enumerate(counts))
    norms = np.einsum("ij,ji->i", program.targets, np.linalg.solve(information, program.targets.T))
    np.testing.assert_allclose(schedule.check().finite_norms, norms, rtol=1e-9)
