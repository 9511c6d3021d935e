"""Schedules: every constraint of T_n is met, orders of play do what their rules say, nothing is lost or overwritten."""

import csv
import dataclasses
import json
import math
import sys
from itertools import islice, pairwise, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import bandits

import allocopt as ao
from allocopt.cli import main as cli
from allocopt.cli import schedule as schedule_command
from allocopt.insight.instances import counter_example, finite_armed, soare
from allocopt.model.levels import f_n
from allocopt.model.programs import horizon_at_level
from allocopt.play.schedule.play_order import ORDERS, Tracking, merged, order_of_play
from allocopt.play.schedule.rounding import LONGEST, efficient_apportionment
from allocopt.play.schedule.schedule import Schedule

assert schedule_command  # importing it adds the command
EASY = (
    "plain",
    "integers",
    "duplicates",
    "collinear",
    "rank-deficient",
    "as many arms as dimensions",
    "zero is optimal",
    "exact ties",
)
orders = st.sampled_from(ORDERS)
seeds = st.integers(0, 2**32 - 1)


def regret(bandit):
    return ao.solve(ao.programs.regret(bandit))


def playable(bandit):
    """The regret solution of a generated bandit; a FAILED one has no schedule (and is refused, see below)."""
    solution = regret(bandit)
    assume(solution.status is not ao.Status.FAILED)
    return solution


def counted(arms, n_arms):
    return np.bincount(np.array(arms, dtype=int), minlength=n_arms)


# ------------------------------------------------------------------ constraints


@given(bandits(), st.integers(3, LONGEST), orders)
def test_a_complete_schedule_meets_every_constraint(bandit, n, order):
    s = Schedule.from_solution(playable(bandit), n, order=order)
    assert s.pulls.sum() == s.length == n
    check = s.check()
    if s.complete:
        assert check.met
        assert (s.pulls[s.solution.support] == np.ceil(s.allocation[s.solution.support])).all()
        assert not len(check.unmet)
    else:
        assert any("does not fit" in note for note in s.notes)
    np.testing.assert_allclose(check.radii, bandit.gaps[check.arms] ** 2 / f_n(n, bandit.rank), rtol=1e-12)
    assert (check.finite_norms >= check.norms * (1 - 1e-6)).all()


@given(bandits(kinds=EASY), st.integers(10**6, 10**12), st.floats(1e-3, 1e3))
def test_the_norms_are_those_of_the_definition(bandit, n, variance):
    """Against plain linear algebra: G_t with the real counts, and with optimal arms that are played ever more often."""
    assume(bandit.rank == bandit.dim)
    noisy = ao.LinearBandit(bandit.arms, bandit.theta, variance)
    s = Schedule.from_solution(playable(noisy), n, order="explore-first")
    counts = s.pulls.astype(float)
    assume(np.linalg.cond(bandit.arms[counts > 0]) < 1e3)
    assume(np.linalg.matrix_rank(bandit.arms[counts > 0]) == bandit.dim)
    assume(s.complete and counts.max() < 1e10)
    check = s.check()
    x = bandit.arms[check.arms]

    def norms(counts):
        factor = np.linalg.qr(bandit.arms * np.sqrt(counts)[:, None], mode="r")
        return (np.linalg.solve(factor.T, x.T) ** 2).sum(axis=0)

    np.testing.assert_allclose(check.finite_norms, norms(counts), rtol=1e-6)
    counts[s.free_arms] = 1e7 * counts.max()
    # what is left of the finite plays is tiny against the radii, though not against a norm of zero
    np.testing.assert_allclose(check.norms / check.radii, norms(counts) / check.radii, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(check.radii, noisy.gaps[check.arms] ** 2 / (variance * f_n(n, bandit.rank)), rtol=1e-12)
    np.testing.assert_array_equal(check.slack, check.radii - check.norms)
    np.testing.assert_array_equal(check.finite_slack, check.radii - check.finite_norms)


def test_the_excess_of_finite_plays_vanishes():
    solution = regret(counter_example(0.01))
    excess = []
    for n in (10**3, 10**5, 10**7):
        check = Schedule.from_solution(solution, n).check()
        excess.append(((check.finite_norms - check.norms) / check.radii).max())
    assert excess[0] > 20 * excess[1] > 400 * excess[2] > 0


def test_pulls_are_not_enough_one_pull_earlier():
    """The check can fail: one pull less than ⌈T⌉ of the arm that decides."""
    s = Schedule.from_solution(regret(counter_example(0.01)), 10**6, order="explore-first")
    needed = int(s.required[1])
    assert s.check(needed).met
    before = s.check(needed - 1)
    assert not before.met
    assert before.unmet.tolist() == [2]
    assert before.worst > 1
    assert not np.isfinite(s.check(0).norms).any()


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=6), st.integers(3, 10**12), orders)
def test_finite_armed_bandits_play_f_n_over_the_squared_gap(gaps, n, order):
    s = Schedule.from_solution(playable(finite_armed([0.0, *gaps])), n, order=order)
    level = f_n(n, len(gaps) + 1)
    wanted = level / 2 * 2 / np.array(gaps) ** 2
    np.testing.assert_allclose(s.allocation[1:], wanted, rtol=1e-7)
    assume(s.complete)
    assert (
        np.abs(s.pulls[1:] - np.ceil(wanted)) <= 1e-6 * wanted + (wanted % 1 < 1e-6) + (wanted % 1 > 1 - 1e-6)
    ).all()
    constant = sum(2 / g for g in gaps)
    assert level / 2 * constant * (1 - 1e-9) <= s.regret <= (level / 2 * constant) * (1 + 1e-7) + sum(gaps)


