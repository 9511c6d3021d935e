"""Programs with bounds over blocks of arms: both bounds against rationals, what is listed, and every margin."""

import dataclasses

import numpy as np
import pytest
from blocks import BLOCK, in_blocks, unit_arms
from bounded import arms_of, program_of
from exactly import U, dot, gamma, rational, root_up, solved, weighted

import allocopt as ao
from allocopt.base.errors import SolverFailed
from allocopt.certify import verdict
from allocopt.certify.by_block import bounded
from allocopt.certify.by_block.findings import BoundsOverAll
from allocopt.certify.by_block.pricing import merge_prices
from allocopt.certify.by_block.problem import StreamedProblem
from allocopt.certify.certificate import base_price, best_scale, largest_upper
from allocopt.certify.frame import frame_of, images
from allocopt.certify.reduction import bound_error, data_error
from allocopt.linear.dense import squared_row_lengths
from allocopt.linear.floating import ENTRY_ERROR

INF = float("inf")
LOG = float(np.log(1000))


def near(value, exact, ulps=8):
    return abs(rational(float(value)) - exact) <= ulps * U * abs(exact)


def referee(program, allocation, lam):
    """Both bounds of a pair for all arms, exactly; arms of gap 0 are the first axis, and not played here."""
    arms = np.asarray(program.features)
    rows = [r[1:] for r in rational(arms)]
    noise = rational(np.ones(len(arms)) if program.noise_variance is None else program.noise_variance)
    gaps, alpha, lam = (
        rational(x) for x in (1.0 - arms[:, 0], np.where(np.isfinite(allocation), allocation, 0.0), lam)
    )
    on = [i for i, gap in enumerate(gaps) if gap > 0]
    scale = rational(program._blocks.scale)
    radius = {i: scale * gaps[i] ** 2 for i in on}
    # pulls/log n and 4a/Δ², as the exact programs have them
    pulls = program.origin.pulls
    low = {i: rational(pulls[i]) / rational(program.origin.number) if pulls is not None else rational(0.0) for i in on}
    one = rational(program.origin.bandit.noise_variance) if program.noise_variance is None else None
    up = {
        i: 4 * rational(program.origin.number) * (noise[i] if one is None else one) / gaps[i] ** 2
        if pulls is None
        else None
        for i in on
    }
    matrix = weighted([rows[i] for i in on], [alpha[i] / noise[i] for i in on], 2)
    y = {i: solved(matrix, rows[i]) for i in on}
    feasible = all(dot(rows[i], y[i]) <= radius[i] for i in on)
    asked = [i for i in on if lam[i] > 0]
    w = {j: lam[j] / radius[j] for j in asked}
    price = {i: sum((w[j] * dot(rows[i], y[j]) ** 2 for j in asked), rational(0.0)) / noise[i] for i in on}
    total = sum(lam[j] for j in asked)
    strength = sum(w[j] * dot(rows[j], y[j]) for j in asked)
    slope = strength**2 / total if asked else rational(0.0)

    def bound(s):
        value = s * slope
        for i in on:
            left = gaps[i] - s * price[i]
            if left < 0 and up[i] is None:
                return None
            value += min(low[i] * left, up[i] * left) if left < 0 else low[i] * left
        return value

    scales = [rational(0.0)] + [gaps[i] / price[i] for i in on if price[i] > 0]
    lower = max(v for v in map(bound, scales) if v is not None)
    return lower, sum(gaps[i] * alpha[i] for i in on) if feasible else None


def pair_of(problem, seed, size=6, large=1.0):
    rng = np.random.default_rng(seed)
    pool = problem.playable(np.sort(rng.choice(problem.n_arms, size=size + 3, replace=False)))
    return pool, large * rng.uniform(0.5, 2.0, len(pool)), rng.uniform(0.5, 2.0, len(pool))


def kept(problem, bounds):
    """The allocation and multipliers of bounds, over all arms."""
    found = verdict.certified_over_all(problem, bounds, "active-set", 1e-6, None, {})
    return found.allocation, found.multipliers


