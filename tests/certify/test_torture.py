"""A short torture, and that torture can be trusted: it repeats itself, and it sees what is false."""

import dataclasses
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import allocopt as ao

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import torture
import torture_exact
import torture_judge
from torture_families import FAMILIES
from torture_judge import Task, roads, run, wrong
from torture_roads import Outcome, travel

SLOW = ("conic", "Dask", "laws", "streamed", "saved", "frank-wolfe")
with_referee = pytest.mark.skipif(not torture_judge.HAVE_REFEREE, reason="there is no referee yet")


@with_referee
@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_false_is_said(family):
    """One seed on every road, another for each family on one of the slow ones."""
    found = []
    for number, road in enumerate(roads(FAMILIES[family])):
        chunk = 10_000 + number
        slow = road in SLOW and (len(family) + number) % len(SLOW)
        if not slow:
            found += run(Task(family, road, chunk), FAMILIES[family], range(chunk * 50, chunk * 50 + 1)).findings
    assert not found


@pytest.mark.parametrize("family", FAMILIES)
def test_an_instance_is_made_from_its_seed_and_printed_as_code(family):
    for seed in range(3):
        one, two = FAMILIES[family].instance(seed), FAMILIES[family].instance(seed)
        assert np.array_equal(one.arms, two.arms)
        try:
            program = one.program()
        except ao.AllocoptError:
            continue
        printed = {}
        exec(one.code().rsplit("\n", 1)[0], printed)
        for name in ("features", "costs", "targets", "radii", "lower", "upper"):
            assert np.array_equal(getattr(printed["program"], name), getattr(program, name))


def test_every_road_is_taken_first_and_always_in_the_same_order():
    for family in FAMILIES.values():
        able = roads(family)
        assert [torture_judge.road_of(family, chunk) for chunk in range(len(able))] == able
        later = {torture_judge.road_of(family, chunk) for chunk in range(400)}
        assert later == set(able)


@with_referee
def test_claims_that_are_too_good_are_seen():
    outcome = travel(FAMILIES["plain"], "auto", range(1))[0]
    assert wrong(outcome) == []
    claim = outcome.document["claim"]
    for forged in (
        {**claim, "upper": claim["lower"] * (1 - 1e-9), "lower": 0.0},
        {**claim, "lower": claim["upper"] * 1.001},
    ):
        assert wrong(dataclasses.replace(outcome, document={**outcome.document, "claim": forged}))


def test_errors_and_broken_laws_count():
    assert wrong(Outcome(0, "uncaught", "ZeroDivisionError"))[0][0] == "uncaught"
    assert wrong(Outcome(0, "solved", broken="it changed"))[0][0] == "broken law"
    can = ao.AllocationProgram([[1, 0], [1, 6]], [1, 1], [[1, 0], [1, 6]], [1e20, 1e-12], None, [2e-20, np.inf])
    cannot = ao.AllocationProgram([[1, 0]], [1], [[1, 1e-10]], [1.0])
    assert wrong(Outcome(0, "Infeasible", program=can))[0][0] == "false Infeasible"
    assert wrong(Outcome(0, "Infeasible", program=cannot)) == []


def test_feasibility_is_decided_exactly():
    def program(features, targets, radii, upper):
        return ao.AllocationProgram(features, np.ones(len(features)), targets, radii, None, upper)

    both = [[1.0, 0.0], [1.0, 1.0]]
    assert torture_exact.feasible(program(both, [[0.0, 1.0]], [1.0], [np.inf, 2.0]))
    assert torture_exact.feasible(program(both, [[0.0, 1.0]], [0.4], [np.inf, 2.0])) is False
    assert torture_exact.feasible(program(both, [[0.0, 1.0]], [0.5], [np.inf, 2.0])) is None
    assert torture_exact.feasible(program(both, [[0.0, 1.0]], [1.0], [np.inf, 0.0])) is False
    assert torture_exact.feasible(program(both, [[0.0, 1.0]], [1.001], [2.0, 2.0]))
    assert torture_exact.feasible(program(both, [[0.0, 1.0]], [0.999], [2.0, 2.0])) is False


def test_exact_ranks_and_values():
    assert torture_exact.exact_rank(np.array([[0.1, 1.0], [0.3, 3.0]])) == 2  # 0.3 is not three times 0.1
    assert torture_exact.exact_rank(np.array([[1.0, 2.0], [2.0, 4.0]])) == 1
    assert torture_exact.independent_value(np.eye(3), np.array([1.0, 0.5, 0.75])) == Fraction(12)
    assert torture_exact.independent_value(np.ones((2, 2)), np.ones(2)) is None


@with_referee
def test_the_report_has_a_row_for_each_family_and_road(tmp_path):
    totals = torture.Totals()
    for road in ("auto", "solve_many"):
        totals.add(run(Task("plain", road, 0), FAMILIES["plain"], range(2)))
    text = torture.report(totals, "python benchmarks/torture.py", 1.0)
    assert "| plain | 4 | 4 |" in text
    assert "| auto | 2 | 2 |" in text
    assert totals.sound
