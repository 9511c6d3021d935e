"""A small instance, a small program, and what a refusal must be."""

import math

import pytest

import allocopt as ao

ARMS = [[1.0, 0.0], [0.0, 1.0], [0.75, 0.5]]
THETA = [1.0, 0.0]
GAPS = [0.0, 1.0, 0.25]
GENERAL = {
    "features": [[1.0, 0.0], [0.0, 1.0]],
    "costs": [1.0, 2.0],
    "targets": [[1.0, 1.0]],
    "radii": [0.5],
    "lower": [0.0, 0.0],
    "upper": [math.inf, 100.0],
}
HUGE_INT = 10**400


def bandit():
    return ao.LinearBandit(ARMS, THETA)


def general(**changes):
    return ao.AllocationProgram(**{**GENERAL, **changes})


def refused(error, words, call):
    """The error's class, and a message of one line with every word."""
    with pytest.raises(error) as caught:
        call()
    assert isinstance(caught.value, ao.AllocoptError)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message
    return message


def attempt(call):
    """A solution, or None and the message of allocopt's own refusal."""
    try:
        return call(), ""
    except ao.AllocoptError as error:
        return None, str(error)


def never(_):
    raise AssertionError("solving has begun")