@pytest.mark.parametrize("kind", ["optimism", "remaining"])
@pytest.mark.parametrize("rows", [1, BLOCK, 100])
def test_both_bounds_hold_for_all_arms_and_are_no_wider_than_they_need_be(kind, rows):
    finite = twice = 0
    for seed in (0, 1, 2, 3, 6, 7, 8, 9):
        arms, theta = arms_of(seed)
        noise = (
            np.random.default_rng(seed).uniform(0.5, 2.0, len(arms)) if seed % 3 == 0 else 2.0 if seed % 3 == 1 else 1.0
        )
        with in_blocks(rows=rows, keep=4):
            program = program_of(kind, arms, theta, seed, noise_variance=noise)
            problem = StreamedProblem(program)
            pool, alpha, lam = pair_of(problem, seed, size=14, large=30.0 if seed < 6 else 1.0)
            found = problem.price(pool, problem.part(pool), alpha, lam)
            allocation, multipliers = kept(problem, found.bounds)
            again = problem.proven(
                np.arange(len(arms)), np.where(np.isfinite(allocation), allocation, 0.0), multipliers
            )
        lower, upper = referee(program, allocation, multipliers)
        assert rational(found.bounds.lower) <= lower
        assert found.bounds.lower >= float(lower) * (1 - 1e-9) - 1e-12
        assert again.lower == pytest.approx(found.bounds.lower, rel=1e-10, abs=1e-12)
        twice += found.looks == 2
        if found.bounds.upper < INF:
            finite += 1
            assert upper is not None and upper <= rational(found.bounds.upper)
            assert found.bounds.upper <= float(upper) * (1 + 1e-9)
            assert again.upper == pytest.approx(found.bounds.upper, rel=1e-10)
    assert finite >= 3 and (twice >= 1 or kind == "remaining")


def test_where_all_arms_ask_for_more_than_the_pool_the_bounds_are_those_of_what_is_kept():
    arms, theta = arms_of(9)
    arms[20] = [0.5, 0.6, 0.6]
    with in_blocks(keep=100):
        bandit = ao.LinearBandit(arms, theta)
        problem = StreamedProblem(ao.programs.remaining(bandit, np.full(40, 1e-3), 1000))
        pool = problem.playable(np.array([0, 3, 5, 7, 8]))
        part, lam = problem.part(pool), np.ones(len(pool))
        found = problem.price(pool, part, np.full(len(pool), 0.5), lam)
        assert found.looks == 2 and 20 in found.targets
        again = problem.price(pool, part, found.bounds.alpha, lam)
        assert again.looks == 1 and again.bounds.alpha.tolist() == found.bounds.alpha.tolist()
        assert (again.bounds.lower, again.bounds.upper) == (found.bounds.lower, found.bounds.upper)
        assert 20 not in again.targets  # it holds now, and was said to be missing all the same


@pytest.mark.parametrize("kind", ["optimism", "remaining", "much remaining"])
def test_bounds_within_bounds_are_those_of_the_frame_with_every_margin(kind):
    arms, theta = arms_of(3)
    with in_blocks(keep=100):
        problem = StreamedProblem(program_of(kind, arms, theta, 3))
        pool = problem.spread(40)
        part = problem.part(pool)
        alpha, lam = np.full(len(pool), 30.0 if kind != "much remaining" else 1e-3), np.linspace(0.5, 1.5, len(pool))
        lam[::3] = 0.0
        if part.upper is not None:
            alpha = np.minimum(alpha, 0.9 * part.upper)
        bounds = problem.price(pool, part, alpha, lam).bounds
    assert bounds.alpha.tolist() == alpha.tolist()  # feasible as it is
    frame = frame_of(part, alpha, lam)
    norm2, prices, errors = images(frame, part.features)
    most = frame.most_price(prices, norm2, errors)
    slope = frame.slope - base_price(part, frame)
    above = largest_upper(part)
    q, lower = best_scale(slope, most, np.full(len(most), INF) if above is None else above)
    up, doubt = 1 + gamma(72), rational(part.bound_error)
    offset = rational(part.offset)
    assert (offset > 0) == (kind != "optimism")
    assert near(bounds.upper, (rational(frame.cost) + offset * (1 + gamma(8))) * (1 + doubt) * up, 3)
    assert near(bounds.lower, (rational(lower) + offset * (1 - 2 * doubt - gamma(8))) / up, 3)
    assert bounds.rounding == 2.0 * frame.drift and bounds.alive == 39
    assert bounds.prices == pytest.approx(prices * q, rel=1e-12)
    squares = part.ratios**2
    assert bounds.constraints == pytest.approx(norm2 * squares, rel=1e-12)
    assert bounds.multipliers == pytest.approx(
        lam / lam.sum() * q * (norm2 * squares @ lam / lam.sum()) ** 2, rel=1e-12
    )
    assert bounds.binding.tolist() == pool[lam > 0].tolist()


