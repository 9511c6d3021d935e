"""One variance per arm: the same bits where they are equal, the right program where they are not, everywhere."""

import json
import math

import numpy as np
import pytest
from blocks import agree, check_consistency, in_blocks, never_in_blocks, regret, streamed_bandit, unit_arms
from refusals import refused

import allocopt as ao
from allocopt.certify.referee import judge, read
from allocopt.insight.instances import random_unit


def bandit(seed=0, d=3, k=8, noise=None):
    rng = np.random.default_rng(seed)
    base = random_unit(d, k, seed=seed)
    return ao.LinearBandit(base.arms, base.theta, np.exp(rng.normal(size=k)) if noise is None else noise)


MADE = {
    "regret": ao.programs.regret,
    "best_arm": ao.programs.best_arm,
    "optimism": lambda b: ao.programs.optimism(b, 1.0),
    "remaining": lambda b: ao.programs.remaining(b, np.arange(b.n_arms), 1000),
}


@pytest.mark.parametrize("kind", MADE)
def test_equal_variances_give_the_bits_of_one_number(kind):
    for value in (1.0, 0.3, 4.0):
        one, many = (ao.solve(MADE[kind](bandit(noise=x))) for x in (value, np.full(8, value)))
        assert (one.lower, one.upper, one.status) == (many.lower, many.upper, many.status)
        assert np.array_equal(one.allocation, many.allocation) and np.array_equal(one.multipliers, many.multipliers)
    assert bandit(noise=[0.5] * 8).noise_variance == 0.5


def independent(program):
    """The value by a conic solver, from rows x/σ."""
    cp = pytest.importorskip("cvxpy")
    rows = program.features / np.sqrt(program.noise_variance)[:, None]
    free = program.free
    basis = np.linalg.svd(rows[free])[2][len(free) :].T if len(free) else np.eye(program.dim)
    rows, targets = rows @ basis, program.targets @ basis
    unit = 1.0 / program.radii.min()  # of α, so that the solver sees numbers around 1
    alpha = cp.Variable(program.n_arms, nonneg=True)
    h = rows.T @ cp.diag(alpha) @ rows
    keep = [i for i in range(program.n_arms) if i not in free]
    limits = [alpha[i] >= program.lower[i] / unit for i in keep]
    limits += [alpha[i] <= program.upper[i] / unit for i in keep if np.isfinite(program.upper[i])]
    meets = [cp.matrix_frac(t, h) <= 1 for t in targets / np.sqrt(program.radii * unit)[:, None]]
    problem = cp.Problem(cp.Minimize(program.costs[keep] @ alpha[keep]), limits + meets)
    problem.solve(solver="CLARABEL")
    assert problem.status == "optimal"
    return float(problem.value) * unit


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("seed", range(4))
def test_the_value_is_that_of_rows_over_their_deviations(kind, seed):
    program = MADE[kind](bandit(seed))
    s = ao.solve(program)
    assert s.status is ao.Status.CERTIFIED
    assert s.value == pytest.approx(independent(program), rel=2e-5)
    fast, exact = s.verify(), s.verify(exact=True)
    assert not exact.problems
    assert s.lower <= exact.lower <= exact.upper <= s.upper
    assert fast.lower <= exact.upper and exact.lower <= fast.upper


def test_every_method_agrees():
    program = ao.programs.regret(bandit(3))
    values = [ao.solve(program, method, 1e-7).value for method in ("interior-point", "active-set", "conic")]
    assert max(values) <= min(values) * (1 + 3e-7)
    assert ao.solve(program, "frank-wolfe", 1e-3).value == pytest.approx(values[0], rel=2e-3)


def test_variances_of_finitely_many_arms():
    """Unit vectors: α_x = 2σ_x²/Δ_x²."""
    s = ao.regret_constant(np.eye(3), [1.0, 0.5, 0.75], [9.0, 2.0, 0.5])
    assert s.allocation[1:] == pytest.approx([16.0, 16.0])
    assert s.value == pytest.approx(8.0 + 4.0)
    assert ao.hardness(s.program.origin.bandit).ucb_constant == pytest.approx(12.0)


