"""Intervals and solutions as text and data: rounded outwards, never narrower; JSON that every reader takes."""

import json
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import answered, bandits

import allocopt as ao
from allocopt.insight.documents import enclosure_document, interval, short_interval, solution_document


@given(st.floats(1e-30, 1e30), st.floats(0, 1), st.integers(1, 17))
def test_a_short_interval_contains_what_was_proven(lower, width, digits):
    upper = lower * (1 + width)
    low, high = (Fraction(x) for x in short_interval(lower, upper, digits).strip("[]").split(", "))
    assert low <= Fraction(lower) and Fraction(upper) <= high
    assert low >= Fraction(lower) * (1 - Fraction(10) ** (1 - digits))
    assert high <= Fraction(upper) * (1 + Fraction(10) ** (1 - digits))


@given(bandits())
def test_every_digit_of_a_proven_interval_is_shown(bandit):
    e = ao.solve(ao.programs.regret(bandit)).verify()
    assert tuple(float(x) for x in interval(e).strip("[]").split(", ")) == (e.lower, e.upper)


@given(bandits())
def test_a_solution_is_strict_json_with_the_numbers_it_has(bandit):
    s = ao.solve(ao.programs.regret(bandit))
    assert answered(s)
    e = s.verify()
    document = json.loads(json.dumps(solution_document(s, e), allow_nan=False))
    assert (document["lower"], document["upper"], document["status"]) == (s.lower, s.upper, s.status.name)
    assert np.array_equal([float(x) for x in document["allocation"]], s.allocation)
    assert document["multipliers"] == s.multipliers.tolist()
    assert document["support"] == s.support.tolist() and document["binding"] == s.binding.tolist()
    assert document["confirmed"] is True and document["constraint_multipliers"] is None
    assert document["proven"] == json.loads(json.dumps(enclosure_document(e)))
    without = solution_document(s, None)
    assert without["proven"] is None and without.keys() == document.keys()


def test_a_document_is_plain_data_and_says_what_the_solution_says():
    solution = ao.regret_constant([[1, 0], [0, 1], [0.99, 0.02]], [1, 0])
    enclosure = solution.verify()
    document = json.loads(json.dumps(solution_document(solution, enclosure), allow_nan=False))
    assert document["value"] == solution.value and document["status"] == "CERTIFIED"
    assert document["allocation"] == ["inf", *solution.allocation[1:].tolist()]
    assert document["confirmed"] and document["proven"]["upper"] == enclosure.upper
    assert interval(enclosure) == f"[{enclosure.lower!r}, {enclosure.upper!r}]"
    assert np.isfinite(document["stats"]["seconds"])
