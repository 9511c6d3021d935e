"""The certificate over blocks of arms: both bounds against rationals, and every margin of the cheap look at all arms.

The best arm is the first axis, so that the quotient by it is the other columns, without rounding.
"""

import dataclasses

import numpy as np
import pytest
from blocks import in_blocks
from bounded import arms_of
from exactly import U, dot, gamma, rational, solved, weighted

import allocopt as ao
from allocopt.base.errors import SolverFailed
from allocopt.certify import verdict
from allocopt.certify.by_block.findings import BoundsOverAll
from allocopt.certify.by_block.problem import StreamedProblem
from allocopt.certify.frame import frame_of, images
from allocopt.linear.floating import ENTRY_ERROR, GAP_ERROR, UNIT

INF = float("inf")


def near(value, exact, ulps=8):
    return abs(rational(float(value)) - exact) <= ulps * U * abs(exact)


def streamed(arms, theta):
    return StreamedProblem(ao.programs.regret(ao.LinearBandit(arms, theta)))


def referee(arms, gaps, scale, allocation, lam):
    """Both bounds of a pair for all arms, exactly; arms of gap 0 are the first axis."""
    rows = [r[1:] for r in rational(arms)]
    gaps, alpha, lam = (rational(x) for x in (gaps, allocation, lam))
    on = [i for i, gap in enumerate(gaps) if gap > 0]
    radius = {i: rational(scale) * gaps[i] ** 2 for i in on}
    matrix = weighted([rows[i] for i in on], [alpha[i] for i in on], 2)
    y = {i: solved(matrix, rows[i]) for i in on}
    worst = max(dot(rows[i], y[i]) / radius[i] for i in on)
    played = [i for i in on if lam[i] > 0]
    w = {j: lam[j] / radius[j] for j in played}
    strength = sum(w[j] * dot(rows[j], y[j]) for j in played)
    price = max(sum(w[j] * dot(rows[i], y[j]) ** 2 for j in played) / gaps[i] for i in on)
    cost = sum(gaps[i] * alpha[i] for i in on)
    return strength**2 / sum(lam[j] for j in played) / price, cost * worst


def pair_of(problem, arms, seed, size=4):
    """A pair on a few arms, anywhere."""
    rng = np.random.default_rng(seed)
    pool = problem.playable(np.sort(rng.choice(len(arms), size=size + 3, replace=False)))
    return pool, rng.uniform(0.5, 2.0, len(pool)), rng.uniform(0.5, 2.0, len(pool))


def full(length, places, values):
    result = np.zeros(length)
    result[places] = values
    return result


@pytest.mark.parametrize("rows", [1, 3, 7, 100])
def test_both_bounds_hold_for_all_arms_and_are_no_wider_than_they_need_be(rows):
    for seed in range(6):
        arms, theta = arms_of(seed)
        gaps = 1.0 - arms[:, 0]
        with in_blocks(rows=rows):
            problem = streamed(arms, theta)
            pool, allocation, lam = pair_of(problem, arms, seed)
            found = problem.price(pool, problem.part(pool), allocation * gaps[pool], lam)
            again = problem.proven(pool, allocation, lam)
        exact = referee(arms, gaps, problem.blocks.scale, full(len(arms), pool, allocation), full(len(arms), pool, lam))
        for bounds in (found.bounds, again):
            assert rational(bounds.lower) <= exact[0] <= rational(bounds.lower * (1 + 1e-11))
            assert rational(bounds.upper * (1 - 1e-11)) <= exact[1] <= rational(bounds.upper)
        assert found.complete
        assert found.bounds.alive == len(arms) - 1