def test_binding_within_bounds_are_tight_constraints_and_multipliers_that_count():
    arms = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [0, 0.75, 0.5], [0, 0.9, 0.0], [0, 1.0, 0.0]])
    with in_blocks(keep=100):
        problem = StreamedProblem(ao.programs.optimism(ao.LinearBandit(arms, [1.0, 0, 0]), 1.0))
        for pool in (np.array([1, 2, 3, 4]), np.array([1, 2])):
            part = problem.part(pool)
            alpha, lam = np.zeros(len(pool)), np.zeros(len(pool))
            alpha[:2] = 2.0 * (1 + 1e-7), 3.0  # one constraint nearly tight, with a copy outside
            lam[1] = 1.0
            found = problem.price(pool, part, alpha, lam).bounds
            assert found.constraints[0] == pytest.approx(1.0, abs=1e-6) and found.constraints[1] < 0.7
            # (a copy outside of an arm inside is not listed: it holds with room)
            assert found.binding.tolist() == [1, 2]
        lam[:2] = 1.0, 2e-6
        assert problem.price(pool, part, alpha, lam).bounds.binding.tolist() == [1, 2]
        lam[:2] = 1.0, 0.5e-6
        assert problem.price(pool, part, alpha, lam).bounds.binding.tolist() == [1]
        lam[:2] = 0.0, 0.0
        nothing = problem.price(pool, part, 1.5 * alpha, lam).bounds
        assert nothing.binding.tolist() == [] and nothing.lower <= part.offset  # what λ = 0 proves
        # outside, what is violated
        found = problem.price(
            np.array([2, 3]), problem.part(np.array([2, 3])), np.array([1.0, 2.0]), np.array([1.0, 0.0])
        )
        assert 1 in found.targets and 1 in found.bounds.binding and 4 in found.bounds.binding


def test_the_price_of_what_is_fixed_includes_the_error_of_its_sum():
    arms, theta = arms_of(5)
    with in_blocks():
        problem = StreamedProblem(program_of("remaining", arms, theta, 5))
        pool = problem.spread(40)
        part = problem.part(pool)
    alpha, lam = np.full(len(pool), 3.0), np.linspace(0.5, 1.5, len(pool))
    for share in (1e-6, 1e-3, 1e-2):
        error = dataclasses.replace(part.sum_error, size=share * part.sum_error.within(np.eye(2)) / part.sum_error.size)
        # ||Vᵀ E V|| of the frame's own basis: about ``share``
        basis = frame_of(part, alpha, lam).basis
        error = dataclasses.replace(error, size=share / dataclasses.replace(error, size=1.0).within(basis))
        wrong = dataclasses.replace(part, sum_error=error)
        exact, frame = frame_of(part, alpha, lam), frame_of(wrong, alpha, lam)
        added = error.within(frame.basis)
        assert frame.drift == pytest.approx(exact.drift + added, rel=1e-9, abs=1e-10)
        weights = lam / lam.sum()
        norm2 = ((part.targets @ frame.basis) ** 2).sum(axis=1)
        assert frame.base_slack == pytest.approx(added * (weights @ norm2) / (1 - frame.drift) ** 2, rel=1e-9)
        assert base_price(wrong, frame) >= base_price(part, exact) + frame.base_slack
        assert base_price(wrong, dataclasses.replace(frame, base_slack=0.0)) + frame.base_slack == pytest.approx(
            base_price(wrong, frame), rel=1e-12
        )
    # rows that are known up to 1e-6 only may be longer by that, entry by entry
    vague = frame_of(dataclasses.replace(wrong, error=1e-6), alpha, lam)
    length = np.linalg.norm(part.targets @ vague.basis, axis=1)
    length += 1e-6 * np.linalg.norm(np.abs(part.targets) @ np.abs(vague.basis), axis=1)
    slack = error.within(vague.basis) * (weights @ length**2) / (1 - vague.drift) ** 2
    assert vague.base_slack == pytest.approx(slack, rel=1e-9)
    # and to the last ulps, from the numbers that it is made of
    found = part.targets @ frame.basis
    errors = frame.errors(part.targets, squared_row_lengths(found))
    room, shares = rational(frame.inflation), rational(weights)
    most = [
        (root_up(sum(x * x for x in row)) * room + error) / (1 - rational(frame.drift))
        for row, error in zip(rational(found), rational(errors), strict=True)
    ]
    exactly = rational(added) * sum(w * m * m for w, m in zip(shares, most, strict=True)) * room
    assert near(frame.base_slack, exactly * (1 + gamma(len(pool) + 8)), 8)
    assert frame_of(dataclasses.replace(part, sum_error=dataclasses.replace(error, size=1e9)), alpha, lam) is None


