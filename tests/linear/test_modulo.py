"""Quotients and gaps against rationals: every entry to its promised error, zeros exactly zeros, each tier where it must be."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from exactly import U, dot, gamma, rational, solved

import allocopt as ao
from allocopt.linear import double_double as precise
from allocopt.linear import floating, gaps, modulo
from allocopt.linear.floating import ENTRY_ERROR, GAP_ERROR, NOISE, PAIR_ERROR, TINY
from allocopt.linear.modulo import Modulo


def coefficients(mod, row):
    """x_P F_P^-1."""
    pivots, columns = rational(mod.pivot_rows), mod.pivot_columns
    return solved([[p[c] for p in pivots] for c in columns], [rational(row[c]) for c in columns])


def exact_rest(mod, row):
    """q(row) by Gauss's elimination."""
    pivots, shares = rational(mod.pivot_rows), coefficients(mod, row)
    return [rational(row[c]) - sum(s * p[c] for s, p in zip(shares, pivots, strict=True)) for c in mod.columns]


def exact_rule(mod):
    """C = F_P^-1 F_K."""
    pivots, columns = rational(mod.pivot_rows), mod.pivot_columns
    block = [[p[c] for c in columns] for p in pivots]
    rule = [solved(block, [p[c] for p in pivots]) for c in mod.columns]
    return [[rule[j][i] for j in range(len(mod.columns))] for i in range(mod.n)]


def exact_terms(mod, row):
    rule = exact_rule(mod)
    return [
        abs(rational(row[c])) + sum(abs(rational(row[p]) * rule[i][j]) for i, p in enumerate(mod.pivot_columns))
        for j, c in enumerate(mod.columns)
    ]


