"""The compiled certificate and quotient against rationals, with gaps and rows that are wrong by exactly what they may be."""

from fractions import Fraction

import numpy as np
import pytest
from exactly import rational
from flint import fmpq, fmpq_mat

from allocopt.certify import compiled_certificate
from allocopt.linear.floating import ENTRY_ERROR, GAP_ERROR
from allocopt.linear.modulo import Modulo

kernel = pytest.importorskip("allocopt.solving.kernel", reason="needs the extra fast")

LEVEL = 2.0


def certificate(rows, gaps, alpha, lam, gap_error, certify=kernel.certify):
    """Bounds and pair that `certify` makes of a pair for rows of a quotient: (lower, upper, α, λ)."""
    r = rows.shape[1]
    which, unit, columns, ratios, start, weights, _ = kernel.prepare(
        rows, r, gaps, np.ones(len(gaps)), gaps, LEVEL, True, alpha, lam
    )
    k = len(which)
    found = np.concatenate([np.zeros(k), start]), np.zeros(2 * k), weights, np.ones(k)
    out_alpha, out_lam, info = np.empty(len(gaps)), np.empty(len(gaps)), np.zeros(kernel.INFO)
    certify((which, which, unit, columns, ratios, None), found, False, gaps, gap_error, out_alpha, out_lam, info)
    return info[0], info[1], out_alpha, out_lam


def in_numpy(**constants):
    """The certificate as plain Python with the words of `dense`, and with other constants."""

    def certify(*arguments):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in constants.items():
                patch.setattr(compiled_certificate, name, value)
            compiled_certificate.certify(*arguments)

    return lambda rows, gaps, alpha, lam, gap_error: certificate(rows, gaps, alpha, lam, gap_error, certify)


def instances():
    rng = np.random.default_rng(0)
    for turn in range(20):
        r, k = 1 + turn % 4, (1 if turn < 4 else 3) + turn % 4 + (16 if turn % 7 == 6 else 0)
        rows = rng.normal(size=(k, r))
        if turn % 3 == 2:
            rows = 1.0 + 2.0**-10 * rows
            rows *= 2.0 ** rng.integers(-15, 16, size=r)
        gaps = rng.uniform(0.1, 2.0, size=k)
        if turn % 5 == 4:
            gaps[0] = 0.0
        yield rows, gaps, np.exp(rng.normal(size=k)), np.exp(rng.normal(size=k))


def exact(rows, gaps, alpha, lam, row_by, gap_by):
    """Cost, max_j ||x_j||² level/Δ_j², and the dual's value N²/(Λ max p), for rows and gaps that are wrong by factors."""
    some = [i for i, gap in enumerate(gaps) if gap > 0]
    x = fmpq_mat([[exactly(v) * (1 + row_by[i]) for v in rows[i]] for i in some])
    delta = [exactly(gaps[i]) * (1 + gap_by) for i in some]
    a, weights = [exactly(alpha[i]) for i in some], [exactly(lam[i]) for i in some]
    level, n = exactly(LEVEL), range(len(some))
    weighted = fmpq_mat([[a[i] * x[i, c] for c in range(x.ncols())] for i in n])
    products = x * (x.transpose() * weighted).inv() * x.transpose()
    ratios = [products[i, i] * level / delta[i] ** 2 for i in n]
    strength = sum(weights[i] * ratios[i] for i in n)
    shares = [weights[j] * level / delta[j] ** 2 for j in n]
    top = max(sum(shares[j] * products[i, j] ** 2 for j in n) / delta[i] for i in n)
    return sum(a[i] * delta[i] for i in n), max(ratios), strength**2 / (sum(weights) * top)


def exactly(x):
    return fmpq(*float(x).as_integer_ratio())