@given(seeds, st.integers(2, 5), st.integers(3, 10**9))
def test_lemma_opt_holds_for_schedules(seed, d, n):
    """Σ T <= 2 d³ f_n Δ_max/Δ_min³; ceilings add at most one pull an arm of the support."""
    rng = np.random.default_rng(seed)
    arms, gaps = rng.normal(size=(3 * d, d)), rng.uniform(0.05, 1, 3 * d)
    gaps[: 1 + seed % 2] = 0.0
    solution = ao.optimal_pulls(arms, gaps, n)
    s = Schedule.from_solution(solution, n)
    bound = 2 * d**3 * f_n(n, d) * gaps.max() / gaps[gaps > 0].min() ** 3
    explored = int(s.pulls.sum() - s.pulls[gaps == 0].sum())
    assert explored <= bound + len(solution.support)
    assert s.scale == 1.0
    assert s.losses is solution.program.costs


@given(seeds, st.integers(2, 4), st.floats(-8, -1))
def test_lemma_t_bound_holds_for_the_passes(seed, d, exponent):
    """After m·f_n passes the counts are min(m·f_n, ⌈T⌉), and norms are at most 1.01·max(ε², Δ²)/f_n."""
    rng = np.random.default_rng(seed)
    arms, gaps = rng.normal(size=(3 * d, d)), rng.uniform(0.1, 1, 3 * d)
    gaps[0], gaps[1] = 0.0, 10.0**exponent
    n, epsilon = 10**15, 0.05
    s = Schedule.from_solution(ao.optimal_pulls(arms, gaps, n), n)
    passes = math.ceil(1e6 * d**2 / epsilon**2 * f_n(n, d))
    truncated = np.minimum(s.required, passes)
    t = int(truncated.sum())
    assume(t <= n)
    np.testing.assert_array_equal(s.pulls_at(t), truncated)
    assert (s.check(t).finite_norms <= 1.01 * np.maximum(epsilon**2, gaps[1:] ** 2) / f_n(n, d)).all()


# ------------------------------------------------------------------ orders of play


def passes(quota, free, rounds):
    """The paper's success phase, literally: pass after pass over the arms that are not done."""
    played, sequence = np.zeros(len(quota), dtype=int), []
    while len(sequence) < rounds:
        now = [i for i in range(len(quota)) if i in free or played[i] < quota[i]]
        if not now:
            break
        for i in now:
            played[i] += 1
            sequence.append(i)
    return sequence[:rounds]


