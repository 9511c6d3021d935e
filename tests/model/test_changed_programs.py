"""Named programs with other arrays in them: solved, proven and saved as what they are now, not as what they were made from."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

import allocopt as ao
from allocopt.insight.instances import random_unit

BANDIT = random_unit(3, 9, seed=0)
ITEMS = np.random.default_rng(5).normal(size=(6, 3))
PROGRAMS = {
    "regret": lambda: ao.programs.regret(BANDIT),
    "horizon": lambda: ao.programs.horizon(BANDIT.arms, BANDIT.gaps, 1000),
    "best_arm": lambda: ao.programs.best_arm(BANDIT),
    "best_arm within ε": lambda: ao.programs.best_arm(BANDIT, 0.9),
    "top_m": lambda: ao.programs.top_m(BANDIT, 2),
    "threshold": lambda: ao.programs.threshold(BANDIT, 0.03),
    "transductive": lambda: ao.programs.transductive(BANDIT.arms, ITEMS, BANDIT.theta),
    "duelling": lambda: ao.programs.duelling(BANDIT),
    "optimism": lambda: ao.programs.optimism(BANDIT, 2.0),
    "remaining": lambda: ao.programs.remaining(BANDIT, np.ones(9), 1000),
    "contextual": lambda: ao.programs.contextual(ao.ContextualBandit([BANDIT.arms[:4], BANDIT.arms[4:]], BANDIT.theta)),
    "semi_bandit": lambda: ao.programs.semi_bandit([[1, 1, 0], [0, 1, 1], [1, 0, 1]], [1.0, 0.5, 0.2]),
}
CHANGES = {
    "radii": lambda p: p.radii * 3.0,
    "costs": lambda p: p.costs * 3.0,
    "noise_variance": lambda p: np.full(p.n_rows, 3.0),
    "upper": lambda p: np.where(p.costs > 0, 1.5 * np.minimum(p.upper, 1e7), p.upper),
}


def by_arrays(p):
    """The same program from its arrays alone."""
    return ao.AllocationProgram(
        p.features, p.costs, p.targets, p.radii, p.lower, p.upper, noise_variance=p.noise_variance, owners=p.owners
    )


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_other_arrays_make_it_a_program_of_its_own(name, what, tmp_path):
    program = PROGRAMS[name]()
    other = dataclasses.replace(program, **{what: CHANGES[what](program)})
    assert other.kind == "general" and other.labels == program.labels
    found, plain = ao.solve(other), ao.solve(by_arrays(other))
    assert found.lower <= plain.upper and plain.lower <= found.upper
    assert found.status is plain.status is ao.Status.CERTIFIED
    found.save(tmp_path / "proof.json")
    loaded = ao.load_solution(tmp_path / "proof.json")
    assert (loaded.program.kind, loaded.status) == ("general", ao.Status.CERTIFIED)
    assert np.array_equal(loaded.allocation, found.allocation)
    exact = found.verify(exact=True)
    assert not exact.problems and found.lower <= exact.lower <= exact.upper <= found.upper


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_arrays_keep_it_what_it_is(name):
    program = PROGRAMS[name]()
    for same in (
        dataclasses.replace(program),
        dataclasses.replace(program, radii=program.radii.copy(), lower=program.lower.tolist()),
        dataclasses.replace(copy.deepcopy(program)),
        dataclasses.replace(pickle.loads(pickle.dumps(program))),
    ):
        assert same.kind == program.kind and same.origin.number == program.origin.number
    again = pickle.loads(pickle.dumps(program))
    assert dataclasses.replace(again, radii=2.0 * again.radii).kind == "general"
    if name not in ("optimism", "remaining"):  # which take none
        constrained = dataclasses.replace(program, constraints=(np.ones((1, program.n_arms)), [1e9]))
        assert constrained.kind == program.kind  # constraints are beside what it was made from


@pytest.mark.parametrize("make", [ao.programs.duelling, ao.programs.best_arm])
@pytest.mark.parametrize("road", ["numpy", "auto"])
def test_what_arms_span_is_not_taken_from_the_arms_it_was_made_from(make, road):
    """Arms in a plane, and targets moved out of it: no amount of data is enough."""
    arms = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 2], [2, -1, 1.0]])
    program = make(ao.LinearBandit(arms, [1, 0.3, 0]))
    outside = program.targets + np.array([0, 0, 1])
    with pytest.raises(ao.Infeasible):
        ao.solve(dataclasses.replace(program, targets=outside), road=road)


def test_targets_of_their_arms_may_be_said_of_a_program_of_arrays(tmp_path):
    p = ao.programs.regret(BANDIT)
    program = ao.AllocationProgram(p.features, p.costs, p.targets, p.radii, target_arms=p.target_arms)
    found = ao.solve(program)
    assert len(found.multipliers) == 9
    found.save(tmp_path / "proof.json")
    loaded = ao.load_solution(tmp_path / "proof.json")
    assert np.array_equal(loaded.multipliers, found.multipliers[p.target_arms])
    assert loaded.status is ao.Status.CERTIFIED and not found.verify(exact=True).problems


def test_a_bandit_with_another_theta_keeps_its_optimal_arms_unless_they_are_to_be_found_anew():
    tied = ao.LinearBandit([[1, 0], [1, 0.5], [0.3, 1]], [1, 0])
    assert tied.optimal_arms.tolist() == [0, 1]
    kept = ao.solve(ao.programs.regret(dataclasses.replace(tied, theta=[1, -0.5])))
    assert kept.status is ao.Status.CONDITIONAL and kept.assumptions[0].arms == (
        1,
    )  # which is 0.25 worse, and said to be
    anew = dataclasses.replace(tied, theta=[1, -0.5], optimal_arms=None)
    assert anew.optimal_arms.tolist() == [0] and ao.solve(ao.programs.regret(anew)).status is ao.Status.CERTIFIED
    with pytest.raises(ao.InvalidInstance, match="None finds them anew"):
        dataclasses.replace(tied, theta=[0, 1])
