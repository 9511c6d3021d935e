"""The errors that users catch: all of them public, and what is wrong with a value is a ValueError too."""

import pytest

import allocopt as ao
from allocopt.base import errors


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_public_and_caught_as_an_error_of_allocopt(name):
    error = getattr(errors, name)
    assert getattr(ao, name) is error
    kind = KeyboardInterrupt if name == "Interrupted" else Warning if name.endswith("Warning") else ao.AllocoptError
    assert issubclass(error, kind)


def test_what_is_wrong_with_a_value_is_a_value_error_too():
    for error in (ao.InvalidInstance, ao.InvalidProgram, ao.InvalidOption, ao.InvalidFile, ao.Infeasible):
        assert issubclass(error, ValueError)
    assert issubclass(ao.NotProven, ao.InvalidProof) and issubclass(ao.InvalidProof, ao.InvalidFile)
    assert ao.Interrupted(None).solution is None