def largest_deficit(weights, rounds):
    """Play by play: the arm that is furthest behind its share."""
    played, sequence = np.zeros(len(weights)), []
    for _ in range(rounds):
        due = [(played[i] + 0.5) / w if w > 0 else np.inf for i, w in enumerate(weights)]
        sequence.append(int(np.argmin(due)))
        played[sequence[-1]] += 1
    return sequence


@st.composite
def quotas(draw):
    quota = np.array(draw(st.lists(st.integers(0, 12), min_size=1, max_size=7)), dtype=float)
    free = np.array(sorted(draw(st.sets(st.integers(0, len(quota) - 1), max_size=3))), dtype=np.int64)
    quota[free] = np.inf
    most = 60 if len(free) else int(quota.sum())
    return quota, free, draw(st.integers(0, most))


def sequence_of(order, rounds):
    out = []
    for arm, count in order.runs():
        out += [arm] * min(count, rounds - len(out))
        if len(out) == rounds:
            break
    return out


@given(quotas())
def test_interleaved_is_the_papers_passes(case):
    quota, free, rounds = case
    assert sequence_of(order_of_play("interleaved", quota, free, rounds), rounds) == passes(quota, free, rounds)


@given(quotas())
def test_tracking_plays_the_largest_deficit(case):
    quota, free, rounds = case
    order = order_of_play("tracking", quota, free, rounds)
    assert isinstance(order, Tracking)
    assert sequence_of(order, rounds) == largest_deficit(order.weights, rounds)


@given(quotas())
def test_explore_first_has_one_run_an_arm(case):
    quota, free, rounds = case
    sequence = sequence_of(order_of_play("explore-first", quota, free, rounds), rounds)
    runs = [arm for arm, _ in merged(((a, 1) for a in sequence), rounds)]
    assert len(set(runs)) == len(runs)
    explored = [a for a in runs if a not in free]
    assert runs[: len(explored)] == sorted(explored)


@given(quotas(), orders)
def test_counts_at_any_round_are_those_of_the_sequence(case, name):
    quota, free, rounds = case
    order = order_of_play(name, quota, free, rounds)
    sequence = sequence_of(order, rounds)
    assert len(sequence) == rounds
    for t in range(rounds + 1):
        np.testing.assert_array_equal(order.pulls_at(t), counted(sequence[:t], len(quota)))
    if name != "interleaved" and quota[np.isfinite(quota)].sum() <= rounds:
        finite = np.isfinite(quota)
        assert (order.pulls_at(rounds)[finite] == quota[finite]).all()
        rest = order.pulls_at(rounds)[free]
        assert not len(rest) or rest.max() - rest.min() <= 1


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=8), st.floats(0, 1))
def test_tracking_never_strays_from_the_shares(weights, fraction):
    w = np.array(weights, dtype=float)
    total = sum(weights)
    t = int(fraction * total)
    played = Tracking(w).pulls_at(t)
    assert played.sum() == t
    assert (np.abs(played - w * (t / total)) <= 0.5 + len(w) * w / (2 * total) + 1e-3).all()
    np.testing.assert_array_equal(Tracking(w).pulls_at(total), weights)


