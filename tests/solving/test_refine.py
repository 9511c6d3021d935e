"""What the rooms above ask of the methods: the answers are judged by the certificate, never trusted."""

import numpy as np

import allocopt as ao
from allocopt.certify.certificate import evaluate
from allocopt.certify.reduction import reduce
from allocopt.insight.instances import random_unit
from allocopt.solving.refine import method_names, refined_pair, resolved_bounds

PROBLEM = reduce(ao.programs.regret(random_unit(4, 30))).canonical


def test_every_method_that_is_named_can_be_asked_for():
    bandit = random_unit(3, 8)
    for name in set(method_names()) - {"closed-form", "design"}:  # which need structure
        assert ao.solve(ao.programs.regret(bandit), method=name, tol=1e-4).status is ao.Status.CERTIFIED


def test_a_refined_pair_is_as_sharp_as_was_asked_for():
    pair = refined_pair(PROBLEM, 1e-11)
    assert pair is not None
    assert evaluate(PROBLEM, *pair).gap < 1e-9


def test_a_resolve_reaches_the_tolerance_from_a_good_start_and_from_none():
    alpha, multipliers = refined_pair(PROBLEM, 1e-6)
    nothing = np.zeros(len(alpha)), np.zeros(len(multipliers))
    values = []
    for start in ((alpha, multipliers), nothing):
        found = resolved_bounds(PROBLEM, *start, 1e-8)
        assert found is not None and found.gap <= 1e-8
        values.append((found.lower, found.upper))
    assert max(lower for lower, _ in values) <= min(upper for _, upper in values)