def test_an_allocation_is_enlarged_only_where_constraints_do_not_hold_with_room():
    arms = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [0, 0.5, 0.5], [0.5, 0.25, 0.0]])
    pulls = np.array([0.0, 0.0, 0.0, 1e-3, 0.0])
    with in_blocks(keep=100):
        problem = StreamedProblem(ao.programs.remaining(ao.LinearBandit(arms, [1.0, 0, 0]), pulls, 1000))
        pool = np.array([1, 2])
        part = problem.part(pool)
        for room, same in ((3e-11, True), (1.2e-11, True), (0.8e-11, False), (0.0, False), (-1e-3, False)):
            alpha = np.full(2, 2.0)
            for _ in range(6):  # until g = 1/(1 + room)
                alpha *= frame_bound(part, alpha) * (1.0 + room)
            found = problem.price(pool, part, alpha, np.ones(2))
            assert (found.bounds.alpha.tolist() == alpha.tolist()) == same, room
            assert found.looks == 1  # the pool's own constraints are dealt with before all arms are looked at
            assert (found.bounds.alpha >= alpha).all() and found.bounds.upper < INF
            assert frame_bound(part, found.bounds.alpha) <= 1.0 - 0.99e-11
            assert same or frame_bound(part, found.bounds.alpha) >= 1.0 - 2.1e-11 - max(room, 0.0) - max(
                -2e-3 * room, 0.0
            )
            # what is kept proves what is claimed
            second = problem.price(pool, part, found.bounds.alpha, found.bounds.multipliers)
            assert second.looks == 1 and second.bounds.lower == pytest.approx(found.bounds.lower, rel=1e-14)
    assert (bounded._HOLDS, bounded._REACHED, bounded._FAR) == (1.0 - 1e-11, 1.0 - 2e-11, 4.0)


def frame_bound(part, alpha):
    """The largest constraint of a part, at most."""
    frame = frame_of(part, alpha, np.zeros(len(part.targets)))
    norm2, _, errors = images(frame, part.features)
    return float((frame.most_constraint(norm2, errors) * part.ratios**2).max())


@pytest.mark.parametrize("kind", ["optimism", "remaining"])
def test_arms_that_matter_are_listed_wherever_they_are_copies_too(kind):
    arms, theta = arms_of(7)
    arms[11] = arms[33] = arms[38] = [0.5, 4.0, 4.0]
    with in_blocks(keep=2):
        program = program_of(kind, arms, theta, 7)
        if kind == "remaining":
            program = ao.programs.remaining(program.origin.bandit, 0.01 * (arms[:, 1] < 4.0), 1000)
        problem = StreamedProblem(program)
        pool = problem.playable(np.array([0, 1, 2, 3, 4]))
        found = problem.price(pool, problem.part(pool), np.full(len(pool), 2.0), np.ones(len(pool)))
        assert set(found.targets.tolist()) >= {11, 33, 38} and set(found.features.tolist()) >= {11, 33, 38}
        assert not np.isin(found.features, pool).any() and not np.isin(found.targets, pool).any()
        entering = problem.candidates(np.array([11, 33, 38])).tolist()
    # a copy may be played as much again where there is an upper bound
    assert entering == ([11, 33, 38] if kind == "optimism" else [11])