@given(bandits(kinds=EASY), st.integers(3, 3000), orders, seeds)
def test_iteration_runs_and_counts_agree(bandit, n, order, seed):
    s = Schedule.from_solution(playable(bandit), n, order=order)
    rounds = list(s)
    assert len(rounds) == len(s) == s.length
    runs = list(s.runs())
    assert [a for a, count in runs for _ in range(count)] == rounds
    assert all(a[0] != b[0] for a, b in pairwise(runs))
    for t in np.random.default_rng(seed).integers(0, n + 1, 5).tolist():
        np.testing.assert_array_equal(s.pulls_at(t), counted(rounds[:t], bandit.n_arms))
        assert s.regret_at(t) == pytest.approx(bandit.gaps[rounds[:t]].sum(), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("order", ORDERS)
def test_a_billion_rounds_take_no_time(order):
    s = Schedule.from_solution(regret(ao.LinearBandit(np.eye(4), [1, 0.9, 0.8, 0.95])), 10**9, order=order)
    assert s.complete
    assert sum(s.pulls_at(10**9 - 1)) == 10**9 - 1
    assert len(list(islice(s, 1000))) == 1000
    assert sum(count for _, count in s.runs()) == 10**9
    # the k-th run starts where the counts say
    t = 0
    for arm, count in islice(s.runs(), 50):
        assert (s.pulls_at(t + count) - s.pulls_at(t))[arm] == count
        t += count


# ------------------------------------------------------------------ rounding


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=4), st.integers(0, 9), seeds)
def test_efficient_apportionment_is_the_best_there_is(weights, extra, seed):
    w = np.array(weights)
    n = len(w) + extra
    spent = np.random.default_rng(seed).integers(0, 2, len(w)) * (seed % 2)
    counts = efficient_apportionment(w, n, spent)
    assert counts.sum() == n
    assert (counts >= spent).all()
    best = max(
        (np.array(c) / w).min()
        for c in product(range(n + 1), repeat=len(w))
        if sum(c) == n and (np.array(c) >= spent).all()
    )
    assert (counts / w).min() == pytest.approx(best, rel=1e-12)


@given(st.lists(st.floats(1e-9, 1), min_size=1, max_size=40), st.integers(1, 10**15))
def test_efficient_apportionment_loses_at_most_one_round_an_arm(weights, n):
    w = np.array(weights)
    assume(n >= len(w))
    counts = efficient_apportionment(w, n)
    assert counts.sum() == n
    assert counts.min() >= 1
    assert (counts / (n * w / w.sum())).min() >= (1 - len(w) / n) * (1 - 1e-12)


@given(
    bandits(kinds=("plain", "duplicates", "rank-deficient", "as many arms as dimensions")),
    st.integers(20, 10**9),
    orders,
)
def test_designs_spend_exactly_the_horizon_and_lose_little(bandit, n, order):
    for program in (ao.programs.g_optimal(bandit.arms), ao.programs.best_arm(bandit)):
        solution = ao.solve(program)
        support = len(solution.support)
        if n < support:
            continue
        s = Schedule.from_solution(solution, n, order=order)
        assert s.pulls.sum() == n
        check = s.check()
        np.testing.assert_allclose(check.radii, program.radii * solution.value / n, rtol=1e-6)
        if n > support:
            assert check.worst <= (1 + 1e-6) / (1 - support / n)
        np.testing.assert_allclose(check.norms, check.finite_norms)


def test_efficient_rounding_of_a_regret_solution_keeps_its_number_of_pulls():
    solution = regret(ao.LinearBandit(np.eye(4), [1, 0.5, 0.4, 0.3]))
    s = Schedule.from_solution(solution, 10**5, rounding="efficient")
    assert s.pulls[1:].sum() == math.ceil(s.allocation[1:].sum())
    s = Schedule.from_solution(solution, 10**5, rounding="efficient", exploration=50)
    assert s.pulls[1:].sum() == 50
    assert not s.check().met
    assert s.pulls.sum() == 10**5


# ------------------------------------------------------------------ what was played, other programs


@given(bandits(kinds=EASY), seeds, orders)
def test_what_was_played_counts(bandit, seed, order):
    played = np.random.default_rng(seed).integers(0, 30, bandit.n_arms)
    n = 10**9
    s = Schedule.from_solution(playable(bandit), n, played, order=order)
    fresh = Schedule.from_solution(playable(bandit), n, order=order)
    assert s.length == n - played.sum()
    assume(s.complete)
    assert s.check().met
    rest = ~np.isinf(s.required)
    np.testing.assert_array_equal(s.pulls[rest], np.maximum(fresh.pulls - played, 0)[rest])
    assert s.total_regret == pytest.approx(s.regret + bandit.gaps @ played)
    assert s.check(0).t == 0


def test_nothing_is_left_to_play_when_all_rounds_were():
    s = Schedule.from_solution(regret(counter_example(0.1)), 1000, [0, 1000, 0])
    assert (s.length, list(s), list(s.runs()), s.regret) == (0, [], [], 0.0)
    assert s.check().met