def test_a_pull_counts_by_its_precision_within_bounds():
    """u = 4aσ_x²/Δ_x² of each arm: at a = 1/2 nothing but α = 2σ²/Δ² is left, and a little less room is infeasible."""
    b = ao.LinearBandit(np.eye(2), [1.0, 0.5], [1.0, 3.0])
    assert ao.programs.optimism(b, 1.0).upper[1] == pytest.approx(48.0)
    with pytest.raises(ao.Infeasible):
        ao.solve(ao.programs.optimism(b, 0.49))
    assert ao.solve(ao.programs.optimism(b, 0.51)).value == pytest.approx(12.0)


@pytest.mark.parametrize("kind", [*MADE, "general"])
def test_proof_files_hold_the_variances(kind, tmp_path):
    b = bandit(5)
    if kind == "general":
        program = ao.AllocationProgram(
            b.arms, b.gaps + 0.1, b.arms, np.ones(8), upper=[math.inf] * 7 + [0.2], noise_variance=b.noise_variance
        )
    else:
        program = MADE[kind](b)
    s = ao.solve(program)
    s.save(tmp_path / "p.json")
    again = ao.load_solution(tmp_path / "p.json")
    assert np.array_equal(again.program.noise_variance, program.noise_variance)
    assert again.verify(exact=True).problems == ()
    document = json.loads((tmp_path / "p.json").read_text())
    document["program"]["noise_variance"][int(np.argmax(np.where(np.isfinite(s.allocation), s.allocation, 0)))] *= 8.0
    (tmp_path / "q.json").write_text(json.dumps(document))
    with pytest.raises(ao.InvalidProof):
        ao.load_solution(tmp_path / "q.json")


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        ([1.0, 2.0], ["3 arms", "2 numbers"]),
        ([1.0, 0.0, 2.0], ["positive", "entry 1 is 0.0"]),
        ([1.0, -1.0, 2.0], ["positive", "entry 1 is -1.0"]),
        ([1.0, math.nan, 2.0], ["nan"]),
        ([1.0, math.inf, 2.0], ["inf"]),
        ([[1.0, 2.0, 3.0]], ["noise_variance"]),
        ([1.0, 1e60, 2.0], ["magnitudes"]),
        (["a", "b", "c"], ["noise_variance"]),
        ({"a": 1}, ["positive, finite number"]),
    ],
)
def test_bad_variances_are_refused_by_name(noise, words):
    refused(ao.InvalidInstance, ["noise_variance:", *words], lambda: ao.LinearBandit(np.eye(3), [1, 0, 0.5], noise))


def test_what_knows_one_variance_only_says_so():
    refused(
        ao.InvalidInstance, ["noise_variance: expected one number for duels"], lambda: ao.programs.duelling(bandit())
    )


@pytest.mark.parametrize("d", [2, 3, 5])
def test_batches_solve_bandits_with_variances_of_their_own(d):
    """Compiled; the same intervals as one by one, proven by the referee, beside rows with one variance."""
    bandits = [bandit(seed, d=d, k=9, noise=None if seed % 3 else 0.3) for seed in range(12)]
    batch = ao.solve_many(bandits)
    assert batch.certified.all() and not batch.not_compiled
    for i, b in enumerate(bandits):
        alone = ao.solve(ao.programs.regret(b))
        assert batch.lower[i] <= alone.upper and alone.lower <= batch.upper[i]
        exact = batch.solution(i).verify(exact=True)
        assert exact.problems == () and batch.lower[i] <= exact.lower <= exact.upper <= batch.upper[i]


def test_equal_variances_in_a_batch_are_the_one_number():
    one, many = (ao.solve_many([bandit(noise=noise)]) for noise in (0.3, np.full(8, 0.3)))
    assert (one.lower[0], one.upper[0]) == (many.lower[0], many.upper[0])


@pytest.mark.parametrize("seed", range(6))
def test_arms_in_blocks_have_variances_of_their_own(seed):
    """The interval of arms block by block against that of the same arms in memory and against the referee."""
    rows, theta = unit_arms(3, 40, seed)
    noise = np.exp(2 * np.random.default_rng(seed).normal(size=40))
    with never_in_blocks():
        whole = regret(ao.LinearBandit(rows, theta, noise))
    with in_blocks():
        s = regret(streamed_bandit(rows, theta, noise))
        assert s.status is ao.Status.CERTIFIED and s.program._blocks is not None
        check_consistency(s)
        assert agree(s, whole)
        proven, exact = s.verify(), s.verify(exact=True)
    assert exact.problems == () and s.lower <= exact.lower <= exact.upper <= s.upper
    assert proven.lower <= exact.upper and exact.lower <= proven.upper


