"""Programs with bounds over blocks of arms: whole answers, against those in memory, the referee and proof files."""

import json

import numpy as np
import pytest
from blocks import agree, in_blocks, never_in_blocks, unit_arms
from bounded import arms_of, program_of

import allocopt as ao


@pytest.mark.parametrize("kind", ["optimism", "remaining"])
@pytest.mark.parametrize("noise", [1.0, "each"])
def test_answers_agree_with_those_in_memory_and_the_referee_confirms_them(kind, noise):
    for seed in range(3):
        arms, theta = unit_arms(3, 50, seed=seed)
        given = np.random.default_rng(seed).uniform(0.5, 2.0, 50) if noise == "each" else noise
        with in_blocks(enter=2, keep=2):
            found = ao.solve(program_of(kind, arms, theta, seed, noise_variance=given), tol=1e-7)
            proven, exact = found.verify(), found.verify(exact=True)
            again = ao.solve(found.program, start=found, tol=1e-6)
        with never_in_blocks():
            other = ao.solve(program_of(kind, arms, theta, seed, noise_variance=given), tol=1e-7)
        assert found.program._blocks is not None and other.program._blocks is None
        assert found.status.name == other.status.name == again.status.name == "CERTIFIED" and agree(found, other)
        assert found.lower <= exact.lower <= exact.upper <= found.upper and not exact.problems
        assert proven.lower <= exact.lower and proven.upper == pytest.approx(exact.upper, rel=1e-10)
        assert again.stats["warm"] and again.stats["passes"] <= found.stats["passes"] + 2
        lower, upper = found.program.lower, found.program.upper
        assert (found.allocation >= lower).all() and (found.allocation <= upper).all()
        assert found.support.tolist() == np.flatnonzero((found.allocation > 0) & np.isfinite(found.allocation)).tolist()


def test_upper_bounds_that_bind_are_met():
    """Copies of few arms, none of which may be played enough alone."""
    arms, theta = np.array([[1.0, 0.0]] + [[0.5, 1.0]] * 30 + [[0.0, 0.5]] * 30), np.array([1.0, 0.0])
    with in_blocks(enter=2):
        found = ao.solve(ao.programs.optimism(ao.LinearBandit(arms, theta), 0.5), tol=1e-6)
    with never_in_blocks():
        other = ao.solve(ao.programs.optimism(ao.LinearBandit(arms, theta), 0.5), tol=1e-6)
    assert found.status.name == other.status.name == "CERTIFIED" and agree(found, other)
    assert found.program._blocks is not None


@pytest.mark.parametrize("kind", ["optimism", "remaining"])
def test_proof_files_of_streamed_bounded_answers_are_confirmed(kind, tmp_path):
    arms, theta = unit_arms(3, 1500, seed=1)
    with in_blocks(rows=None, keep=20, enter=12):
        found = ao.solve(program_of(kind, arms, theta, 1), tol=1e-7)
        found.save(tmp_path / "proof.json")
    with never_in_blocks():
        read = ao.load_solution(tmp_path / "proof.json")
    assert read.status is found.status and found.lower <= read.lower <= read.upper <= found.upper


def test_narrow_optimism_is_solved_in_memory():
    """Below a width of 1/2 it may be infeasible, which is proven with all arms at hand."""
    arms, theta = unit_arms(3, 40)
    with in_blocks():
        bandit = ao.LinearBandit(arms, theta)
        assert ao.programs.optimism(bandit, 0.5)._blocks is not None
        assert ao.programs.optimism(bandit, 0.4999)._blocks is None


@pytest.mark.parametrize(
    ("most", "small"), [(2, np.uint8), (300, np.uint16), (70_000, np.uint32), (2.5, np.float64), (2.0**40, np.float64)]
)
def test_pulls_of_many_arms_are_kept_in_few_bytes_and_say_the_same(most, small, tmp_path):
    arms, theta = arms_of(5)
    pulls = np.zeros(len(arms))
    pulls[::7] = most
    saved = []
    for road in (in_blocks, never_in_blocks):
        with road():
            program = ao.programs.remaining(ao.LinearBandit(arms, theta), pulls, 1000)
            assert program.origin.pulls.dtype == (small if road is in_blocks else np.float64)
            assert np.array_equal(program.lower, pulls / np.log(1000))
            solution = ao.solve(program)
            assert solution.status is ao.Status.CERTIFIED
            path = tmp_path / f"{road.__name__}.json"
            solution.save(path)
            saved.append(json.loads(path.read_text(encoding="utf-8"))["program"]["pulls"])
            assert ao.load_solution(path).verify().upper == solution.verify().upper
    assert saved[0] == saved[1] == pulls.tolist()