def test_remaining_solutions_play_what_remains():
    bandit = ao.LinearBandit(np.eye(3), [1, 0.5, 0.4])
    solution = ao.solve(ao.programs.remaining(bandit, [50, 100, 2], 1000))
    s = Schedule.from_solution(solution, 1000)
    np.testing.assert_array_equal(s.played, [50, 100, 2])
    assert s.scale == math.log(1000)
    assert s.pulls[1] == 0  # 100 are more than enough, and not one more is asked for
    assert s.pulls[2] == math.ceil(2 / 0.36 * math.log(1000)) - 2
    assert s.check().met
    with pytest.raises(ao.InvalidOption, match="horizon: expected 1000"):
        Schedule.from_solution(solution, 1001)
    with pytest.raises(ao.InvalidOption, match='level: expected "log"'):
        Schedule.from_solution(solution, 1000, level="f_n")


def test_levels():
    solution = regret(counter_example(0.1))
    n = 10**6
    by_log = Schedule.from_solution(solution, n, level="log")
    assert by_log.pulls[1] == math.ceil(solution.allocation[1] * math.log(n))
    assert Schedule.from_solution(solution, n, level=10).pulls[1] == math.ceil(solution.allocation[1] * 5)
    assert Schedule.from_solution(solution, n, constant=3).scale == f_n(n, 2, 3) / 2
    optimism = ao.solve(ao.programs.optimism(counter_example(0.1), 2.0))
    assert Schedule.from_solution(optimism, n).scale == math.log(n)
    at_level_7 = ao.solve(horizon_at_level(counter_example(0.1).arms, counter_example(0.1).gaps, 7.0, None))
    assert Schedule.from_solution(at_level_7, n).pulls[1] == Schedule.from_solution(solution, n).pulls[1]
    paper = ao.optimal_pulls(counter_example(0.1).arms, counter_example(0.1).gaps, n, constant=2.5)
    np.testing.assert_array_equal(Schedule.from_solution(paper, n).allocation, paper.allocation)


def test_tied_optimal_arms_share_the_rest_and_it_is_said():
    bandit = ao.LinearBandit([[1, 0, 0], [1, 1, 0], [1, 0, 1], [0.5, 0, 0]], [1, 0, 0])
    for order in ORDERS:
        s = Schedule.from_solution(regret(bandit), 1000, order=order)
        assert np.ptp(s.pulls[:3]) <= 1
        assert any("3 arms have gap 0 (arms 0, 1, 2)" in note for note in s.notes)
        assert s.check().met


def test_an_optimal_zero_arm_takes_the_rest():
    s = Schedule.from_solution(regret(ao.LinearBandit([[0, 0], [-1, 0], [0, -1]], [1, 1])), 1000)
    assert s.complete
    assert s.pulls[0] == 1000 - 2 * math.ceil(f_n(1000, 2))
    assert s.check().finite_met  # x* = 0 carries no information, so counting it changes nothing


def test_without_a_zero_gap_the_schedule_ends():
    s = Schedule.from_solution(ao.optimal_pulls(np.eye(2), [1.0, 2.0], 1000), 1000)
    assert s.length == s.pulls.sum() == np.ceil(s.allocation).sum() < 1000
    assert any("no arm has gap 0" in note for note in s.notes)


@pytest.mark.parametrize("order", ORDERS)
def test_what_does_not_fit_is_said(order):
    solution = regret(finite_armed([0.0, 1e-7, 0.5, 1e-3]))
    s = Schedule.from_solution(solution, 1000, order=order)
    assert not s.complete
    assert s.pulls.sum() == 1000
    assert s.missing.sum() > 1e15
    note = s.notes[-1]
    assert "does not fit" in note
    assert "in the 1000 rounds left" in note
    assert "explore-first" not in note  # that would not fit either
    tight = Schedule.from_solution(regret(counter_example(0.1)), 60, order=order)
    assert tight.complete is (order != "interleaved")
    assert tight.complete or "explore-first or tracking would play them all" in tight.notes[0]


