"""The referee on random triples with linear constraints, and on documents that are wrong in one of several places only."""

import copy
import json
from fractions import Fraction

import numpy as np
import pytest
from exactly import dot, rational
from limited_triples import best_bound, holds, instance
from proofs import BANDIT, NOISY

import allocopt as ao
from allocopt.certify import verdict
from allocopt.certify.referee import judge


def document(solution, path):
    solution.save(path, overwrite=True)
    return json.loads(path.read_text())


@pytest.mark.parametrize("rows", [1, 2])
def test_the_referee_finds_the_dual_bound_and_the_cost_of_what_holds(rows, tmp_path):
    seen = 0
    for seed in range(24):
        program, given, (alpha, lam, mu) = instance(seed, rows)
        for multipliers in (lam, np.zeros(2)):
            try:
                solution = verdict.recertify(program, alpha, multipliers, "m", 1e-8, {}, mu)
            except ao.Infeasible:
                continue
            found = judge(document(solution, tmp_path / "p.json"))
            assert found.proven, found.problems
            if solution.allocation.tolist() != alpha.tolist():  # what is fixed is enough, and that is the proof
                assert found.lower == found.upper == dot(rational(given[1]), rational(given[4]))
                continue
            assert found.lower == best_bound(given, (alpha, multipliers, mu))[0]
            assert (found.upper is not None) == holds(given, alpha)
            if found.upper is not None:
                assert found.upper == dot(rational(given[1]), rational(alpha))
            seen += 1
    assert seen > 30


def changed(given, **entries):
    result = copy.deepcopy(given)
    for place, value in entries.items():
        *path, last = place.split("__")
        inner = result["program"]
        for step in path:
            inner = inner[step]
        if isinstance(inner, list):
            inner[int(last)] = value
        else:
            inner[last] = value
    return result


def refused(given, words):
    found = judge(given)
    assert not found.proven and found.upper is None and found.lower == 0
    assert words in " ".join(found.problems)


def test_one_bad_entry_among_good_ones_is_enough(tmp_path):
    path = tmp_path / "p.json"
    general = document(
        ao.solve(ao.AllocationProgram(np.eye(2), [1, 1], np.eye(2), [0.5, 0.25], lower=[1, 0], upper=[9, 9])), path
    )
    assert judge(general).proven
    refused(changed(general, radii__0=0.0), "expected radii > 0")
    refused(changed(general, radii__1=0.0), "expected radii > 0")
    refused(changed(general, lower__1=10.0), "lower <= upper")
    for entry in ("costs__0", "radii__0", "lower__0"):
        refused(changed(general, **{entry: "inf"}), "expected a double")
        refused(changed(general, **{entry: -1.0}), "expected a double")
    means = NOISY.arms @ NOISY.theta
    threshold = document(ao.solve(ao.programs.threshold(ao.LinearBandit([[1.0, 0], [0, 1]], [0.5, 0.25]), 0.375)), path)
    assert judge(threshold).proven
    refused(changed(threshold, tau=0.25), "tau not the mean of an arm")
    refused(changed(threshold, tau=0.5), "tau not the mean of an arm")
    best = document(ao.solve(ao.programs.best_arm(NOISY)), path)
    assert judge(best).proven
    second = int(np.argsort(-means)[1])
    refused(changed(best, answer=second), "the answer is wrong")
    refused(changed(best, answer=int(np.argmin(means))), "the answer is wrong")
    contexts = document(
        ao.solve(ao.programs.contextual(ao.ContextualBandit([BANDIT.arms[:3], BANDIT.arms[3:]], BANDIT.theta))), path
    )
    assert judge(contexts).proven
    refused(changed(contexts, contexts=[3]), "contexts")
    semi = document(ao.solve(ao.programs.semi_bandit([[1, 1, 0], [0, 1, 1], [1, 0, 1]], [0.5, 0.25, 0.125])), path)
    assert judge(semi).proven
    assert not judge(changed(semi, theta=[0.5, 0.25, 0.3125])).proven
    side = document(
        ao.solve(ao.programs.side_observations([0.5, 0.25, 0.0], [[1, 1, np.inf], [np.inf, 1, 1], [1, np.inf, 2]])),
        path,
    )
    assert judge(side).proven
    assert not judge(changed(side, means=[0.5, 0.375, 0.0])).proven


@pytest.mark.parametrize("noise", [0.3, NOISY.noise_variance])
def test_upper_bounds_of_optimism_are_in_pulls_of_their_noise(noise, tmp_path):
    solution = ao.solve(ao.programs.optimism(ao.LinearBandit(BANDIT.arms, BANDIT.theta, noise), 0.6))
    assert (solution.allocation == solution.program.upper).any()
    assert judge(document(solution, tmp_path / "p.json")).proven


@pytest.mark.parametrize("seed", range(8))
def test_the_largest_of_several_shares_is_what_is_assumed(seed, tmp_path):
    """Columns that depend on the others up to rounding, by different shares: an assumption of a little less does not do."""
    rng = np.random.default_rng(seed)
    basis = rng.integers(1, 90, size=(6, 2)) / 100.0
    arms = np.column_stack([basis, basis @ rng.integers(-90, 91, size=(2, 3)) / 70.0])
    solution = ao.regret_constant(arms, [0.3, 0.5, 0.0, 0.0, 0.0])
    assert solution.status == ao.Status.CONDITIONAL
    written = document(solution, tmp_path / "p.json")
    found = judge(written)
    assert found.proven
    less = max(a.size for a in solution.assumptions if a.kind == "dependence") * Fraction(999, 1000)
    for entry in written["assumptions"]:
        if entry["kind"] == "dependence":
            entry["size"] = f"{less.numerator}/{less.denominator}"
    assert not judge(written).proven


def test_no_tolerance_is_infinite(tmp_path):
    written = document(ao.regret_constant([[1, 0], [0, 1], [0.75, 0.5]], [1, 0]), tmp_path / "p.json")
    written["claim"] |= {"lower": 1.0, "upper": 100.0}
    for tol in ("inf", 1e-8):
        assert not judge(written | {"tol": tol}).proven
    assert judge(written | {"tol": 99.0}).proven


def test_optimal_arms_of_semi_bandits_cannot_be_made_up(tmp_path):
    path = tmp_path / "p.json"
    semi = document(ao.solve(ao.programs.semi_bandit([[1, 1, 0], [0, 1, 1], [1, 0, 1]], [0.5, 0.25, 0.125])), path)
    assert ao.load_solution(path).verify().lower > 0
    path.write_text(json.dumps(changed(semi, optimal_arms=[0, 2])))
    with pytest.raises(ao.InvalidFile, match="optimal"):
        ao.load_solution(path)


def test_contexts_of_a_file_must_add_up(tmp_path):
    path = tmp_path / "p.json"
    bandit = ao.ContextualBandit([BANDIT.arms[:3], BANDIT.arms[3:]], BANDIT.theta)
    contexts = document(ao.solve(ao.programs.contextual(bandit)), path)
    three = ao.solve(
        ao.programs.contextual(ao.ContextualBandit([BANDIT.arms[:2], BANDIT.arms[2:5], BANDIT.arms[5:]], BANDIT.theta))
    )
    three.save(path, overwrite=True)
    assert ao.load_solution(path).value == three.value
    for sizes in ([3, 4], [3, 6], [3], [0, 8]):
        path.write_text(json.dumps(changed(contexts, contexts=sizes)))
        with pytest.raises(ao.InvalidFile, match="contexts"):
            ao.load_solution(path)
