"""Solutions and intervals as text and JSON: rounded outwards, never inwards, and plain data throughout."""

import json
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import allocopt as ao
from allocopt.insight.documents import interval, short_interval, solution_document

numbers = st.floats(1e-6, 1e12)


@given(numbers, numbers, st.integers(1, 17))
def test_a_short_interval_contains_the_one_that_was_proven(x, y, digits):
    lower, upper = sorted((x, y))
    shown = [Fraction(end) for end in short_interval(lower, upper, digits).strip("[]").split(",")]
    assert shown[0] <= Fraction(lower) and Fraction(upper) <= shown[1]


def test_a_document_is_plain_data_and_says_what_the_solution_says():
    solution = ao.regret_constant([[1, 0], [0, 1], [0.99, 0.02]], [1, 0])
    enclosure = solution.verify()
    document = json.loads(json.dumps(solution_document(solution, enclosure), allow_nan=False))
    assert document["value"] == solution.value and document["status"] == "CERTIFIED"
    assert document["allocation"] == ["inf", *solution.allocation[1:].tolist()]
    assert document["confirmed"] and document["proven"]["upper"] == enclosure.upper
    assert interval(enclosure) == f"[{enclosure.lower!r}, {enclosure.upper!r}]"
    assert np.isfinite(document["stats"]["seconds"])
