"""Proof files to be tampered with: one solution of every kind of program, and what must hold of any file."""

import copy
import json
import math

import pytest

import allocopt as ao
from allocopt.insight.instances import random_unit

BANDIT = random_unit(3, 8, seed=1)
NOISY = ao.LinearBandit(BANDIT.arms, BANDIT.theta, [0.3, 1.0, 2.5, 0.7, 1.0, 4.0, 0.2, 1.5])
EXACT = ao.LinearBandit([[1, 0], [0, 1], [0.75, 0.5]], [1, 0])  # ε = 1/4: every number is a double, c = 8 exactly
PROGRAMS = {
    "regret": lambda: ao.programs.regret(ao.LinearBandit(BANDIT.arms, BANDIT.theta, noise_variance=0.3)),
    "horizon": lambda: ao.programs.horizon(BANDIT.arms, BANDIT.gaps, 1000),
    "best_arm": lambda: ao.programs.best_arm(BANDIT),
    "g_optimal": lambda: ao.programs.g_optimal(BANDIT.arms),
    "optimism": lambda: ao.programs.optimism(BANDIT, 0.9),
    "remaining": lambda: ao.programs.remaining(BANDIT, [3, 0, 7.5, 1, 0, 0, 2, 100], 1000),
    "general": lambda: ao.AllocationProgram(
        BANDIT.arms, BANDIT.gaps + 0.1, BANDIT.arms[:3] * 0.3, [0.1, 0.2, 0.3],
        lower=[0.1, 0, 0, 0, 0, 0, 0, 0], upper=[math.inf, 1.0 / 3.0, 5, math.inf, 0, 2, 2, 3],
    ),
    "general with free arms": lambda: ao.AllocationProgram(
        BANDIT.arms, [0, 1, 0.5, 1, 1, 1, 0, 2], BANDIT.arms[:3], [0.1, 0.2, 0.3], upper=[math.inf] * 6 + [0.5, 3]
    ),
    "constrained": lambda: ao.AllocationProgram(
        BANDIT.arms, [0, 1, 0.5, 1, 1, 1, 0, 2], BANDIT.arms[:3], [0.1, 0.2, 0.3], upper=[math.inf] * 6 + [0.5, 3],
        constraints=([[1, 0, 1, 0, 0, 0.5, 0, 0], [0, -1, 0, -1, -1, 0, 0, 0]], [9.0, -6.0]),
    ),
    "exact": lambda: ao.programs.regret(EXACT),
    "variances": lambda: ao.programs.regret(NOISY),
    "contextual": lambda: ao.programs.contextual(ao.ContextualBandit([BANDIT.arms[:3], BANDIT.arms[3:]], BANDIT.theta)),
    "best_arm within epsilon": lambda: ao.programs.best_arm(NOISY, 0.7),
    "top_m": lambda: ao.programs.top_m(NOISY, 3),
    "threshold": lambda: ao.programs.threshold(BANDIT, -0.15),
    "transductive": lambda: ao.programs.transductive(BANDIT.arms, BANDIT.arms[2:6] * 0.7, BANDIT.theta, NOISY.noise_variance),
    "duelling": lambda: ao.programs.duelling(ao.LinearBandit(BANDIT.arms[:5], BANDIT.theta, 0.3)),
}  # fmt: skip


def reload(solution, path):
    solution.save(path, overwrite=True)
    return ao.load_solution(path)


def holds(document, path):
    """Load and verify a document: refused with InvalidFile, or an enclosure that is right for the instance in it."""
    path.write_text(json.dumps(document))
    try:
        loaded = ao.load_solution(path)
        e = loaded.verify()
    except ao.InvalidFile as error:
        message = str(error)
        if not message or "\n" in message:
            pytest.fail(f"not one clear line: {message!r}")
        return message
    assert not math.isnan(e.lower)
    assert not math.isnan(e.upper)
    assert 0 <= e.lower <= e.upper
    fresh = ao.solve(loaded.program)
    proven = fresh.verify()
    assert e.lower <= proven.upper
    assert e.upper >= proven.lower
    if not e.notes:
        # without anything taken as zero the floating bounds are for the same number
        assert e.lower <= fresh.upper
        assert e.upper >= fresh.lower
    return e


def modest(document):
    """The document with a claim that is true of everything, so that its other entries are put to the test."""
    return {**document, "claim": {"lower": 0.0, "upper": "inf", "status": "FAILED"}}


def change(document, path, value):
    """A copy with one entry replaced (or, for ``...``, deleted)."""
    changed = copy.deepcopy(document)
    place = changed
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return changed


def numbers(document, prefix=()):
    """Paths of all numbers of a document."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        if isinstance(value, dict | list):
            yield from numbers(value, (*prefix, key))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield (*prefix, key)