def test_what_is_left_out_of_a_list_counts_as_the_rest():
    arms, theta = arms_of(2)
    with in_blocks(keep=100):
        problem = StreamedProblem(program_of("optimism", arms, theta, 2))
        pool = problem.playable(np.arange(6))
        part = problem.part(pool)
        alpha, lam = np.minimum(np.full(len(pool), 2.0), part.upper), np.ones(len(pool))
        frame = frame_of(part, alpha, lam)
        all_of_them = problem.scan_bounded(frame, 0.5, 0.01, 0)
        assert all_of_them.rest_constraint <= 0.5 and all_of_them.rest_price <= 0.01
        # both roles of an arm are looked at where one could matter: the other is then known, too
        every = problem.part(problem.playable(np.arange(40)))
        norm2, prices, errors = images(frame, every.features)
        most = frame.most_price(prices, norm2, errors)
        assert all_of_them.price == pytest.approx(most.max(), rel=1e-9)
        listed = np.isin(problem.playable(np.arange(40)), all_of_them.features)
        assert (most[listed] > 0.01).all() and (most[~listed] <= 0.01).all()
        g = frame.most_constraint(norm2, errors) * every.ratios**2
        listed = np.isin(problem.playable(np.arange(40)), all_of_them.targets)
        assert (g[listed] > 0.5).all() and (g[~listed] <= 0.5).all()
        # more than there is room for
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("allocopt.model.arms.survey.KEEP", 1)
            few = problem.scan_bounded(frame, 0.0, 0.0, 1)
        assert len(few.features) == len(few.targets) == 3
        assert few.rest_price == few.price and few.rest_constraint == few.constraint
        assert problem.price(pool, part, alpha, lam).bounds.lower > 0


def test_what_one_block_leaves_out_of_its_list_counts_as_the_rest():
    arms, theta = arms_of(2)
    with in_blocks(rows=100, keep=1):
        problem = StreamedProblem(program_of("optimism", arms, theta, 2))
        pool = problem.playable(np.arange(6))
        frame = frame_of(problem.part(pool), np.full(len(pool), 0.25), np.ones(len(pool)))
        few = problem.scan_bounded(frame, 0.0, 0.0, 1)
        others = problem.playable(np.arange(40))
        every = problem.part(others)
    assert len(few.targets) == len(few.features) == 3
    norm2, prices, errors = images(frame, every.features)
    g = frame.most_constraint(norm2, errors) * every.ratios**2
    p = frame.most_price(prices, norm2, errors)
    assert few.rest_constraint == pytest.approx(g[~np.isin(others, few.targets)].max(), rel=1e-9)
    assert few.rest_price == pytest.approx(p[~np.isin(others, few.features)].max(), rel=1e-9)


def test_every_copy_within_bounds_is_listed_for_each_has_its_own():
    arms, theta = arms_of(2, 10)
    arms = np.repeat(arms, 3, axis=0)
    with in_blocks(rows=100, keep=100):
        problem = StreamedProblem(program_of("optimism", arms, theta, 2))
        pool = problem.playable(np.arange(len(arms)))
        frame = frame_of(problem.part(pool), np.full(len(pool), 0.25), np.ones(len(pool)))
        found = problem.scan_bounded(frame, 0.0, 0.0, 0)
    assert sorted(found.features.tolist()) == sorted(found.targets.tolist()) == pool.tolist()


def test_constraints_of_listed_arms_have_the_margin_of_their_ratios():
    with in_blocks():
        problem = StreamedProblem(program_of("optimism", *arms_of(2), 2))
        part = problem.part(problem.playable(np.arange(12)))
    frame = frame_of(part, np.full(len(part.features), 0.75), np.ones(len(part.targets)))
    norm2, _, errors = images(frame, part.features)
    found = bounded._Priced.of(frame, part).most_constraint
    for most, plain, ratio in zip(found, frame.most_constraint(norm2, errors), part.ratios, strict=True):
        assert near(most, rational(plain) * rational(ratio) ** 2 * rational(frame.inflation), 6)


