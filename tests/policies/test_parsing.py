"""Policies from text: every name and every number comes back, blanks do not matter, what is wrong is named."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocopt import policies
from allocopt.base.errors import InvalidOption
from allocopt.policies import UCB, LinTS, LinUCB, PhasedElimination, parse

positive = st.floats(1e-12, 1e12)


@pytest.mark.parametrize("name", policies.NAMES)
def test_a_name_alone_is_the_policy_with_its_defaults(name):
    assert parse(name) == getattr(policies, name)()
    assert parse(f"  {name} : ") == parse(name)


@given(st.sampled_from([UCB, LinTS, LinUCB]), positive)
def test_a_number_comes_back_to_the_bit(kind, a):
    assert parse(f"{kind.__name__}:a={a!r}") == kind(a=a)
    assert parse(kind(a=a).name) == kind(a=a)


@given(positive, st.floats(1e-6, 0.999))
def test_parameters_may_come_in_any_order_with_blanks_anywhere(scale, delta):
    wanted = PhasedElimination(delta=delta, scale=scale)
    for text in (f"delta={delta!r},scale={scale!r}", f" scale = {scale!r} , delta = {delta!r} "):
        assert parse(f"PhasedElimination:{text}") == wanted


@pytest.mark.parametrize("name", policies.NAMES)
def test_a_parameter_that_a_policy_does_not_have_is_named_with_those_it_has(name):
    known = [f.name for f in dataclasses.fields(getattr(policies, name))]
    with pytest.raises(InvalidOption) as caught:
        parse(f"{name}:nothing=1")
    assert str(caught.value) == f"policy {name}: unknown parameter 'nothing' (known: {', '.join(known)})"


@pytest.mark.parametrize("name", policies.NAMES)
def test_a_name_in_other_letters_is_guessed_but_not_taken(name):
    with pytest.raises(InvalidOption, match=f"did you mean '{name}'"):
        parse(name.swapcase())