def test_general_programs():
    free = ao.AllocationProgram([[1, 0], [0, 1]], [0, 1], [[1, 1]], [0.3])
    s = Schedule.from_solution(ao.solve(free), 100)
    assert s.pulls.tolist() == [96, 4]
    assert s.check().met
    design = ao.AllocationProgram([[1, 0], [0, 1]], [1, 1], [[1, 2]], [0.3])
    s = Schedule.from_solution(ao.solve(design), 90)
    assert s.pulls.tolist() == [30, 60]
    assert s.regret == 90


# ------------------------------------------------------------------ refusals


def failed(bandit):
    return dataclasses.replace(regret(bandit), status=ao.Status.FAILED, stats={"reason": "because"})


BAD = [
    ("horizon", {"horizon": 2}), ("horizon", {"horizon": 10.5}), ("horizon", {"horizon": "ten"}),
    ("horizon", {"horizon": math.inf}), ("horizon", {"horizon": LONGEST + 1}), ("horizon", {"horizon": True}),
    ("played", {"played": [1, 2]}), ("played", {"played": [1, -1, 0]}), ("played", {"played": [0.5, 0, 0]}),
    ("played", {"played": [math.nan, 0, 0]}), ("played", {"played": "abc"}), ("played", {"played": [1000, 1, 0]}),
    ("played", {"played": [1e300, 0, 0]}), ("played", {"played": [[1, 2, 3]]}), ("order", {"order": "random"}),
    ("order", {"order": ["x"]}), ("rounding", {"rounding": "floor"}), ("level", {"level": "f"}), ("level", {"level": 0}),
    ("level", {"level": -1.0}), ("level", {"level": True}), ("level", {"level": np.ones(2)}), ("constant", {"constant": -1}),
    ("exploration", {"exploration": 5}), ("exploration", {"exploration": 0, "rounding": "efficient"}),
    ("exploration", {"exploration": 2.5, "rounding": "efficient"}), ("solution", {"solution": "x"}),
    ("solution", {"solution": failed(counter_example(0.1))}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "what"), BAD)
def test_bad_arguments_are_refused_by_name(name, what):
    arguments = {"solution": regret(counter_example(0.1)), "horizon": 1000, **what}
    with pytest.raises(ao.InvalidOption, match=f"^{name}: ") as refused:
        Schedule.from_solution(**arguments)
    assert "\n" not in str(refused.value)


def test_what_does_not_go_together_is_refused():
    best = ao.solve(ao.programs.best_arm(soare()))
    horizon = ao.optimal_pulls(np.eye(2), [0, 1.0], 1000)
    for words, solution, n, options in (
        ("horizon: expected 1000, the n that the horizon solution was made for, got 999", horizon, 999, {}),
        ("level: not for this horizon solution", horizon, 1000, {"level": "log"}),
        ("level: not for best_arm", best, 1000, {"level": 3.0}),
        ('rounding: expected "efficient" for a best_arm', best, 1000, {"rounding": "ceiling"}),
        ("exploration: only with", best, 1000, {"exploration": 5}),
        ("horizon: expected at least", ao.solve(ao.programs.g_optimal(np.eye(9))), 5, {}),
    ):
        with pytest.raises(ao.InvalidOption, match=words):
            Schedule.from_solution(solution, n, **options)


@pytest.mark.parametrize("t", [-1, 1001, 0.5, math.nan, "1"])
def test_rounds_outside_the_schedule_are_refused(t):
    s = Schedule.from_solution(regret(counter_example(0.1)), 1000)
    for ask in (s.pulls_at, s.regret_at, s.check):
        with pytest.raises(ao.InvalidOption, match="t: expected"):
            ask(t)


def test_an_inaccurate_solution_is_played_and_said():
    solution = dataclasses.replace(regret(counter_example(0.1)), status=ao.Status.INACCURATE, stats={"reason": "slow"})
    assert "INACCURATE" in Schedule.from_solution(solution, 1000).notes[0]


# ------------------------------------------------------------------ files and the command

LABELS = ["left", '<script>alert("1")</script>', "[bold]x, y[/bold]"]
INSTANCE = {"arms": [[1, 0], [0, 1], [0.75, 0.5]], "theta": [1, 0], "labels": LABELS}


