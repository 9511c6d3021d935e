"""AllocationTracking: the test on the evidence from its definition, no lock-in, degenerate instances, blocks."""

import math

import numpy as np
import pytest

import allocopt as ao
from allocopt import instances
from allocopt.base.errors import InvalidOption
from allocopt.play.simulation.simulate import simulate
from allocopt.policies import AllocationTracking, parse
from allocopt.policies.tracking.allocation_tracking import required_evidence


def needed_evidence(stake):
    """The E of the definition, by bisection."""
    low, high = -60.0, 60.0  # of log E
    for _ in range(200):
        x = (low + high) / 2
        left = math.exp(x) - math.log1p(math.exp(x)) + 1.5 * x
        low, high = (x, high) if left < math.log(stake) - math.log(4 * math.sqrt(math.pi)) else (low, x)
    return math.exp(low)


@pytest.mark.parametrize("stake", [1e-9, 0.1, 1.0, 10.0, 1e4, 1e12, 1e200])
def test_required_evidence_is_where_more_costs_what_it_saves(stake):
    found = required_evidence(stake)
    assert found == pytest.approx(needed_evidence(stake), rel=1e-9)
    z = math.sqrt(2 * found)  # R Δ φ(z)(1 + z²/2)/(2z) = κ E, for R Δ/κ = stake
    density = math.exp(-found) / math.sqrt(2 * math.pi)
    assert stake * density * (1 + found) / (2 * z) == pytest.approx(found, rel=1e-8)


def test_the_level_is_that_of_the_lower_bound_up_to_smaller_terms():
    for exponent in (20, 80, 300):
        level = exponent * math.log(10)
        assert abs(required_evidence(10.0**exponent) - level) < 2 * math.log(level)


@pytest.mark.parametrize("evenness", [0.0, 0.5, 1.0])
def test_the_plan_asks_for_the_solution_of_the_program_with_these_constraints(evenness):
    bandit = instances.random_unit(3, 6, 1)
    coordinates = ao.barycentric_spanner(bandit.arms, 1.0).coefficients
    rng = np.random.default_rng(0)
    player = AllocationTracking(evenness=evenness).start(bandit.arms, 4000)
    pulls, sums, compared = np.zeros(6), np.zeros(6), 0
    for t in range(1, 1500):
        planned = int(player.state.plans[0])
        arm = player.choose()
        if int(player.state.plans[0]) > planned:
            inverse = np.linalg.inv(coordinates.T @ (pulls[:, None] * coordinates))
            means = coordinates @ inverse @ (coordinates.T @ sums)
            leader = int(means.argmax())
            assert int(player.state.leader[0]) == leader == int(player.state.planned[0])
            gaps, needs = np.zeros(6), np.zeros(6)
            for x in range(6):
                if x == leader:
                    continue
                away = coordinates[x] - coordinates[leader]
                square = away @ inverse @ away
                gaps[x] = max(means[leader] - means[x], 1e-3 * math.sqrt(square))
            for x in range(6):
                if x == leader:
                    continue
                away = coordinates[x] - coordinates[leader]
                square = away @ inverse @ away
                evidence, price = gaps[x] ** 2 / (2 * square), math.inf
                for y in range(6):
                    if y != leader:
                        gram = coordinates.T @ (pulls[:, None] * coordinates) + np.outer(coordinates[y], coordinates[y])
                        shrinking = 1 - (away @ np.linalg.inv(gram) @ away) / square
                        cost = gaps[y] + float(player.state.sight.expected[0])
                        price = min(price, cost / (max(shrinking, 1e-300) * evidence))
                needs[x] = needed_evidence(t * gaps[x] / price)
            level = needs.max()
            levels = np.where(needs > 0, needs ** (1 - evenness) * level**evenness, 1)
            about = np.where(needs > 0, gaps * np.sqrt(level / levels), 0)
            wanted = ao.Allocator(bandit.arms, tol=1e-8).solve(about).allocation * level - pulls
            schedule = player.state.schedule
            asked = np.zeros(6)
            size = int(schedule.size[0])
            asked[schedule.arms[:size]] = schedule.shares[:size]
            missing = np.where(np.isfinite(wanted), np.maximum(np.ceil(wanted), 0), 0)
            assert np.abs(asked - missing).max() <= 1 + 0.02 * missing.max()
            compared += 1
        reward = bandit.means[arm] + rng.standard_normal()
        player.update(arm, reward)
        pulls[arm] += 1
        sums[arm] += reward
    assert compared > (20 if evenness == 0.0 else 9)  # even levels ask for fewer plans here


