"""Programs whose rows are differences: canonical arrays and rationals against the definition, written out once more."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from exactly import U, rational

import allocopt as ao
from allocopt.certify.exact_arithmetic.program import exact_program
from allocopt.certify.reduction import data_error, reduce
from allocopt.linear.floating import GAP_ERROR, UNIT
from allocopt.linear.span import column_units


def programs():
    rng = np.random.default_rng(5)
    for _ in range(4):
        arms, theta = rng.integers(-90, 91, size=(6, 3)) / 7.0, rng.integers(1, 90, size=3) / 7.0
        arms[:, 2] *= 1e-3  # differences are rounded: entries over two magnitudes
        each = rng.integers(1, 10, size=6) / 7.0
        for noise in (0.7, each):
            bandit = ao.LinearBandit(arms, theta, noise)
            yield ao.programs.top_m(bandit, 2)
            yield ao.programs.threshold(bandit, 1.0 / 3.0)
            yield ao.programs.best_arm(bandit, 1.0 / 7.0, int(bandit.optimal_arms[0]))
            yield ao.programs.transductive(arms, arms[:4] / 3.0, theta, noise)
            yield ao.programs.contextual(ao.ContextualBandit([arms[:2], arms[2:]], theta, None, noise))
        yield ao.programs.duelling(ao.LinearBandit(arms, theta, 0.7))


def dot(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


def minus(x, y):
    return [a - b for a, b in zip(x, y, strict=True)]


def definition(program):
    """Features, costs, targets, radii and variances in Fractions, from what the user passed."""
    origin = program.origin
    source = origin.bandit if origin.items is None else origin.items
    rows, theta = rational(np.asarray(source.arms)), rational(source.theta)
    mean, k = [dot(x, theta) for x in rows], program.n_arms
    each = [Fraction(1)] * k if program.noise_variance is None else rational(program.noise_variance)
    common = 2 * (rational(source.noise_variance) if program.noise_variance is None else Fraction(1))
    features, costs = rational(np.asarray(program.features)), [Fraction(1)] * k
    best = mean.index(max(mean))
    if program.kind == "top_m":
        top = sorted(sorted(range(k), key=lambda i: -mean[i])[: origin.count])
        pairs = [(i, j) for i in top for j in range(k) if j not in top]
    elif program.kind == "best_arm":
        pairs = [(origin.answer, j) for j in range(k) if j != origin.answer]
    elif program.kind in ("transductive", "duelling"):
        pairs = [(best, j) for j in range(len(rows)) if j != best]
    elif program.kind == "threshold":
        tau = rational(origin.number)
        return features, costs, rows, [(m - tau) ** 2 / common for m in mean], each
    else:
        ends = np.cumsum((0, *source.sizes)).tolist()
        costs = [max(mean[a:b]) - m for a, b in itertools.pairwise(ends) for m in mean[a:b]]
        worse = [i for i in range(k) if costs[i]]
        return features, costs, [rows[i] for i in worse], [costs[i] ** 2 / common for i in worse], each
    shift = rational(origin.number) if program.kind == "best_arm" else 0
    if program.kind == "duelling":
        duels = [(i, j) for i in range(len(rows)) for j in range(i + 1, len(rows))]
        features = [minus(rows[i], rows[j]) for i, j in duels]
        costs = [mean[best] - (mean[i] + mean[j]) / 2 for i, j in duels]
    targets = [minus(rows[j], rows[i]) for i, j in pairs]
    return features, costs, targets, [(mean[i] - mean[j] + shift) ** 2 / common for i, j in pairs], each


def fraction(x):
    return Fraction(int(x.p), int(x.q))


def test_rationals_are_the_definition_and_rounded_arrays_are_close_to_it():
    kinds = set()
    for program in programs():
        kinds.add(program.kind)
        found = reduce(program)
        quotient, canonical = found.quotient, found.canonical
        features, costs, targets, radii, each = definition(program)
        exact = exact_program(program, quotient)
        assert [fraction(x) for x in exact.radii] == radii
        assert [fraction(x) for x in exact.costs] == [costs[i] * each[i] for i in exact.arms]
        units = rational(column_units(program.features, program.targets))
        if quotient.pivot_arms:
            continue  # contextual: the quotient is that of test_reduction
        assert [[fraction(x) for x in row] for row in exact.features] == [
            [row[c] * units[c] for c in quotient.coordinates] for row in features
        ]
        assert [[fraction(x) for x in row] for row in exact.targets] == [
            [row[c] * units[c] for c in quotient.coordinates] for row in targets
        ]
        error = 2 * rational(canonical.error) + rational(canonical.error) ** 2 + 2 * U
        for n, c in enumerate(quotient.coordinates):
            first = next(m for m, i in enumerate(found.variables.tolist()) if features[i][c])
            i = int(found.variables[first])
            ratio = rational(canonical.features[first, n]) ** 2 * costs[i] * each[i] / features[i][c] ** 2
            unit = Fraction(4) ** round(float(np.log2(float(ratio))) / 2)
            for m, i in enumerate(found.variables.tolist()):
                true = features[i][c] ** 2 * unit / (costs[i] * each[i])
                assert abs(rational(canonical.features[m, n]) ** 2 - true) <= error * true
            for m, j in enumerate(found.targets.tolist()):
                true = targets[j][c] ** 2 * unit / radii[j]
                assert abs(rational(canonical.targets[m, n]) ** 2 - true) <= error * true
    assert kinds == {"top_m", "threshold", "best_arm", "transductive", "contextual", "duelling"}


@pytest.mark.parametrize("program", list(programs())[:11], ids=lambda p: p.kind)
def test_distances_have_the_error_of_gaps(program):
    assert data_error(program) == GAP_ERROR + 8.0 * UNIT
