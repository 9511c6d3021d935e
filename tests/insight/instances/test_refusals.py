"""Families refuse what `solve` refuses, by the name of the parameter, and what fills the memory before it is made."""

import itertools
import random

import pytest

import allocopt as ao
from allocopt.base.errors import AllocoptError
from allocopt.insight.instances import FAMILIES

VALUES = {
    int: [1, 2, 3, 5],
    float: [1e-300, 1e-60, 1e-51, 1e-49, 1e-20, 1e-10, 0.3, 1.0, 5.0, 1e10, 1e49, 1e51, 1e60],
    bool: [True, False],
    str: ["path", "cycle", "grid"],
}


@pytest.mark.parametrize("name", FAMILIES)
def test_what_a_family_makes_is_not_refused_by_solve(name):
    family = FAMILIES[name]
    axes = [VALUES[p.annotation] if key != "seed" else [0] for key, p in family.parameters.items()]
    points = [dict(zip(family.parameters, values, strict=True)) for values in itertools.product(*axes)]
    made, refused = 0, []
    for point in random.Random(0).sample(points, min(60, len(points))):
        try:
            bandit = family.build(**point)
        except AllocoptError as error:
            refused.append(str(error))
            continue
        made += 1
        program = ao.programs.regret(bandit)
        assert ao.solve(program).status is not ao.Status.FAILED, point
    assert made
    named = {*family.parameters, "arms", "theta", "gaps"}
    assert all(words.split(":")[0].split(" ")[0] in named for words in refused), refused


@pytest.mark.parametrize(
    ("name", "point"),
    [
        ("random-unit", {"dim": 8, "n_arms": 10**10}),
        ("clustered", {"dim": 8, "n_arms": 10**10}),
        ("near-ties", {"dim": 8, "n_arms": 10**10}),
        ("equal-gaps", {"dim": 8, "n_arms": 10**10}),
        ("finite-armed", {"n_arms": 10**6}),
        ("counter-example", {"epsilon": 0.1, "dim": 10**6}),
        ("soare", {"dim": 10**6}),
    ],
)
def test_arms_that_fill_the_memory_are_refused_before_they_are_made(name, point, tmp_path):
    with pytest.raises(ao.InvalidInstance, match=r"(dim|n_arms): .* fill .* GB, more than 1 GB"):
        FAMILIES[name].build(**point)