@pytest.mark.parametrize("place", [0, 6, 7, 20, 39])
@pytest.mark.parametrize("kind", ["short gap", "long"])
def test_one_arm_that_matters_is_found_wherever_it_is(place, kind):
    rng = np.random.default_rng(place)
    arms = np.concatenate([np.zeros((40, 1)), rng.integers(-8, 9, size=(40, 2)) / 64.0], axis=1)
    arms[:, 1:][~arms[:, 1:].any(axis=1)] = 0.125
    arms[[10, 11, 12]] = [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]]
    arms[place] = [0.75, 0.5, 0.5] if kind == "short gap" else [0.0, 3.0, 3.0]
    gaps = 1.0 - arms[:, 0]
    with in_blocks():
        problem = streamed(arms, np.array([1.0, 0, 0]))
        pool = np.array([11, 12])
        found = problem.price(pool, problem.part(pool), np.ones(2), np.ones(2), last=True)
    exact = referee(arms, gaps, problem.blocks.scale, full(40, pool, [1.0, 1.0]), full(40, pool, [1.0, 1.0]))
    assert rational(found.bounds.lower) <= exact[0] <= rational(found.bounds.lower * (1 + 1e-11))
    assert rational(found.bounds.upper * (1 - 1e-11)) <= exact[1] <= rational(found.bounds.upper)
    assert found.features.tolist() == [place] and found.targets.tolist() == [place]
    assert found.bounds.binding.tolist() == sorted([11, 12, place])


def test_bounds_over_all_are_those_of_the_frame_with_every_margin():
    arms = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [0, 0.5, 0.5], [0, 0.25, 0.0]])
    for more, theta in ((0.0, [1.0, 0, 0]), (1.0, [1.0, 0, 0])):  # the worst arm in the pool, and outside
        rows = arms.copy()
        rows[4, 2] = more
        with in_blocks():
            problem = streamed(rows, np.array(theta))
            pool, played, lam = np.array([1, 2]), np.full(2, 4.0), np.array([1.0, 3.0])
            part = problem.part(pool)
            frame = frame_of(part, played, lam)
            bounds = problem.price(pool, part, played, lam).bounds
            every = problem.part(np.array([1, 2, 3, 4]))
        norm2, prices, errors = images(frame, every.features)
        ratio = 2 if problem.blocks.scale == 0.5 else None
        up, doubt = 1 + gamma(72), rational(part.bound_error)
        own = [rational(x) * ratio for x in frame.most_constraint(norm2, errors)]
        margins = [up, up, None, 1 + 16 * U]
        reached = max(own[i] * margins[i] for i in ((0, 1, 3) if more else (0, 1)))
        worst = reached * (1 + 32 * U) * (1 + doubt)
        assert near(bounds.upper, rational(frame.cost) * worst * up, 8)
        assert near(bounds.alpha[0], 4 * worst, 6)
        price = max(rational(frame.most_price(prices, norm2, errors)))
        assert near(bounds.lower, rational(frame.strength) ** 2 / up / price / up, 8)
        assert bounds.rounding == 2.0 * frame.drift
        assert bounds.prices == pytest.approx(prices[:2] / float(price), rel=1e-12)
        assert bounds.constraints == pytest.approx(norm2[:2] * 2.0, rel=1e-12)
        # λ in the scale of the dual, for its own arms: Σλ is the bound without margins
        dual = (norm2[:2] @ lam / 4.0 * 2.0) ** 2 / prices.max() if not more else None
        assert more or bounds.multipliers.sum() == pytest.approx(dual, rel=1e-9)


def test_binding_are_tight_constraints_and_multipliers_that_count():
    arms = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [0, 0.75, 0.5], [0, 3.0, 3.0], [0, 2.5, 2.5]])
    with in_blocks(keep=2):
        problem = streamed(arms[:4], np.array([1.0, 0, 0]))
        pool = np.array([1, 2, 3])
        found = problem.price(pool, problem.part(pool), np.array([1.0, 2.0, 0.0]), np.array([0.0, 4.0, 2e-6]))
        assert found.bounds.binding.tolist() == [1, 2]
        problem = streamed(arms, np.array([1.0, 0, 0]))
        found = problem.price(pool, problem.part(pool), np.array([1.0, 2.0, 0.0]), np.array([0.0, 4.0, 2e-6]))
        assert found.targets.tolist() == [4, 5] and found.features.tolist() == [4, 5]
        assert found.bounds.binding.tolist() == [2, 4]


