"""The compiled certificate where targets have columns of their own: step by step, and against rationals at its margins."""

from fractions import Fraction

import numpy as np
import pytest
from exactly import U, rational, root_down
from flint import fmpq, fmpq_mat

from allocopt.certify import compiled_certificate as steps
from allocopt.linear.dense import back, cross, squared_lengths, squared_ratios, weighted, whitener
from allocopt.linear.floating import ENTRY_ERROR, GAP_ERROR, UNIT

kernel = pytest.importorskip("allocopt.solving.kernel", reason="needs numba")

MORE = Fraction(101, 100)  # γ_n <= 1.01 n u for all n that fit
SHAPES = [(1, 1, 3), (2, 5, 1), (3, 4, 300), (3, 300, 4), (8, 9, 20)]  # columns, arms, targets


def instance(seed, r, k, m):
    """Columns, targets, ratios, α and λ."""
    rng = np.random.default_rng([seed, r, k, m])
    columns, targets = rng.normal(size=(r, k)), rng.normal(size=(r, m))
    return columns, targets, np.exp(0.3 * rng.normal(size=m)), np.exp(rng.normal(size=k)), np.exp(rng.normal(size=m))


def claimed(columns, targets, ratios, alpha, lam, costs, unit, gap_error, certify=steps.certify, tidied=False):
    """What `certify` claims of a pair: info, α and λ."""
    k, m = len(alpha), len(lam)
    found = np.concatenate([np.zeros(m), alpha]), np.zeros(m + k), lam, np.ones(m)
    info, out_alpha, out_lam = np.full(5, 7.0), np.full(k, 7.0), np.full(m + 1, 7.0)
    canonical = np.arange(k), np.arange(1, m + 1), unit, columns, ratios, targets
    certify(canonical, found, tidied, costs, gap_error, out_alpha, out_lam, info)
    return info, out_alpha, out_lam


@pytest.mark.parametrize("shape", SHAPES)
def test_images_of_targets_are_those_of_both_bases(shape):
    columns, targets, *_ = instance(0, *shape)
    first, second = np.triu(columns[:, :1] * np.eye(shape[0]) + 1.0), np.triu(np.eye(shape[0]) + 0.01)
    white, norms, errors = columns, squared_lengths(columns), np.ones(shape[1])
    same = steps.target_images(None, first, second, white, norms, errors, 1.0, 0.0, 0.0)
    assert same[0] is white and same[1] is norms and same[2] is errors
    images, lengths, own = steps.target_images(targets, first, second, white, norms, errors, 1.5, 0.25, 2.0**-20)
    assert np.array_equal(images, cross(second, cross(first, targets)))
    assert np.array_equal(lengths, squared_lengths(images))
    sizes = np.empty(shape[2])
    steps.image_sizes(targets, first, sizes)
    steps.image_errors(sizes, 1.5, 0.25, 2.0**-20)
    assert np.array_equal(own, sizes)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("gap_error", [0.0, 2.0**-20])