def test_an_allocation_without_information_is_refused():
    with in_blocks(keep=100):
        problem = StreamedProblem(program_of("optimism", *arms_of(2), 2))
        pool = problem.playable(np.arange(6))
        with pytest.raises(SolverFailed, match="singular"):
            problem.price(pool, problem.part(pool), np.zeros(len(pool)), np.ones(len(pool)))


def test_reports_are_merged_with_what_they_left_out():
    with in_blocks():
        problem = StreamedProblem(program_of("optimism", *arms_of(2), 2))
        pool = problem.playable(np.arange(8))
        one = problem.scan_bounded(frame_of(problem.part(pool), np.ones(len(pool)), np.ones(len(pool))), 0.5, 0.01, 50)
    some = dataclasses.replace(
        one, features=np.arange(3), prices=np.arange(3.0), targets=np.arange(2), constraints=np.arange(2.0),
        constraint=9.0, price=8.0, rest_constraint=0.25, rest_price=0.125,
    )  # fmt: skip
    other = dataclasses.replace(some, rest_constraint=0.5, rest_price=0.0625, constraint=7.0, price=6.0)
    for keep, constraint, price in ((6, 0.5, 0.125), (5, 0.5, 8.0), (4, 0.5, 8.0), (3, 9.0, 8.0)):
        both = merge_prices([some, other], keep)
        assert (both.rest_constraint, both.rest_price) == (constraint, price)
    lost = dataclasses.replace(some, rest_constraint=np.nan, rest_price=np.nan)
    for reports in ([lost, other], [other, lost]):
        both = merge_prices(reports, 10)
        assert np.isnan(both.rest_constraint) and np.isnan(both.rest_price)


@pytest.mark.parametrize("bad", [INF, float("nan")])
def test_what_is_not_a_number_somewhere_proves_nothing(bad, monkeypatch):
    arms, theta = arms_of(2)
    with in_blocks(keep=100):
        problem = StreamedProblem(program_of("remaining", arms, theta, 2))
        pool = problem.spread(40)
        part, alpha, lam = problem.part(pool), np.full(len(pool), 30.0), np.ones(len(pool))
        good = problem.price(pool, part, alpha, lam).bounds
        scan = StreamedProblem.scan_bounded

        def broken(field):
            return lambda *given: dataclasses.replace(scan(*given), **{field: bad})

        monkeypatch.setattr(StreamedProblem, "scan_bounded", broken("rest_constraint"))
        found = problem.price(pool, part, alpha, lam).bounds
        assert found.upper == INF and found.lower == good.lower
        monkeypatch.setattr(StreamedProblem, "scan_bounded", broken("rest_price"))
        with pytest.raises(SolverFailed, match="singular"):
            problem.price(pool, part, alpha, lam)
        monkeypatch.setattr(StreamedProblem, "scan_bounded", scan)
        # constraints that are not listed and do not hold
        for rest, upper in ((1.0, good.upper), (1.0 + 1e-15, INF)):
            monkeypatch.setattr(
                StreamedProblem,
                "scan_bounded",
                lambda *given, x=rest: dataclasses.replace(scan(*given), rest_constraint=x),
            )
            assert problem.price(pool, part, alpha, lam).bounds.upper == upper