def test_equal_variances_in_blocks_give_the_bits_of_one_number():
    rows, theta = unit_arms(3, 40)
    with in_blocks():
        one, many = (regret(streamed_bandit(rows, theta, noise)) for noise in (0.3, np.full(40, 0.3)))
    assert (one.lower, one.upper) == (many.lower, many.upper)


def test_proofs_of_arms_in_blocks_hold_their_variances(tmp_path):
    rows, theta = unit_arms(4, 60, 1)
    noise = np.exp(np.random.default_rng(1).normal(size=60))
    with in_blocks():
        s = regret(streamed_bandit(rows, theta, noise))
        s.save(tmp_path / "p.json")
    again = ao.load_solution(tmp_path / "p.json")
    assert np.array_equal(again.program.noise_variance, noise) and agree(again, s)
    assert judge(read((tmp_path / "p.json").read_text())).proven


def test_many_arms_with_variances_of_their_own():
    large = np.random.default_rng(0).normal(size=(700_000, 3))
    s = ao.solve(ao.programs.regret(ao.LinearBandit(large, [1.0, 0.0, 0.0], np.linspace(1, 2, len(large)))))
    assert s.program._blocks is not None and s.status is ao.Status.CERTIFIED


def test_reports_and_audits_weigh_pulls_by_precision():
    b = ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.2]], [1, 0], [1.0, 4.0, 0.25])
    h = ao.hardness(b)
    for alternative in h.alternatives:
        assert alternative.evidence == pytest.approx(1.0, rel=1e-6)
    pulls = np.where(np.isfinite(h.solution.allocation), h.solution.allocation * math.log(10**9), 0)
    pulls[0] = 10**9 - pulls.sum()
    report = ao.audit(b, pulls, 10**9)
    assert report.evidence[0, 1:].max() == pytest.approx(1.0, rel=1e-3)
    assert h.with_arm([0, 0.5]).solution.program.noise_variance[-1] == 4.0
    assert h.without(1).program.noise_variance.tolist() == [1.0, 0.25]


def test_schedules_meet_the_radii_with_each_arms_own_variance():
    b = ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.2]], [1, 0], [1.0, 4.0, 0.25])
    schedule = ao.Schedule.from_solution(ao.solve(ao.programs.regret(b)), 10**6)
    assert schedule.check().met and not schedule.check(20).met


def test_noise_is_drawn_for_each_arm_and_policies_weigh_by_it():
    quiet = ao.LinearBandit(np.eye(2), [1.0, 0.5], [1e-12, 1.0])
    for policy in ("LinUCB", "LinTS", "OptimalTracking", "UCB", "EndOfOptimism", "PhasedElimination"):
        r = ao.simulate(policy, quiet, 300, 4, rng=0)
        assert (r.pulls.sum(axis=1) == 300).all()
        assert any("largest" in note for note in r.notes) == (policy in ("EndOfOptimism", "PhasedElimination"))


@pytest.mark.parametrize("policy", ["LinUCB", "LinTS", "LinUCB:radius=theoretical"])
def test_weighted_least_squares_are_those_of_rows_over_deviations(policy):
    """Estimates and widths after some rounds against a fresh weighted fit."""
    b = bandit(2, d=3, k=6)
    from allocopt.policies.parsing import parse

    player = parse(policy).start(b.arms, 2000, b.noise_variance, 0)
    rng = np.random.default_rng(1)
    rewards, arms = [], []
    for _ in range(700):
        arm = player.choose()
        arms.append(arm)
        rewards.append(b.means[arm] + math.sqrt(b.noise_variance[arm]) * rng.standard_normal())
        player.update(arm, rewards[-1])
    ls = player.state.ls
    ridge = 1.0 if "theoretical" in policy else 0.0
    weights = b.noise_variance.max() / b.noise_variance[arms]
    rows = b.arms[arms]
    gram = rows.T @ (weights[:, None] * rows) + ridge * np.eye(3)
    theta = np.linalg.solve(gram, rows.T @ (weights * np.array(rewards)))
    assert ls.means == pytest.approx(b.arms @ theta, rel=1e-6, abs=1e-9)
    assert ls.widths == pytest.approx(np.einsum("ij,jk,ik->i", b.arms, np.linalg.inv(gram), b.arms), rel=1e-6)