def test_both_bounds_are_put_together_as_the_theorem_says(shape, gap_error):
    r, k, m = shape
    columns, targets, ratios, alpha, lam = instance(1, *shape)
    if k < r:
        columns = np.hstack([columns, np.eye(r)])
        alpha, k = np.concatenate([alpha, np.ones(r)]), k + r
    costs, unit = np.linspace(0.5, 2.0, k), 0.375
    info, out_alpha, out_lam = claimed(columns, targets, ratios, alpha, lam, costs, unit, gap_error)
    pad, many = 1 + U * (4 * r + 64) * MORE, 1 + U * (max(k, m) + 8) * MORE
    product_error, data = UNIT * (r + 4) * 1.01, gap_error + 8 * UNIT
    _, first = whitener(columns, alpha, None)
    once = cross(first, columns)
    second = whitener(once, alpha, None)[1]
    white, errors = cross(second, once), np.empty(k)
    norms = squared_lengths(white)
    steps.image_sizes(columns, first, errors)
    steps.image_errors(errors, float(pad), product_error, data)
    drift = steps.drift_of(weighted(white, alpha), alpha, norms, errors, float(pad), data)
    goals, lengths, own = steps.target_images(
        targets, first, second, white, norms, errors, float(pad), product_error, data
    )
    sums = [rational(x) for x in steps.dual_sums(lam, ratios, lengths, own, float(pad))]
    strength = sums[0] / (pad * many * (1 + rational(drift)))
    weight, target_error = (root_down(x) * pad * many for x in sums[1:3])
    prices = back(squared_ratios(cross(goals, white), 1.0 / ratios), lam)
    worst = rational(steps.largest_constraint(ratios, lengths, own, drift, float(pad)))
    margins = float(pad), float(many), product_error, float(weight), float(target_error)
    top = rational(steps.largest_price(norms, errors, prices, drift, *margins))
    lower = rational(unit) * strength**2 / (sums[3] * top) / (pad * many) ** 2
    worst *= (1 + 32 * U) * (1 + rational(data))
    upper = rational(unit) * rational(float(sum(alpha.tolist()))) * worst * pad * many * (1 + rational(data))
    assert abs(rational(float(info[0])) - lower) <= 30 * U * lower
    assert abs(rational(float(info[1])) - upper) <= 30 * U * upper
    assert info[2] == pytest.approx(2.0 * drift + float(top) / prices.max() - 1.0, rel=1e-12, abs=1e-15)
    assert np.allclose(out_alpha, alpha * float(worst) * unit / costs, rtol=1e-14)
    assert out_lam[0] == 0.0
    assert np.allclose(out_lam[1:] / lam, float(strength**2 / (sums[3] ** 2 * top)) * unit, rtol=1e-12)


def exactly(x):
    return fmpq(*float(x).as_integer_ratio())


def cases():
    rng = np.random.default_rng(3)
    for turn in range(24):
        r = 1 + turn % 4
        k, m = r + turn % 5, (1, 3, 40, 2)[turn % 4]
        columns, targets = rng.normal(size=(r, k)), rng.normal(size=(r, m))
        if turn % 3 == 2:  # nearly parallel, so that errors weigh
            columns, targets = 1.0 + 2.0**-10 * columns, 1.0 + 2.0**-10 * targets
        scale = 2.0 ** rng.integers(-12, 13, size=(r, 1))
        yield columns * scale, targets * scale, np.exp(rng.normal(size=k)), np.exp(rng.normal(size=m))


def holds(case, doubt, entry=ENTRY_ERROR, certify=kernel.certify_targets, told=None):
    """Whether both bounds are true for all data that are wrong by what they may be, at some of its corners."""
    columns, targets, alpha, lam = case
    k, m = len(alpha), len(lam)
    told = doubt if told is None else told
    info, out_alpha, _ = claimed(columns, targets, np.ones(m), alpha, lam, np.ones(k), 1.0, told, certify)
    if not 0 < info[0] <= info[1] < np.inf:
        return True  # it claims nothing
    rng = np.random.default_rng(k * m)
    for corner in range(6):
        signs = [rng.choice([-1, 1], size=x.shape) for x in (columns, targets)]
        a, b = (
            fmpq_mat([[exactly(x[c, i]) * (1 + int(s[c, i]) * exactly(entry)) for c in range(len(x))] for i in range(x.shape[1])])
            for x, s in zip((columns, targets), signs, strict=True)
        )  # fmt: skip
        root = 1 + (1 if corner % 2 else -1) * exactly(doubt)  # of the radii: targets are over it
        cost = 1 + (1 if corner % 4 < 2 else -1) * exactly(doubt)

        def strengths(weights, cost=cost, a=a, b=b, root=root):
            """b_jᵀM^-1b_j and b_jᵀM^-1a_i, for arms whose cost is wrong by a factor."""
            scaled = fmpq_mat([[exactly(w) * a[i, c] / cost for c in range(a.ncols())] for i, w in enumerate(weights)])
            inverse = (a.transpose() * scaled).inv()
            own, other = b * inverse * b.transpose(), b * inverse * a.transpose()
            return [own[j, j] / root**2 for j in range(m)], other, root

        g, _, _ = strengths(out_alpha)
        if max(g) > 1 or sum(exactly(x) for x in out_alpha) * cost > exactly(float(info[1])):
            return False
        g, products, root = strengths(alpha)
        weights = [exactly(x) for x in lam]
        strength = sum(w * x for w, x in zip(weights, g, strict=True))
        top = max(sum(weights[j] * products[j, i] ** 2 / root**2 for j in range(m)) / cost for i in range(k))
        if exactly(float(info[0])) * sum(weights) * top > strength**2:
            return False
    return True