def families():
    """Rows from far outside the span of the pivots to exactly in it, in steps of a few bits."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 3):
        for turn in range(4):
            pivots = rng.normal(size=(n, n + 2))
            if turn == 1:
                pivots = rng.integers(-9, 10, size=(n, n + 2)).astype(float) + 0.5 * np.eye(n, n + 2)
            if turn == 2:
                pivots = 1.0 + 2.0**-12 * rng.normal(size=(n, n + 2))
            rows = [rng.normal(size=n + 2)]
            for power in (*range(0, 60, 4), *range(88, 112, 2)):
                combination = rng.integers(-3, 4, size=n) @ pivots
                rows.append(combination + 2.0**-power * rng.normal(size=n + 2))
            rows += [rng.integers(-3, 4, size=n) @ pivots for _ in range(4)]
            rows += [*pivots, 3.0 * pivots[0], -0.5 * pivots[-1], np.eye(n + 2)[-1], np.zeros(n + 2)]
            # differences beyond the last place of a double, by a pivot with an entry that is tiny in a column of its own
            yield Modulo.of(pivots, list(range(n))), np.array(rows)
    for power in range(40, 130, 6):  # what is left is 2^-power of the terms
        pivots = np.array([[1.0, 1.0, 2.0 ** -(power // 2)]])
        rows = np.array(
            [
                [1.0 + 2.0 ** -(power // 2), 1.0, 2.0 ** -(power // 2)],
                [1.0, 1.0 + 2.0**-50, 0.0],
                [3.0, 3.0, 3.0 * 2.0 ** -(power // 2)],
            ]
        )
        yield Modulo.of(pivots, [0]), rows
        high = 1.0 + 2.0**-30
        yield (
            Modulo.of(np.array([[1.0, high, high]]), [0]),
            np.array([[high, high * high, high * high], [2.0, 2.0 * high, 2.5 * high]]),
        )
        a, b = 1.0 + 2.0**-27, 1.0 - 2.0**-27  # a b = 1 − 2^-54
        yield (
            Modulo.of(np.array([[b, 1.0, 0.5], [0.0, 1.0, 2.0**-power]]), [0, 1]),
            np.array([[1.0, a, a], [b, 1.0, 0.5], [b, 2.0, 0.5 + 2.0**-power]]),
        )


def entries_hold(cases=None):
    for mod, rows in cases or families():
        quotient, terms = mod.with_terms(rows)
        assert np.array_equal(mod(rows), quotient)
        for row, q, t in zip(rows, quotient, terms, strict=True):
            for value, exact in zip(rational(q), exact_rest(mod, row), strict=True):
                if (value == 0) != (exact == 0) or abs(value - exact) > rational(ENTRY_ERROR) * abs(exact):
                    return False
            for value, exact in zip(rational(t), exact_terms(mod, row), strict=True):
                assert abs(value - exact) <= gamma(mod.n + 4) * exact
    return True


def test_entries_have_their_digits():
    assert entries_hold()


@pytest.mark.parametrize("constant", ["UNIT", "PAIR_ERROR"])
def test_a_missing_tier_is_seen(constant, monkeypatch):
    monkeypatch.setattr(modulo, constant, 0.0)
    if constant == "PAIR_ERROR":
        monkeypatch.setattr(modulo, "TINY", 0.0)
    assert not entries_hold()


def test_entries_stay_in_a_tier_only_if_its_worst_rounding_allows(monkeypatch):
    """Plain: C, each product, the sums and the difference. Pairs: `PAIR_ERROR` per term, and one rounding at the end."""
    careful, exactly = [], []
    in_pairs, in_rationals = Modulo._in_pairs, Modulo._by_rationals
    monkeypatch.setattr(
        Modulo, "_in_pairs", lambda self, kept, *rest: careful.append(len(kept)) or in_pairs(self, kept, *rest)
    )

    def seen(self, rows, quotient, i, j, rationals):
        exactly.extend(zip(i.tolist(), j.tolist(), strict=True))
        in_rationals(self, rows, quotient, i, j, rationals)

    monkeypatch.setattr(Modulo, "_by_rationals", seen)
    counts = {"plain": 0, "pairs": 0, "rationals": 0}
    for mod, rows in families():
        for row in rows:
            careful.clear()
            exactly.clear()
            for column in mod.columns:  # one entry at a time
                single = Modulo.of(mod.pivot_rows, mod.pivot_columns, [column])
                careful.clear()
                exactly.clear()
                single(row[None])
                (rest,), (terms,) = exact_rest(single, row), exact_terms(single, row)
                if not careful:
                    assert (mod.n + 2) * U * terms <= rational(ENTRY_ERROR) * abs(rest) or terms == 0
                    counts["plain"] += 1
                elif not exactly:
                    assert (mod.n + 1) * rational(PAIR_ERROR) * terms + rational(TINY) <= (
                        rational(ENTRY_ERROR) - 4 * U
                    ) * abs(rest)
                    counts["pairs"] += 1
                else:
                    assert (mod.n + 4) * rational(PAIR_ERROR) * terms + rational(TINY) >= rational(
                        ENTRY_ERROR
                    ) / 4 * abs(rest)
                    counts["rationals"] += 1
    assert min(counts.values()) > 30, counts


def test_pairs_are_as_accurate_as_they_are_taken_to_be():
    rng = np.random.default_rng(1)
    for n in (1, 2, 5):
        kept, factors = rng.normal(size=200), rng.normal(size=(200, n))
        high = rng.normal(size=(200, n))
        low = high * rng.uniform(-1, 1, size=(200, n)) * 2.0**-54
        total = (kept, np.zeros(200))
        for p in range(n):
            total = precise.add(
                total, precise.negative(precise.multiply((factors[:, p], np.zeros(200)), (high[:, p], low[:, p])))
            )
        found = Modulo(np.zeros((n, n)), tuple(range(n)), np.zeros(0))._in_pairs(kept, factors, high, low)
        for i in range(200):
            rule = [rational(h) + rational(x) for h, x in zip(high[i], low[i], strict=True)]
            exact = rational(kept[i]) - dot(rational(factors[i]), rule)
            terms = abs(rational(kept[i])) + sum(abs(f * c) for f, c in zip(rational(factors[i]), rule, strict=True))
            assert abs(rational(total[0][i]) + rational(total[1][i]) - exact) <= n * rational(PAIR_ERROR) * terms
            assert abs(rational(found[i]) - exact) <= n * rational(PAIR_ERROR) * terms + U * abs(exact) * 2


def test_the_rule_is_accurate_to_a_pair():
    for mod, _ in families():
        high, low = mod.rule
        for h, x, exact in zip(high, low, exact_rule(mod), strict=True):
            for a, b, c in zip(rational(h), rational(x), exact, strict=True):
                assert abs(a + b - c) <= rational(PAIR_ERROR) * abs(c)
                assert abs(a - c) <= 2 * U * abs(c)


def test_no_pivots_and_no_columns():
    nothing = Modulo.of(np.zeros((0, 2)), [])
    rows = np.array([[1.0, -2.0], [0.0, 3.0]])
    quotient, terms = nothing.with_terms(rows)
    assert np.array_equal(quotient, rows) and np.array_equal(terms, np.abs(rows))
    assert nothing.exact_share(rows[0], 1) == 1
    assert nothing.shares(rows).tolist() == [[1.0, 1.0], [0.0, 1.0]]
    everything = Modulo.of(np.eye(2), [0, 1])
    assert everything(rows).shape == (2, 0)
    with pytest.raises(ZeroDivisionError):
        Modulo.of(np.array([[0.0, 1.0]]), [0])
    with pytest.raises(ZeroDivisionError):
        Modulo.of(np.array([[1.0, 2.0, 1.0], [2.0, 4.0, 5.0]]), [0, 1])
    chosen = Modulo.of(np.array([[2.0, 4.0, 6.0]]), [0], [2])
    assert chosen(np.array([[1.0, 9.0, 1.0]])).tolist() == [[-2.0]]


def test_products_that_underflow_are_not_compared_as_pairs():
    """x_K f_P = x_P f_K only seems to hold where both products are 0 in doubles."""
    tiny = 2.0**-540
    mod = Modulo.of(np.array([[tiny, tiny]]), [0])
    quotient = mod(np.array([[tiny, tiny * (1 + 2.0**-52)], [tiny, tiny]]))
    assert quotient.tolist() == [[tiny * 2.0**-52], [0.0]]


def test_pairs_that_lost_their_low_halves_are_not_compared():
    """x_K f_P and x_P f_K differ by 2^-1104, which no double can hold: their halves agree, and yet the entry is not 0."""
    above, unit = 2.0**-500 * (1 + 2.0**-52), 2.0**-500
    mod = Modulo.of(np.array([[above, unit * (1 + 2.0**-51)]]), [0])
    (row,) = rows = np.array([[unit, above]])
    (exact,) = exact_rest(mod, row)
    assert exact != 0
    assert mod(rows)[0, 0] == float(exact) != 0.0


def test_shares_are_exact():
    for mod, rows in families():
        floats = mod.shares(rows)
        for row, approximate in zip(rows, floats, strict=True):
            shares = coefficients(mod, row)
            for j, (c, rest) in enumerate(zip(mod.columns, exact_rest(mod, row), strict=True)):
                terms = abs(rational(row[c])) + sum(
                    abs(s * rational(p[c])) for s, p in zip(shares, mod.pivot_rows, strict=True)
                )
                exact = abs(rest) / terms if terms else Fraction(0)
                assert mod.exact_share(row, j) == exact
                assert isinstance(mod.exact_share(row, j), Fraction)
                assert (approximate[j] == 0) == (exact == 0)
                assert approximate[j] == pytest.approx(float(exact), rel=1e-6)


def test_noise_is_what_rounding_of_the_input_explains():
    mod = Modulo.of(np.array([[1.0, 1.0]]), [0])
    found = mod.noise(np.array([0.0, NOISE, NOISE * (1 + 2.0**-50), -NOISE, 1.0]), np.ones(5))
    assert found.tolist() == [False, True, False, True, False]


def test_a_map_travels():
    for mod, rows in families():
        copy = pickle.loads(pickle.dumps(mod))
        assert np.array_equal(copy(rows), mod(rows))
        break


@pytest.mark.parametrize(
    ("rest", "pairs", "exact"), [(0.186, 0, 0), (0.151, 1, 0), (7 * 2.0**-50, 1, 0), (5 * 2.0**-50, 1, 1)]
)
def test_entries_stay_in_a_tier_only_where_lemma_1_allows_it(rest, pairs, exact, monkeypatch):
    """n = 1: 5 u T against 2^-47 |q| in doubles, 3·2^-98 T against 2^-48 |q| in pairs; T is 2 + q here."""
    asked = []
    for name in ("_in_pairs", "_by_rationals"):
        tier = getattr(Modulo, name)
        monkeypatch.setattr(Modulo, name, lambda *a, name=name, tier=tier: asked.append(name) or tier(*a))
    mod = Modulo.of(np.array([[1.0, 1.0]]), [0])
    found = mod(np.array([[1.0, 1.0 + rest]]))[0, 0]
    assert (asked.count("_in_pairs"), asked.count("_by_rationals")) == (pairs, exact)
    assert found == (1.0 + rest) - 1.0


def test_whole_numbers_just_beyond_doubles_prove_no_zero():
    """−2^52 + (2^52 − 1) + 4/3 is 1/3: 3 (2^52 − 1) is odd and above 2^53, and rounded it would make a zero of it."""
    mod = Modulo.of(np.array([[1.0, 0.0, -(2.0**52 - 1)], [0.0, 3.0, 1.0]]), [0, 1])
    row = np.array([1.0, -4.0, -(2.0**52)])
    assert 2**53 < 3 * (2**52 - 1) < 2**54 and Fraction(float(3 * (2**52 - 1))) == 3 * (2**52 - 1) - 1
    assert mod(row[None])[0, 0] == pytest.approx(1 / 3, rel=1e-13)


def test_sums_of_which_every_part_is_left_are_no_zeros():
    mod = Modulo.of(np.array([[3.0, 0.0, 5.0], [0.0, 3.0, 7.0]]), [0, 1])
    odd = 1.0 + 2.0**-52
    rows = np.array([[odd * 2.0**-200, odd * 2.0**-400, odd], [3.0, 3.0, 12.0]])
    assert mod._proven_zero(rows, np.arange(2), np.zeros(2, dtype=np.int64)).tolist() == [False, True]


# --- gaps


def exact_means(rows, theta):
    return [dot(row, rational(theta)) for row in rational(rows)]


def bandits():
    rng = np.random.default_rng(2)
    for turn in range(60):
        d = 1 + turn % 5
        theta = rng.normal(size=d) * 2.0 ** rng.integers(-20, 21, size=d)
        best = rng.normal(size=d)
        rows = [best, best.copy()]
        for power in (*range(0, 60, 6), 100, 104):
            rows.append(best + 2.0**-power * rng.normal(size=d))
        if d > 1:
            for scale in (1.0, 2.0**-30):  # means that agree to twice the digits of doubles, or wholly
                other = best.copy()
                other[:2] += scale * np.array([theta[1], -theta[0]]) * np.array([1.0, 1.0]) / np.abs(theta[:2]).max()
                rows.append(other)
        yield np.array(rows)[rng.permutation(len(rows))], theta
    a, b = 1.0 + 2.0**-27, 1.0 - 2.0**-27
    yield np.array([[a, -1.0], [0.0, -(2.0**-54)], [0.0, 0.0], [0.0, -(2.0**-110)]]), np.array([b, 1.0])
    yield np.array([[1.0, 1e-30], [1.0, 0.0], [1.0, 1e-30], [0.0, 1.0]]), np.array([1.0, 1.0])
    yield np.array([[1.0, 2.0**-60, 0.0], [1.0, 2.0**-60, 2.0**-120]]), np.ones(3)  # more digits than pairs have
    # the smallest entries there are: the low halves of their products underflow
    yield np.array([[1.1e-150, 1.3e-150], [1.7e-150, 0.0], [1.1e-150, 1.2e-150]]), np.array([1.3e-150, 1.7e-150])


def gaps_hold():
    for rows, theta in bandits():
        means = rows @ theta
        exact = exact_means(rows, theta)
        best = gaps.best_of(rows, theta, means)
        if best != exact.index(max(exact)):
            return False
        doubt = gaps.plain_mean_error(rows, theta)
        for value, mean, true in zip(rational(doubt), rational(means), exact, strict=True):
            assert abs(mean - true) <= value
        worst = [gamma(len(theta)) * dot(rational(np.abs(row)), rational(np.abs(theta))) for row in rows]
        assert all(d >= w for d, w in zip(rational(doubt), worst, strict=True))
        found = gaps.refined_gaps(rows, theta, rows[best], means[best] - means, doubt + doubt[best])
        for value, mean in zip(rational(found), exact, strict=True):
            gap = max(exact) - mean
            if abs(value - gap) > rational(GAP_ERROR) * gap:
                return False
        for i in range(len(rows)):
            gap = gaps.exact_gap(rows[i], theta, rows[best])
            assert Fraction(int(gap.p), int(gap.q)) == max(exact) - exact[i]
            terms = sum(
                abs(x * t) for r in (rows[i], rows[best]) for x, t in zip(rational(r), rational(theta), strict=True)
            )
            share = gaps.tie_share(rows[i], theta, rows[best])
            assert share * terms == max(exact) - exact[i] and isinstance(share, Fraction)
    return True


@pytest.mark.parametrize("few", [0, 2000])
def test_gaps_have_their_digits(few, monkeypatch):
    monkeypatch.setattr(gaps, "_FEW", few)
    assert gaps_hold()


@pytest.mark.parametrize("constant", ["UNIT", "PAIR_ERROR"])
def test_gaps_without_a_margin_are_seen(constant, monkeypatch):
    monkeypatch.setattr(gaps, constant, 0.0)
    monkeypatch.setattr(gaps, "TINY", 0.0)
    monkeypatch.setattr(gaps, "_FEW", 0)  # exact sums need no margin
    try:
        held = gaps_hold()
    except AssertionError:
        held = False
    assert not held


def test_gaps_stay_in_a_tier_only_if_its_worst_rounding_allows(monkeypatch):
    exactly = []
    exact_gap = gaps.exact_gap
    monkeypatch.setattr(gaps, "exact_gap", lambda *row: exactly.append(1) or exact_gap(*row))
    careful = []
    dot_in_pairs = precise.dot
    monkeypatch.setattr(gaps, "_FEW", 0)
    monkeypatch.setattr(precise, "dot", lambda rows, theta: careful.append(1) or dot_in_pairs(rows, theta))
    counts = {"plain": 0, "pairs": 0, "rationals": 0}
    for rows, theta in bandits():
        exact = exact_means(rows, theta)
        best = rows[exact.index(max(exact))]
        size = dot(rational(np.abs(best)), rational(np.abs(theta)))
        for row, mean in zip(rows, exact, strict=True):
            exactly.clear()
            careful.clear()
            doubt = gaps.plain_mean_error(row[None], theta) + gaps.plain_mean_error(best[None], theta)
            found = gaps.refined_gaps(row[None], theta, best, np.array([best @ theta - row @ theta]), doubt)
            gap, terms = max(exact) - mean, size + dot(rational(np.abs(row)), rational(np.abs(theta)))
            if not careful:
                assert (len(theta) + 1) * U * terms <= (rational(GAP_ERROR) - 2 * U) * gap
                counts["plain"] += 1
            elif not exactly and found[0] != 0.0:
                assert (len(theta) + 2) * rational(PAIR_ERROR) * terms + rational(TINY) <= rational(GAP_ERROR) / 2 * gap
                counts["pairs"] += 1
            else:
                counts["rationals"] += 1
    assert min(counts.values()) > 10, counts


def test_the_best_row_is_not_the_one_of_the_largest_mean_in_doubles():
    rng = np.random.default_rng(6)
    misled = 0
    for _ in range(300):
        theta, best = rng.normal(size=4), rng.normal(size=4)
        rows = best + 2.0**-52 * rng.integers(-2, 3, size=(6, 4)) * np.abs(best)
        means, exact = rows @ theta, exact_means(rows, theta)
        misled += exact[int(np.argmax(means))] != max(exact)
        assert gaps.best_of(rows, theta, means) == exact.index(max(exact))
    assert misled > 50


def test_the_doubt_of_means_is_that_of_lemma_2():
    for d in (1, 3):
        found = gaps.plain_mean_error(np.full((1, d), -0.5), np.full(d, 2.0))
        assert found.tolist() == [2 * (d + 4) * floating.UNIT * d + floating.TINY]


@pytest.mark.parametrize("worse", [0, 1])
def test_pairs_that_err_as_much_as_they_may_do_not_hide_the_best(worse, monkeypatch):
    """One row is better by 2^-99; pairs that are wrong by (d + 2) 2^-98 of their terms each say that the other one is."""
    rows = np.array([[1.0, 2.0**-99], [1.0, 0.0]])
    rows = rows if worse else rows[::-1]
    low = np.array([-4.0, 4.0]) if worse else np.array([4.0, -4.0])
    monkeypatch.setattr(gaps.precise, "dot", lambda *_: (np.ones(2), low * 2.0**-98))
    assert gaps.best_of(rows, np.ones(2), np.ones(2)) == 1 - worse


def test_the_first_of_those_that_tie_is_the_best():
    for rows in ([[1.0, 0.0], [1.0, 0.0], [0.5, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]):
        some = np.array([[0.0, 0.0], *rows])
        assert gaps.best_of(some, np.ones(2), some.sum(axis=1)) == 1


@pytest.mark.parametrize(("units", "exact"), [(9, True), (11, False)])
def test_gaps_are_taken_from_pairs_where_lemma_2_allows_it(units, exact, monkeypatch):
    """(d + 4) 2^-98 Σ|x θ| against a quarter of 2^-46 of the gap: for d = 1 and means of about 1 that is 10 units of 2^-50."""
    asked = []
    exact_gap = gaps.exact_gap
    monkeypatch.setattr(gaps, "exact_gap", lambda *row: asked.append(1) or exact_gap(*row))
    best, row = np.ones(1), np.array([[1.0 - units * 2.0**-50]])
    found = gaps.refined_gaps(row, np.ones(1), best, np.array([0.5]), np.array([np.inf]))
    assert found.tolist() == [units * 2.0**-50] and bool(asked) is exact


def test_gaps_never_are_negative():
    found = gaps.refined_gaps(np.array([[1.0]]), np.ones(1), np.array([0.5]), np.array([-0.5]), np.array([1.0]))
    assert found.tolist() == [0.0]


def test_a_bandit_has_these_gaps():
    a, b = 1.0 + 2.0**-27, 1.0 - 2.0**-27
    bandit = ao.LinearBandit([[a, -1.0], [0.0, -1.0], [0.0, 0.0]], [b, 1.0])  # means −2^-54, −1 and 0
    assert bandit.optimal_arms.tolist() == [0, 2]
    (assumption,) = bandit.assumptions
    assert assumption.kind == "tie" and assumption.size == Fraction(1, 2**54) / (2 - Fraction(1, 2**54))


def test_products_that_vanish_are_not_zeros():
    mod = Modulo.of(np.array([[1.0, 2.0**-600]]), [0])
    row = np.array([2.0**-400, 0.0])
    exact = mod.exact_entry(row, 0)
    assert exact != 0
    assert mod(np.array([[2.0**-300, 0.0]]))[0, 0] == -(2.0**-900)
    small = Modulo.of(np.array([[1.0, 1.3 * 2.0**-570]]), [0])(np.array([[1.1 * 2.0**-450, 0.0]]))[0, 0]
    assert abs(small + 1.3 * 1.1 * 2.0**-1020) <= 2.0**-1060


def test_pivots_that_are_regular_but_not_in_doubles():
    """Gauss's elimination in doubles finds 1/3 − (1/3)·1 = 0, yet 3·fl(1/3) is not 1."""
    mod = Modulo.of(np.array([[3.0, 1.0, 0.5], [1.0, 1.0 / 3.0, 0.25]]), (0, 1))
    rows = np.array([[1.0, 2.0, 3.0], [0.5, 0.25, 1.0]])
    shares = mod.shares(rows)
    for i, row in enumerate(rows):
        assert shares[i, 0] == pytest.approx(float(mod.exact_share(row, 0)), rel=1e-6)