def test_the_pool_is_looked_at_whatever_was_screened_out():
    arms = np.array(
        [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 2.0], [0, 0.5, 0.5], [0, 3.0, 3.0], [0, 0.25, 0.0], [0, 0.0, 0.25]]
    )
    with in_blocks():
        problem = streamed(arms, np.array([1.0, 0, 0]))
        pool = np.array([1, 2])
        problem.alive = np.arange(7) == 5
        found = problem.price(pool, problem.part(pool), np.array([1.0, 2.0]), np.array([1.0, 2.0]))
        assert not found.complete and not len(found.features) and not len(found.targets)
        of_pool = referee(
            arms[:3], np.array([0.0, 1, 1]), problem.blocks.scale, np.array([0.0, 1, 2]), np.array([0.0, 1, 2])
        )
    assert rational(found.bounds.lower) <= of_pool[0] and of_pool[1] <= rational(found.bounds.upper)
    assert found.bounds.upper == pytest.approx(float(of_pool[1]), rel=1e-11)  # what is dead is not looked at
    assert found.bounds.lower == pytest.approx(float(of_pool[0]), rel=1e-11)
    with in_blocks():
        problem.alive = np.arange(7) == 5
        proven = problem.proven(
            pool, np.array([1.0, 2.0]), np.array([1.0, 2.0])
        )  # what is claimed in the end is so of all arms
    gaps = 1.0 - arms[:, 0]
    exact = referee(arms, gaps, problem.blocks.scale, full(7, pool, [1.0, 2.0]), full(7, pool, [1.0, 2.0]))
    assert rational(proven.lower) <= exact[0] and exact[1] <= rational(proven.upper)


def test_a_part_is_the_canonical_problem_of_some_arms():
    arms, theta = arms_of(0)
    for noise in (1.0, 0.25):
        with in_blocks():
            bandit = ao.LinearBandit(arms, theta, noise)
            problem = StreamedProblem(ao.programs.regret(bandit))
            pool = problem.playable(np.arange(len(arms)))[:5]
            part = problem.part(pool)
        gaps = 1.0 - arms[pool, 0]
        squared = arms[pool, 1:] ** 2 / gaps[:, None]
        units = problem.quotient.units[1:] * problem.quotient.scale
        assert part.features**2 == pytest.approx(squared * units**2, rel=1e-12)
        assert part.ratios == pytest.approx(1.0 / np.sqrt(gaps * problem.blocks.scale), rel=1e-14)
        assert part.targets == pytest.approx(part.features * part.ratios[:, None], rel=1e-14)
        assert part.error == ENTRY_ERROR + GAP_ERROR + 8 * UNIT and part.bound_error == GAP_ERROR + 8 * UNIT
        assert part.scalable and part.rank == 2


def test_pairs_are_kept_where_something_is_known_of_them():
    arms = np.array([[1.0, 0, 0], [0.5, 1.0, 0], [0, 0, 1.0], [0.5, 0.0, 0.0], [0, 0.5, 0.5]])
    with in_blocks():
        problem = streamed(arms, np.array([1.0, 0, 0]))
        one = np.ones(5)
        pool, alpha, lam = problem.pair(np.arange(5), 2.0 * one, 3.0 * one)
        assert pool.tolist() == [1, 2, 4]  # neither the free arm nor its multiple
        assert alpha.tolist() == [1.0, 2.0, 2.0] and lam.tolist() == [3.0, 3.0, 3.0]
        signs = np.array([1.0, -1.0, 1.0, 1.0, 1.0])
        assert problem.pair(np.arange(5), signs, signs)[1].tolist() == [0.0, 1.0, 1.0]
        assert problem.pair(np.arange(5), signs, signs)[2].tolist() == [0.0, 1.0, 1.0]
        hole = np.array([1.0, INF, 1.0, 1.0, 1.0])
        bad = [(x, one) for x in (0 * one, INF * one, -one, hole)]
        for a, b in [*bad, *(pair[::-1] for pair in bad)]:
            assert problem.pair(np.arange(5), a, b) is None
            nothing = problem.proven(np.arange(5), a, b)
            assert (nothing.lower, nothing.upper, nothing.rounding) == (0.0, INF, INF) and not len(nothing.alpha)
        some = problem.proven(np.array([1, 2]), np.ones(2), np.ones(2))
        assert 0.0 < some.lower < some.upper < INF and some.pool.tolist() == [1, 2]
        singular = problem.proven(np.array([1]), np.ones(1), np.ones(1))
        assert (singular.lower, singular.upper, singular.rounding) == (0.0, INF, INF)
        with pytest.raises(SolverFailed):
            problem.price(np.array([1]), problem.part(np.array([1])), np.ones(1), np.ones(1))
        with pytest.raises(SolverFailed):
            problem.price(np.array([1, 2]), problem.part(np.array([1, 2])), np.ones(2), np.zeros(2))