def test_without_noise_the_slope_comes_to_c_and_regret_is_paid_where_the_optimal_allocation_pays_it():
    bandit = instances.random_unit(5, 20, 0)
    solution = ao.regret_constant(bandit.arms, bandit.theta)
    times = [10**8, 10**10, 10**12]
    quiet = ao.LinearBandit(bandit.arms, bandit.theta, 1e-18)
    r = simulate(
        AllocationTracking(),
        quiet,
        10**12,
        1,
        rng=0,
        times=times,
        blockwise=True,
        assumed_noise_variance=1.0,
        workers=1,
    )
    first, _, last = (float(x) for x in r.regret[0])
    assert (last - first) / math.log(10**4) == pytest.approx(solution.value, rel=0.15)
    paid = bandit.gaps * r.pulls[0]
    optimal = np.where(bandit.gaps > 0, bandit.gaps * np.minimum(solution.allocation, 1e300), 0.0)
    assert np.abs(paid / paid.sum() - optimal / solution.value).sum() / 2 <= 0.06


def test_a_misleading_beginning_is_found_out():
    bandit = instances.counter_example(0.05)
    lie = lambda arm, t, rng: float((-2.0, 1.0, 0.0)[arm]) if t <= 2 else float(bandit.means[arm])  # noqa: E731
    r = simulate(AllocationTracking(), bandit, 20_000, 1, rng=0, environment=lie)
    assert r.pulls[0, 0] > 15_000


def test_regret_stays_below_c_log_n_and_that_of_optimism():
    bandit = instances.counter_example(0.05)
    ours = simulate(AllocationTracking(), bandit, 10**5, 20, rng=1, workers=1, blockwise=True).final_regret
    assert ours.mean() < 8 * math.log(10**5)


@pytest.mark.parametrize(
    ("arms", "theta"),
    [
        ([[2.0]], [1.0]),
        ([[1, 0], [0, 1]], [0, 0]),
        ([[1, 0], [1, 0], [1, 0]], [1, 0]),
        ([[0, 0], [1, 0], [0, 1]], [-1, -1]),
        ([[1, 1], [2, 2], [3, 3]], [1, -1]),
        ([[1, 0, 0], [0, 1, 0]], [1, 0, 5]),
    ],
    ids=["one arm", "all tied", "duplicates", "zero is optimal", "one direction, all tied", "k < d"],
)
@pytest.mark.parametrize("horizon", [3, 600])
def test_degenerate_instances(arms, theta, horizon):
    r = simulate(AllocationTracking(), ao.LinearBandit(arms, theta), horizon, 2, rng=0)
    assert (r.pulls.sum(axis=1) == horizon).all()


def test_a_run_does_not_depend_on_the_runs_before_it():
    bandit = instances.random_unit(3, 6)
    many = simulate(AllocationTracking(), bandit, 1000, 3, rng=4, workers=1)
    player_only = simulate(AllocationTracking(), bandit, 1000, 1, rng=4, workers=1)
    np.testing.assert_array_equal(many.pulls[0], player_only.pulls[0])


def test_bad_parameters_are_named_and_names_are_read_again():
    with pytest.raises(InvalidOption, match="prudence: expected a positive, finite number"):
        parse("AllocationTracking:prudence=0")
    with pytest.raises(InvalidOption, match=r"evenness: expected a number between 0 and 1, got 1\.5"):
        parse("AllocationTracking:evenness=1.5")
    with pytest.raises(InvalidOption, match="evenness"):
        AllocationTracking(evenness=-0.1)
    assert parse(AllocationTracking(2.5).name) == AllocationTracking(2.5)
    assert parse("AllocationTracking:evenness=0.5") == AllocationTracking(evenness=0.5)