def in_numpy(**constants):
    """The certificate as plain Python with the words of `dense`, and with other constants."""

    def certify(*arguments):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in constants.items():
                patch.setattr(steps, name, value)
            steps.certify(*arguments)

    return certify


@pytest.mark.parametrize("doubt", [0.0, GAP_ERROR, 2.0**-20])
def test_the_bounds_hold_for_data_that_are_wrong_by_what_they_may_be(doubt):
    for case in cases():
        assert holds(case, doubt)
        assert holds(case, doubt, certify=in_numpy())


def test_most_pairs_of_this_test_prove_something():
    infos = [claimed(c, t, np.ones(len(w)), a, w, np.ones(len(a)), 1.0, 0.0)[0] for c, t, a, w in cases()]
    assert sum(bool(0 < i[0] <= i[1] < np.inf) for i in infos) > len(infos) * 0.8


def test_a_missing_margin_is_seen():
    large = 2.0**-20
    assert not all(holds(case, large, told=0.0) for case in cases())
    assert all(holds(case, 0.0, large, in_numpy(ENTRY_ERROR=large)) for case in cases())
    assert not all(holds(case, 0.0, large, in_numpy(ENTRY_ERROR=large / 64)) for case in cases())
    assert not all(holds(case, 0.0, 0.0, in_numpy(ENTRY_ERROR=0.0, UNIT=0.0)) for case in cases())


@pytest.mark.parametrize("missing", ["the targets' errors", "more targets than arms"])
def test_margins_of_targets_are_not_those_of_the_arms(missing, monkeypatch):
    """Long targets beside short arms, and many of them: what they add to the margins is seen in the numbers."""
    columns, targets, ratios, alpha, lam = instance(2, 2, 3, 400)
    before = claimed(columns, targets, ratios, alpha, lam, np.ones(3), 1.0, 0.0)[0]
    if missing == "the targets' errors":
        images = steps.target_images

        def without(*arguments):
            images_of, lengths, errors = images(*arguments)
            return images_of, lengths, 0.0 * errors

        monkeypatch.setattr(steps, "target_images", without)
        after = claimed(columns, targets, ratios, alpha, lam, np.ones(3), 1.0, 0.0)[0]
    else:
        few = [x[..., :1].copy() for x in (targets, ratios, lam)]
        assert few[0].shape == (2, 1)
        less = claimed(columns, few[0], few[1], alpha, few[2], np.ones(3), 1.0, 0.0)[0]
        copies = [np.repeat(x, 10**5, axis=-1) for x in few]
        more = claimed(columns, copies[0], copies[1], alpha, copies[2], np.ones(3), 1.0, 0.0)[0]
        before, after = more, less  # 10⁵ copies of a target ask for no more, but their sums are less certain
    assert after[0] > before[0] and after[1] < before[1]


def test_a_column_that_no_arm_has_proves_nothing():
    info, *_ = claimed(
        np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([[1.0], [1.0]]), np.ones(1), np.ones(2), np.ones(1), np.ones(2), 1.0, 0.0
    )  # fmt: skip
    assert info[0] == 0.0 and info[1] == np.inf