def test_nothing_to_explore_costs_nothing():
    with in_blocks():
        problem = streamed(np.array([[1.0, 0.0], [0.5, 0.0], [0.0, 0.0]]), np.array([1.0, 0.0]))
        found = problem.proven(np.array([1]), np.ones(1), np.ones(1))
    assert problem.rank == 0 and (found.lower, found.upper, found.rounding) == (0.0, 0.0, 0.0)
    nothing = BoundsOverAll.nothing_to_explore()
    assert (nothing.lower, nothing.upper, nothing.gap, nothing.rounding, nothing.alive) == (0.0, 0.0, 0.0, 0.0, 0)
    assert not any(
        map(
            len,
            (nothing.alpha, nothing.multipliers, nothing.constraints, nothing.prices, nothing.pool, nothing.binding),
        )
    )


@pytest.mark.parametrize("bad", [INF, float("nan")])
@pytest.mark.parametrize("field", ["constraint", "price"])
def test_what_is_not_a_number_somewhere_proves_nothing(bad, field, monkeypatch):
    arms, theta = arms_of(0)
    with in_blocks():
        problem = streamed(arms, theta)
        scan = problem._scan
        monkeypatch.setattr(problem, "_scan", lambda *a: (dataclasses.replace(scan(*a)[0], **{field: bad}), True))
        pool = problem.spanning_arms()
        with pytest.raises(SolverFailed):
            problem.price(pool, problem.part(pool), np.ones(len(pool)), np.ones(len(pool)))


# --- passes and solutions


