"""What an answer is worth, in words: sizes are never understated, nothing is said twice, another interval is not confirmed."""

import dataclasses
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import bandits

import allocopt as ao
from allocopt.linear.assumptions import ROUNDING_LEVEL, Assumption, assuming, sentences
from allocopt.model.status_text import assumption_sentences, caveat, confirmed, usable, why_not

sizes = st.builds(lambda p, e: Fraction(p, 10**e), st.integers(1, 10**12), st.integers(12, 400))
assumptions = st.lists(
    st.builds(
        lambda kind, arm, size: Assumption(kind, (arm,), size, f"{kind} of arm {arm}"),
        st.sampled_from(["tie", "dependence"]), st.integers(0, 9), sizes,
    ), max_size=8,
)  # fmt: skip


def stated(text):
    """The size in parentheses, exactly."""
    return Fraction(re.search(r"\(<= (.*)\)$", text)[1])


@given(assumptions.filter(bool))
def test_the_stated_size_is_at_least_the_largest_and_at_most_a_tenth_above_it(some):
    largest = max(a.size for a in some)
    assert largest <= stated(assuming(some)) <= largest * Fraction(11, 10)


@given(assumptions)
def test_every_assumption_is_counted(some):
    counts = [int(n) for n in re.findall(r"(\d+) (?:tie|dependence)", assuming(some))]
    assert sum(counts) == len(some)


@given(assumptions, st.integers(1, 9))
def test_the_largest_are_said_in_full_and_the_others_counted(some, most):
    said = sentences(some, most)
    assert len(said) == min(len(some), most) + (len(some) > most)
    assert said[: min(len(some), most)] == [a.text for a in sorted(some, key=lambda a: -a.size)][:most]
    assert len(some) <= most or said[-1] == f"and {len(some) - most} more"


@given(st.fractions(0, 1))
def test_only_what_rounding_explains_is_at_rounding_level(size):
    for scaled in (size, size * ROUNDING_LEVEL, 1 / ROUNDING_LEVEL * size):
        a = Assumption("tie", (0,), scaled, "")
        assert a.at_rounding_level is (scaled <= Fraction(1, 2**40))
        assert Fraction(a.as_json()["size"]) == scaled


@pytest.fixture(scope="module")
def solution():
    return ao.regret_constant([[1, 0], [0, 1], [0.75, 0.5]], [1, 0])


@pytest.mark.parametrize("status", ao.Status)
def test_every_status_is_usable_or_has_a_reason(solution, status):
    s = dataclasses.replace(solution, status=status, stats={"reason": "because"})
    assert usable(status) is (why_not(s) is None)
    assert why_not(s) in (None, "because")
    assert (caveat(s) == "") is (status is ao.Status.CERTIFIED)
    assert why_not(dataclasses.replace(s, stats={})) in (None, "no reason given")


@given(bandits())
def test_a_proof_confirms_its_own_solution_and_no_interval_far_from_it(bandit):
    s = ao.solve(ao.programs.regret(bandit))
    e = s.verify()
    assert usable(s.status)
    assert confirmed(s, e)
    width = (s.upper - s.lower) + 1e-9 * s.upper
    if s.upper > 0:
        assert not confirmed(s, dataclasses.replace(e, lower=s.lower - 2 * width))
        assert not confirmed(s, dataclasses.replace(e, upper=s.upper + 2 * width))
    assert not confirmed(dataclasses.replace(s, upper=float("inf")), e)


def test_an_assumption_is_said_once():
    s = ao.regret_constant([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.1]], [0.1, 0.2, 0.3])
    assert s.status is ao.Status.CONDITIONAL
    said = list(assumption_sentences(s, s.verify()))
    assert said == list(assumption_sentences(s, None)) == [a.text for a in s.assumptions]
    unaware = dataclasses.replace(s, assumptions=())
    assert any("arm 1 taken as optimal" in sentence for sentence in assumption_sentences(unaware, s.verify()))
