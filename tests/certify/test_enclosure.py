"""What `Solution.verify` returns: an interval, what it rests on, and which arithmetic it asks."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from blocks import in_blocks, unit_arms

import allocopt as ao
from allocopt.certify import enclosure
from allocopt.certify.enclosure import Enclosure, enclose
from allocopt.linear.assumptions import Assumption

INF = float("inf")
TIE = Assumption("tie", (3, 5), Fraction(1, 2**50), "a tie")
DEPENDENCE = Assumption("dependence", (1,), Fraction(1, 2**45), "a dependence")


def test_an_interval_tells_its_middle_its_gap_and_what_it_contains():
    e = Enclosure(2.0, 3.0, (), 53)
    assert (e.midpoint, e.gap, e.notes, dict(e.tied_gaps)) == (2.5, 0.5, (), {})
    assert 2.0 in e and 3.0 in e and 2.5 in e and 1.9 not in e and 3.1 not in e
    for lower, upper, gap in (
        (2.0, 2.0, 0.0), (0.0, 0.0, 0.0), (INF, INF, 0.0), (0.0, 1.0, INF), (1.0, INF, INF), (0.0, INF, INF), (0.5, 1.0, 1.0),
    ):  # fmt: skip
        assert Enclosure(lower, upper, (), 53).gap == gap


def test_what_is_assumed_is_told():
    e = Enclosure(2.0, 3.0, (TIE, DEPENDENCE), 53, ("a problem",))
    assert dict(e.tied_gaps) == {3: 2.0**-50, 5: 2.0**-50}
    assert e.notes == ("a tie", "a dependence", "a problem")


@pytest.fixture(scope="module")
def solution():
    return ao.solve(ao.programs.regret(ao.LinearBandit([[1, 0], [0, 1], [0.75, 0.5]], [1, 0])))


@pytest.mark.parametrize("bad", [63, 100_001, 0, -64, True, False, 64.0, "64"])
def test_bits_are_a_whole_number_within_reason(solution, bad):
    with pytest.raises(ao.AllocoptError, match="precision"):
        enclose(solution, bad)


@pytest.mark.parametrize("bits", [64, 100_000])
def test_bits_are_those_that_were_asked_for(solution, bits):
    e = enclose(solution, bits)
    assert e.precision == bits and 8 in e and e.gap < 1e-8


@pytest.fixture
def roads(monkeypatch):
    """Stand-ins: doubles prove [2, 3] and assume a tie, balls prove [2.25, 2.75] in 99 bits."""

    def doubles(program, allocation, multipliers, method, tol, stats, row_multipliers=None):
        again = ao.solve(program)
        return dataclasses.replace(again, lower=2.0, upper=3.0, assumptions=(TIE,))

    monkeypatch.setattr(enclosure, "recertify", doubles)
    monkeypatch.setattr(enclosure, "in_balls", lambda reduction, a, m, bits, rows: (2.25, 2.75, bits or 99))


@pytest.mark.parametrize(
    ("lower", "upper", "bits"),
    [(2.0, 3.0, 53), (1.5, 3.5, 53), (2.1, 3.0, 99), (2.0, 2.9, 99), (1.0, 2.9, 99), (2.1, 4.0, 99), (0.0, INF, 53), (2.5, INF, 53)],
)  # fmt: skip
def test_balls_are_asked_where_doubles_do_not_reach_the_claim(solution, roads, lower, upper, bits):
    claim = dataclasses.replace(solution, lower=lower, upper=upper)
    e = enclose(claim)
    assert e.precision == bits
    assert (e.lower, e.upper) == ((2.0, 3.0) if bits == 53 else (2.25, 2.75))
    assert e.assumptions == ((TIE,) if bits == 53 else ())
    assert enclose(claim, 77) == Enclosure(2.25, 2.75, (), 77)


def test_large_programs_have_doubles_only(solution, roads, monkeypatch):
    monkeypatch.setattr(enclosure, "fits_balls", lambda _: False)
    claim = dataclasses.replace(solution, lower=2.5, upper=2.5)
    assert enclose(claim) == Enclosure(2.0, 3.0, (TIE,), 53)


def test_arms_in_blocks_are_proven_block_by_block(monkeypatch):
    arms, theta = unit_arms(3, 40)
    with in_blocks():
        found = ao.regret_constant(arms, theta)
        monkeypatch.setattr(enclosure, "recertify", None)
        e = enclose(found)
        assert e.precision == 53 and e.lower <= found.upper and found.lower <= e.upper and e.gap < 1e-7
        assert found.lower <= e.lower and e.upper <= found.upper
        balls = enclose(found, 128)
        assert balls.precision == 128 and balls.lower <= e.upper and e.lower <= balls.upper
        assert np.isclose(balls.midpoint, e.midpoint, rtol=1e-7)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("constraint_multipliers", [-0.7, -0.2], "constraint_multipliers: expected numbers >= 0, but entry 0 is -0.7"),
        ("constraint_multipliers", [0.0], "constraint_multipliers: expected 2 entries, got 1"),
        ("multipliers", [0.0, 0, 1, -1, 0], "multipliers: expected numbers >= 0, but entry 3 is -1.0"),
        ("multipliers", [0.0, 0, INF, 1, 0], "entry 2 is inf"),
        ("allocation", [0.0, 0, -1, 1, 0], "allocation: expected numbers >= 0, but entry 2 is -1.0"),
        ("allocation", [0.0, np.nan, 1, 1, 0], "entry 1 is nan"),
        ("allocation", [INF, 0, 1, 1, 0], "allocation: arm 0 is infinite without being free"),
        ("allocation", [1.0, 1], "allocation: expected 5 entries, got 2"),
    ],
)
def test_a_solution_that_was_changed_since_it_was_found_proves_nothing_false(name, value, words):
    """Negative multipliers of linear constraints proved a lower bound of 26.4 where the value is 2."""
    features = [[0.0, -1.0], [-0.75, -2.0], [-1.75, -2.0], [-1.5, 1.25], [0.75, 1.75]]
    rows = [[1, 0, -1, 1, 0], [0, 1, 1, 0, -1]], [30.0, 20.0]
    s = ao.solve(ao.AllocationProgram(features, np.ones(5), features, np.ones(5), constraints=rows))
    assert s.status is ao.Status.CERTIFIED
    changed = dataclasses.replace(s, **{name: np.array(value)})
    for prove in (changed.verify, lambda: changed.verify(128), lambda: changed.verify(exact=True)):
        with pytest.raises(ao.InvalidProof, match=words):
            prove()


def test_a_large_set_asks_for_as_many_entries():
    with in_blocks():
        s = ao.solve(ao.programs.regret(ao.LinearBandit(*unit_arms(3, 2000, seed=1))))
        assert s.stats["road"] == "blocks" and s.verify().gap < 1e-8
        with pytest.raises(ao.InvalidProof, match="multipliers: expected 2000 entries, got 3"):
            dataclasses.replace(s, multipliers=np.ones(3)).verify()