def test_passes_skip_what_was_screened_out_unless_they_are_the_last():
    arms, theta = arms_of(1, 200)
    arms[:, 1:] /= 64.0
    arms[5], arms[6] = [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    gaps = 1.0 - arms[:, 0]
    with in_blocks():
        problem = streamed(arms, theta)
        pool = np.array([5, 6])
        first = problem.price(pool, problem.part(pool), np.ones(2), np.ones(2))
        assert first.complete and problem.alive is None
        second = problem.price(pool, problem.part(pool), np.ones(2), np.ones(2))
        assert second.complete and problem.alive is not None and problem.alive.sum() < 100
        assert problem.alive[5] and problem.alive[6] and second.bounds.alive == problem.alive.sum()
        third = problem.price(pool, problem.part(pool), np.ones(2), np.ones(2))
        assert not third.complete
        last = problem.price(pool, problem.part(pool), np.ones(2), np.ones(2), last=True)
        assert last.complete
        problem.alive = np.ones(200, dtype=bool)
        assert problem.price(pool, problem.part(pool), np.ones(2), np.ones(2)).complete
        problem.alive = np.arange(200) % 2 == 0
        assert not problem.price(pool, problem.part(pool), np.ones(2), np.ones(2)).complete
    exact = referee(arms, gaps, problem.blocks.scale, full(200, pool, [1.0, 1.0]), full(200, pool, [1.0, 1.0]))
    assert rational(last.bounds.lower) <= exact[0] and exact[1] <= rational(last.bounds.upper)


def test_the_sharpest_screening_is_kept():
    arms, theta = arms_of(1, 200)
    with in_blocks():
        problem = streamed(arms, theta)
        pool = problem.spanning_arms()
        problem.price(pool, problem.part(pool), np.ones(len(pool)), np.ones(len(pool)))
        kept = problem.screening
        problem.screening = dataclasses.replace(kept, kappa=1.0)
        problem.price(pool, problem.part(pool), np.ones(len(pool)), np.ones(len(pool)))
        assert problem.screening.kappa == 1.0
        problem.screening = dataclasses.replace(kept, kappa=INF)
        problem.price(pool, problem.part(pool), np.ones(len(pool)), np.ones(len(pool)))
        assert problem.screening.kappa == kept.kappa


def test_a_solution_over_all_is_what_the_bounds_say():
    arms = np.array([[1.0, 0, 0], [0.5, 1.0, 0], [0, 0, 1.0], [0.5, 0.0, 0.0], [0, 0.25, 0.25]])
    with in_blocks():
        problem = streamed(arms, np.array([1.0, 0, 0]))
        pool = np.array([1, 2])
        made = BoundsOverAll(
            5.0, 4.0, np.array([1.0, 2.0]), np.array([3.0, 1.0]), np.ones(2), np.ones(2), 0.0, pool, np.array([1, 2]), 3
        )
        for tol, status, claimed in ((0.5, "CERTIFIED", (4.0, 5.0)), (0.1, "INACCURATE", (4.0, 5.0))):
            found = verdict.certified_over_all(problem, made, "active-set", tol, None, {"n": 1})
            assert found.status.name == status and (found.lower, found.upper) == pytest.approx(claimed, rel=1e-11)
            assert found.allocation.tolist() == [INF, 2.0, 2.0, 0.0, 0.0]
            assert found.multipliers.tolist() == [0.0, 3.0, 1.0, 0.0, 0.0]
            assert found.binding.tolist() == [1, 2] and found.tol == tol and found.stats["n"] == 1
            assert found.method == "active-set" and found.coordinates == problem.coordinates == (1, 2)
            # room only where tol allows it
            assert (found.lower < 4.0) is (found.upper > 5.0) is (status == "CERTIFIED")
        singular = verdict.certified_over_all(
            problem, dataclasses.replace(made, upper=INF), "active-set", 0.5, None, {}
        )
        assert singular.status is ao.Status.FAILED and "singular" in singular.stats["reason"]
        nothing = verdict.certified_over_all(problem, BoundsOverAll.nothing_to_explore(), "active-set", 0.5, None, {})
        assert (nothing.lower, nothing.upper, nothing.status.name) == (0.0, 0.0, "CERTIFIED")


def test_what_is_assumed_of_arms_over_blocks_is_said():
    rng = np.random.default_rng(0)
    arms = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 4))
    with in_blocks():
        problem = streamed(arms, rng.normal(size=4))
        found = ao.solve(problem.program)
    assert problem.rank == 1 and problem.assumptions and found.status is ao.Status.CONDITIONAL
    assert found.assumptions == problem.assumptions == found.verify().assumptions


def test_arms_that_were_written_to_are_not_looked_at():
    arms, theta = arms_of(0)
    arms = arms.copy()
    with in_blocks():
        program = ao.programs.regret(ao.LinearBandit(arms, theta))
        arms[3] += 0.25
        with pytest.raises(ao.AllocoptError, match="chang"):
            StreamedProblem(program)


def test_equal_arms_of_different_variances_are_no_copies():
    """The cheaper of two equal arms to learn from decides the value, whichever comes first."""
    rng = np.random.default_rng(3)
    some = rng.normal(size=(12, 3))
    arms, theta = np.repeat(some, 4, axis=0), rng.normal(size=3)
    for variances in (np.tile([9.0, 1.0, 4.0, 25.0], 12), np.tile([1.0, 25.0, 4.0, 9.0], 12)):
        program = ao.programs.regret(ao.LinearBandit(arms, theta, variances))
        small = ao.solve(program)
        large = ao.solve(ao.programs.regret(ao.LinearBandit(ao.arms.ListedArms(arms), theta, variances)))
        assert large.status is small.status is ao.Status.CERTIFIED
        assert large.value == pytest.approx(small.value, rel=1e-7)
