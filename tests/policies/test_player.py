"""A policy in a loop of one's own: what a player refuses, and says."""

import numpy as np
import pytest

from allocopt.base.errors import AllocoptError
from allocopt.policies import UCB, LinTS, LinUCB, OptimalTracking, Player

CONTEXTS = [[[1, 0], [0, 1]], [[0.5, 0], [1, 1], [0, 0.2]]]


def with_contexts():
    return LinUCB().start_contexts(CONTEXTS, 10, rng=0)


def began_in_context_one():
    player = with_contexts()
    player.choose(1)
    return player


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: with_contexts().choose(), "context: expected the number of a context, from 0 to 1, got None"),
        (lambda: with_contexts().choose(2), "from 0 to 1, got 2"),
        (lambda: with_contexts().choose(True), "from 0 to 1, got True"),
        (lambda: with_contexts().choose(0.0), "from 0 to 1, got 0.0"),
        (lambda: with_contexts().update(0, 1.0), "call choose(context) first; round 1 has no context yet"),
        (lambda: began_in_context_one().choose(0), "context: expected 1, with which round 1 began"),
        (lambda: began_in_context_one().update(7, 1.0), "which was chosen for round 1, got 7"),
        (
            lambda: LinTS().start([[1, 0], [0, 1]], 10).choose(0),
            "context: expected none, since the policy was started without",
        ),
        (
            lambda: UCB().start_contexts(CONTEXTS, 10),
            "policy UCB cannot be played with contexts; LinUCB, LinTS and OAM can",
        ),
        (
            lambda: OptimalTracking().start_contexts(CONTEXTS, 10),
            "policy OptimalTracking cannot be played with contexts",
        ),
        (lambda: LinTS().start_contexts([[[1, 0]], [[1, 0, 0]]], 10), "equally many coordinates, got 2 and 3"),
        (lambda: LinTS().start_contexts([], 10), "contexts: expected at least one context, got none"),
        (lambda: LinTS().start_contexts(CONTEXTS, 10, [1.0, 2.0]), "noise_variance"),
    ],
)
def test_what_cannot_be_played_is_refused(call, words):
    with pytest.raises(AllocoptError) as caught:
        call()
    assert words in str(caught.value)


def test_a_refused_call_changes_nothing():
    player, other = began_in_context_one(), began_in_context_one()
    for call in (
        lambda: player.choose(0),
        lambda: player.update(7, 1.0),
        lambda: player.update(player.choose(), np.nan),
    ):
        with pytest.raises(AllocoptError):
            call()
    for one in (player, other):
        one.update(one.choose(), 0.4)
    assert isinstance(player, Player)
    assert player.round == other.round == 2
    assert player.choose(0) == other.choose(0)
    np.testing.assert_array_equal(player.state.ls.means, other.state.ls.means)


def test_variances_of_pairs_are_used():
    """A reward of a pair with a hundredth of the variance counts a hundred times as much."""
    player = LinTS().start_contexts(CONTEXTS, 10, [0.01, 1.0, 1.0, 1.0, 1.0], rng=0)
    np.testing.assert_allclose(player.state.ls.weights, [100, 1, 1, 1, 1])