@pytest.fixture
def small():
    bandit = ao.LinearBandit(INSTANCE["arms"], INSTANCE["theta"], labels=LABELS)
    return Schedule.from_solution(regret(bandit), 500, order="tracking")


def test_csv_has_the_runs_or_the_rounds(small, tmp_path):
    small.to_csv(tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [(int(r["arm"]), int(r["pulls"])) for r in rows] == list(small.runs())
    assert [int(r["first_round"]) for r in rows] == np.cumsum([1] + [int(r["pulls"]) for r in rows])[:-1].tolist()
    assert {r["label"] for r in rows} == {LABELS[i] for i in np.flatnonzero(small.pulls)}
    small.to_csv(tmp_path / "rounds.csv", per_round=True)
    with (tmp_path / "rounds.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [int(r["arm"]) for r in rows] == list(small)
    assert [int(r["round"]) for r in rows] == list(range(1, 501))


@pytest.mark.parametrize("order", ORDERS)
def test_json_tells_enough_to_play(small, order, tmp_path):
    s = dataclasses.replace(small, order=order)
    s.to_json(tmp_path / "s.json")
    document = json.loads((tmp_path / "s.json").read_text(), parse_constant=pytest.fail)
    assert document == json.loads(json.dumps(s.document()))
    assert {a["arm"]: a["pulls"] for a in document["arms"]} == {i: int(c) for i, c in enumerate(s.pulls) if c}
    assert document["constraints"]["met"] is True
    quota = [0.0] * 3
    for arm in document["arms"]:
        quota[arm["arm"]] = float(arm["wanted"])
    free = np.array([a["arm"] for a in document["arms"] if a["free"]])
    if order == "interleaved":
        assert passes(quota, free, document["length"]) == list(s)
    if document["runs"] is not None:
        assert [tuple(r) for r in document["runs"]] == list(s.runs())


def test_existing_files_are_kept_unless_forced(small, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("mine")
    for write in (small.to_csv, small.to_json):
        with pytest.raises(ao.InvalidFile, match="exists already"):
            write(path)
        assert path.read_text() == "mine"
    small.to_csv(path, force=True)
    assert path.read_text().startswith("first_round,")
    assert [p.name for p in tmp_path.iterdir()] == ["mine.csv"]
    with pytest.raises(ao.InvalidFile, match="cannot write"):
        small.to_csv(tmp_path / "no" / "such.csv")


def test_a_file_that_could_not_be_finished_is_not_left_behind(small, tmp_path, monkeypatch):
    def stop(self):
        yield 0, 1
        raise KeyboardInterrupt

    monkeypatch.setattr(Schedule, "runs", stop)
    with pytest.raises(KeyboardInterrupt):
        small.to_csv(tmp_path / "new.csv")
    old = tmp_path / "old.csv"
    old.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        small.to_csv(old, force=True)
    assert [p.name for p in tmp_path.iterdir()] == ["old.csv"]
    assert old.read_text() == "old"


@pytest.fixture
def main(monkeypatch, capsys, tmp_path):
    """``allocopt schedule`` in a directory that has instance.json."""
    (tmp_path / "instance.json").write_text(json.dumps(INSTANCE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["allocopt", "schedule", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        return stop.value.code or 0, out, err

    return call


def test_the_command_shows_pulls_regret_and_c(main):
    code, out, err = main("instance.json", "-n", 10**5)
    assert (code, err) == (0, "")
    s = Schedule.from_solution(regret(ao.LinearBandit(INSTANCE["arms"], INSTANCE["theta"])), 10**5)
    for text in (
        str(s.pulls[0]),
        str(s.pulls[1]),
        "(c = 8)",
        f"{s.regret / math.log(10**5):.8g}",
        LABELS[1],
        "constraints",
        "met",
    ):
        assert text in out
    code, out, _ = main("instance.json", "-n", 10**5, "--order", "explore-first", "--json")
    assert code == 0
    assert json.loads(out)["runs"] == [[1, s.pulls[1]], [0, s.pulls[0]]]


def test_the_command_reads_proofs_gaps_and_played(main, tmp_path):
    regret(ao.LinearBandit(INSTANCE["arms"], INSTANCE["theta"])).save(tmp_path / "proof.json")
    (tmp_path / "gaps.json").write_text(json.dumps({"arms": INSTANCE["arms"], "gaps": [0, 1, 0.25], "labels": LABELS}))
    (tmp_path / "played.json").write_text("[10, 20, 5]")
    want = json.loads(main("instance.json", "-n", 1000, "--json")[1])
    for file in ("proof.json", "gaps.json"):
        got = json.loads(main(file, "-n", 1000, "--json")[1])
        assert [a["pulls"] for a in got["arms"]] == [a["pulls"] for a in want["arms"]]
    code, out, _ = main("instance.json", "-n", 1000, "--played", "played.json")
    assert code == 0
    assert "played" in out
    assert "with what was played" in out
    code, out, _ = main("instance.json", "-n", 90, "--program", "g-optimal", "--json")
    assert sum(a["pulls"] for a in json.loads(out)["arms"]) == 90
    code, out, _ = main("instance.json", "-n", 100, "--program", "best-arm", "--theta", "1,0.2")
    assert code == 0
    code, out, _ = main("instance.json", "-n", 30)
    assert code == 0
    assert "does not fit" in out


def test_the_command_saves_and_does_not_overwrite(main, tmp_path):
    assert main("instance.json", "-n", 1000, "--save", "s.csv")[0] == 0
    assert (tmp_path / "s.csv").read_text().splitlines()[0] == "first_round,arm,pulls,label"
    before = (tmp_path / "s.csv").read_text()
    code, out, err = main("instance.json", "-n", 2000, "--save", "s.csv")
    assert (code, out) == (2, "")
    assert "exists already" in err
    assert (tmp_path / "s.csv").read_text() == before
    assert main("instance.json", "-n", 20, "--save", "s.csv", "--per-round", "--force")[0] == 0
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 21
    code, _, err = main("instance.json", "-n", 20, "--save", "instance.json", "--force")
    assert code == 2
    assert "--save: expected another file than the input" in err
    assert json.loads((tmp_path / "instance.json").read_text()) == INSTANCE
    assert main("instance.json", "-n", 1000, "--save", "s.json")[0] == 0
    assert json.loads((tmp_path / "s.json").read_text())["horizon"] == 1000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["instance.json", "-n", 2], "horizon: expected a whole number >= 3"),
        (["none.json", "-n", 10], "no such file"),
        (["instance.json", "-n", 10, "--played", "1,2"], "played: expected 3 entries"),
        (["instance.json", "-n", 10, "--played", "a"], "--played: expected numbers"),
        (["instance.json", "-n", 10, "--level", "big"], "--level: expected f_n, log or a positive number"),
        (["instance.json", "-n", 10, "--save", "x.txt"], "--save: expected a name that ends in .csv or .json"),
        (["instance.json", "-n", 10, "--per-round"], "--per-round: only with --save"),
        (["instance.json", "-n", 10, "--theta", "1"], "theta: expected 2 entries"),
        (["instance.json", "-n", 10, "--exploration", 5], "exploration: only with"),
        (["proof.json", "-n", 10, "--theta", "1,0"], "--theta: not with a proof file"),
        (["proof.json", "-n", 10, "--program", "best-arm"], "--program: not with a proof file"),
        (["arms.csv", "-n", 10], "the file has arms only"),
        (["gaps.json", "-n", 10, "--noise-variance", 2], "--noise-variance: only with"),
        (["gaps.json", "-n", 10, "--program", "best-arm"], "best-arm needs"),
        (["broken.json", "-n", 10], "not valid JSON"),
    ],
)
def test_the_commands_errors_are_one_line(main, tmp_path, arguments, words):
    regret(ao.LinearBandit(INSTANCE["arms"], INSTANCE["theta"])).save(tmp_path / "proof.json")
    (tmp_path / "gaps.json").write_text(json.dumps({"arms": INSTANCE["arms"], "gaps": [0, 1, 0.25]}))
    (tmp_path / "arms.csv").write_text("1,0\n0,1\n")
    (tmp_path / "broken.json").write_text("{")
    code, out, err = main(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert words in err
