"""What the tests of proofs share."""

import pytest
from proofs import PROGRAMS

import allocopt as ao


@pytest.fixture(scope="module")
def solutions():
    """One certified solution per kind of program."""
    solved = {name: ao.solve(program()) for name, program in PROGRAMS.items()}
    assert all(s.status is ao.Status.CERTIFIED for s in solved.values())
    return solved