def holds(rows, gaps, alpha, lam, doubt, certify=certificate, entry=ENTRY_ERROR):
    lower, upper, new_alpha, new_lam = certify(rows, gaps, alpha, lam, doubt)
    assert 0.0 < lower <= upper < np.inf
    signs = [[1] * len(gaps), [-1] * len(gaps)]
    for j in np.flatnonzero(gaps)[:3]:  # one row grows and all others shrink, or the other way round
        signs += [[1 if i == j else -1 for i in range(len(gaps))], [-1 if i == j else 1 for i in range(len(gaps))]]
    for sign in signs:
        for gap_sign in (1, -1):
            moves = [s * exactly(entry) for s in sign], gap_sign * exactly(doubt)
            cost, worst, _ = exact(rows, gaps, np.where(gaps > 0, new_alpha, 0.0), lam, *moves)
            dual = exact(rows, gaps, alpha, lam, *moves)[2]
            if cost > exactly(upper) or worst > 1 or exactly(lower) > dual:
                return False
    assert np.all(np.isinf(new_alpha) == (gaps == 0))
    assert float(new_lam.sum()) == pytest.approx(lower, rel=1e-3)
    return True


@pytest.mark.parametrize("doubt", [0.0, GAP_ERROR, 2.0**-20])
def test_the_compiled_bounds_hold(doubt):
    for case in instances():
        assert holds(*case, doubt)
        assert holds(*case, doubt, in_numpy())


def test_they_are_not_much_wider_than_they_must_be():
    rows, gaps = np.eye(3), np.array([0.5, 1.0, 2.0])
    lower, upper, *_ = certificate(rows, gaps, LEVEL / gaps**2, LEVEL / gaps, GAP_ERROR)
    assert lower == pytest.approx(7.0, rel=1e-11) and upper == pytest.approx(7.0, rel=1e-11)
    assert lower < 7.0 < upper


@pytest.mark.parametrize("missing", ["doubt", "ENTRY_ERROR", "UNIT"])
def test_a_missing_margin_is_seen(missing):
    if missing == "doubt":
        assert not all(
            holds(*case, 2.0**-20, lambda rows, gaps, alpha, lam, doubt: certificate(rows, gaps, alpha, lam, 0.0))
            for case in instances()
        )
        return
    if missing == "ENTRY_ERROR":
        large = 2.0**-20
        assert all(holds(*case, 0.0, in_numpy(ENTRY_ERROR=large), large) for case in instances())
        assert not all(holds(*case, 0.0, in_numpy(ENTRY_ERROR=large / 64), large) for case in instances())
        return
    assert not all(holds(*case, 0.0, in_numpy(ENTRY_ERROR=0.0, UNIT=0.0), 0.0) for case in instances())


def test_singular_pairs_prove_nothing():
    rows, gaps = np.eye(2), np.ones(2)
    assert certificate(rows, gaps, np.array([1.0, 0.0]), np.ones(2), 0.0)[:2] == (0.0, np.inf)
    assert certificate(rows, gaps, np.ones(2), np.zeros(2), 0.0)[:2] == (0.0, np.inf)
    assert certificate(rows, gaps, np.ones(2), np.ones(2), 0.2)[:2] == (0.0, np.inf)


def test_quotient_rows_are_as_accurate_as_those_of_modulo():
    rng = np.random.default_rng(3)
    made = 0
    for turn in range(60):
        arms = rng.integers(-9, 10, size=(6, 3)) / 7.0 if turn % 2 else rng.normal(size=(6, 3))
        arms[3] = arms[0] * rng.integers(1, 4) + 2.0 ** -float(rng.integers(0, 45)) * rng.normal(size=3)
        arms[4] = 2.0 * arms[0] + np.array([0.0, 0.0, 1.0])
        arms /= 2.0 ** np.ceil(np.log2(np.abs(arms).max(axis=0)))
        gaps = np.array([0.0, 0.5, 1.0, 0.25, 0.75, 1.5])
        rows = np.zeros((6, 3))
        rank = kernel.quotient(arms, gaps, rows)
        if rank < 0:
            assert -rank in kernel.REASONS
            continue
        made += 1
        column = int(np.argmax(np.abs(arms[0])))
        modulo = Modulo.of(arms[:1], [column])
        for c in range(rank):
            true = [modulo.exact_entry(arm, c) for arm in arms[1:]]
            true = [Fraction(int(x.p), int(x.q)) for x in true]
            top = max(abs(x) for x in true)
            unit = Fraction(1)
            while top * unit >= 1:
                unit /= 2
            while top * unit < Fraction(1, 2):
                unit *= 2
            for value, x in zip(rational(rows[1:, c]), true, strict=True):
                assert abs(value - x * unit) <= rational(ENTRY_ERROR) * abs(x * unit)
        assert not rows[0].any()
    assert made > 20
