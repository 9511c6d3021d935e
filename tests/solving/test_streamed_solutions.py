"""What is done with solutions of large sets: proven, saved, copied, printed; never changed."""

import copy
import pickle

import numpy as np
import pytest
from blocks import in_blocks, never_in_blocks, regret, same_interval, streamed_bandit, unit_arms

import allocopt as ao


def test_a_solution_can_be_proven_saved_and_loaded(tmp_path):
    arms, theta = unit_arms(4, 300)
    with in_blocks():
        for s in (
            ao.regret_constant(arms.astype(np.float32), theta),
            ao.optimal_pulls(arms, np.maximum(0.0, 0.5 - arms @ theta), 1000),
            ao.solve(ao.programs.g_optimal(arms)),
        ):
            proven = s.verify()
            assert s.lower <= proven.midpoint <= s.upper
            s.save(tmp_path / "proof.json", overwrite=True)
            again = ao.load_solution(tmp_path / "proof.json")
            assert again.verify().lower == pytest.approx(proven.lower, rel=1e-10)
            assert again.status is ao.Status.CERTIFIED
            with never_in_blocks():
                assert ao.load_solution(tmp_path / "proof.json").verify().upper == pytest.approx(
                    proven.upper, rel=1e-10
                )


def test_solutions_can_be_copied_and_pickled():
    arms, theta = unit_arms(4, 300)
    with in_blocks():
        s = ao.regret_constant(arms, theta)
        design = ao.solve(ao.programs.g_optimal(arms))
    for solution in (s, design):
        for twin in (copy.copy(solution), copy.deepcopy(solution), pickle.loads(pickle.dumps(solution))):
            assert same_interval(twin, solution)
            assert twin.status is solution.status
            assert dict(twin.stats) == dict(solution.stats)
            for name in ("allocation", "multipliers", "support", "binding", "optimal_arms"):
                assert np.array_equal(getattr(twin, name), getattr(solution, name))
            assert twin.program.n_arms == 300
            assert twin.verify() == solution.verify()


def test_texts_say_what_the_things_are():
    arms, theta = unit_arms(4, 300)
    with in_blocks():
        bandit = streamed_bandit(arms, theta)
        assert repr(bandit).endswith("streamed)")
        assert "gap_min" in repr(bandit) or bandit.gap_min  # gaps are worked out when somebody asks
        assert "gap_min" in repr(bandit)
        assert (
            repr(ao.programs.regret(bandit)) == "AllocationProgram(regret, n_arms=300, n_targets=299, dim=4, streamed)"
        )
        assert repr(regret(bandit)).startswith("Solution(value=")
        assert "of 300 arms)" in repr(regret(bandit))


def test_vectors_of_a_solution_cannot_be_changed():
    with in_blocks():
        s = ao.regret_constant(*unit_arms(4, 300))
    for vector in (s.allocation, s.multipliers):
        with pytest.raises(ValueError, match="read-only"):
            vector[0] = 1.0