def test_a_part_of_a_bounded_program_has_its_bounds():
    arms, theta = arms_of(4)
    noise = np.random.default_rng(4).uniform(0.5, 2.0, len(arms))
    pool = np.array([1, 2, 5])
    for given in (noise, 3.0):
        with in_blocks():
            bandit = ao.LinearBandit(arms, theta, given)
            problem = StreamedProblem(ao.programs.optimism(bandit, 0.75))
            part = problem.part(pool)
            gaps = 1.0 - arms[pool, 0]
            own = noise[pool] if given is noise else 3.0
            assert part.upper == pytest.approx(3.0 * own / gaps, rel=1e-15)
            assert part.base.shape == (0, 2) and part.offset == 0.0 and part.sum_error is None and not part.scalable
            program = problem.program
            assert part.bound_error == data_error(program) + bound_error(
                program
            ) and part.error == ENTRY_ERROR + data_error(program)
            assert (
                program.upper[pool] == pytest.approx(3.0 * own / gaps**2, rel=1e-15)
                and np.isinf(program.upper[program.free]).all()
            )
            assert program.bounded and not program.lower.any()
            pulls = np.arange(40.0)
            problem = StreamedProblem(ao.programs.remaining(bandit, pulls, 1000))
            part, fixed = problem.part(pool), problem.fixed
            assert (
                part.upper is None
                and part.base is fixed.rows
                and part.offset == fixed.cost
                and part.sum_error is fixed.error
            )
            program = problem.program
            assert part.bound_error == data_error(program) + bound_error(program) + fixed.cost_error
            assert program.bounded and np.array_equal(program.lower, pulls / LOG) and np.isinf(program.upper).all()
            assert problem.fixes_something and program._blocks.lower_of(pool).tolist() == (pulls[pool] / LOG).tolist()
            # α of a pair is what is more than fixed
            _, alpha, lam = problem.pair(pool, np.array([1.0, 0.1, 5.0 / LOG]), np.ones(3))
            assert (
                alpha == pytest.approx(gaps * [1.0 - 1 / LOG, 0.0, 0.0], rel=1e-12, abs=1e-15)
                and lam.tolist() == [1.0] * 3
            )
            assert problem.pair(pool, np.zeros(3), np.zeros(3)) is not None
            assert problem.pair(pool, np.full(3, INF), np.zeros(3)) is None
            assert problem.pair(pool, np.zeros(3), np.full(3, np.nan)) is None
            plain = StreamedProblem(ao.programs.remaining(bandit, np.zeros(40), 1000))
            assert not plain.fixes_something and not plain.program.bounded and plain.part(pool).scalable


def test_where_nothing_is_to_be_explored_the_cost_is_that_of_what_is_fixed():
    arms, pulls = np.array([[1.0, 0], [0.5, 0], [0.25, 0], [0.5, 0]]), np.array([7.0, 2.0, 4.0, 0.0])
    with in_blocks():
        problem = StreamedProblem(ao.programs.remaining(ao.LinearBandit(arms, [1.0, 0]), pulls, 1000))
        found = ao.solve(problem.program)
        proven = found.verify()
        bounds = problem.nothing_to_explore()
    cost = (rational(2.0) / 2 + 3 * rational(4.0) / 4) / rational(LOG)
    error = 2 * rational(problem.fixed.cost_error)
    assert near(bounds.upper, rational(problem.fixed.cost) * (1 + error), 4) and near(
        bounds.lower, rational(problem.fixed.cost) * (1 - error), 4
    )
    assert rational(bounds.lower) <= cost <= rational(bounds.upper) and bounds.gap < 1e-12
    assert (
        bounds.rounding == pytest.approx(2.0 * problem.fixed.cost_error) and bounds.alive == 0 and not len(bounds.pool)
    )
    assert found.status.name == "CERTIFIED" and found.value == pytest.approx(float(cost), rel=1e-12)
    assert found.lower <= proven.lower <= proven.upper <= found.upper
    assert np.array_equal(found.allocation, [INF, 2.0 / LOG, 4.0 / LOG, 0.0]) and found.support.tolist() == [1, 2]
    none = BoundsOverAll.nothing_to_explore()
    assert (none.lower, none.upper, none.rounding) == (0.0, 0.0, 0.0)


def test_what_is_fixed_may_be_enough():
    arms, theta = unit_arms(3, 60)
    pulls = np.full(60, 1e6)
    with in_blocks():
        found = ao.solve(ao.programs.remaining(ao.LinearBandit(arms, theta), pulls, 1000))
        bandit = found.program.origin.bandit
        cost = bandit.gaps @ pulls / LOG
        assert found.status.name == "CERTIFIED" and found.value == pytest.approx(cost, rel=1e-10)
        assert found.stats["iterations"] == 0 and found.stats["passes"] == 3  # two sums, one look
        assert np.array_equal(found.allocation[found.support], found.program.lower[found.support])
        assert found.verify().gap < 1e-9
