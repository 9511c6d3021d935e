"""Bad input gets an error of its own that names the argument; no numpy error, no NaN, no false CERTIFIED."""

import math

import numpy as np
import pytest
from refusals import ARMS, GAPS, GENERAL, HUGE_INT, THETA, attempt, bandit, general, refused

import allocopt as ao
from allocopt.insight.instances import counter_example

# what is wrong with an array, as (words in the message, value); none of them is right for any array argument
NOT_ARRAYS = {
    "a number": (["dimension"], 3.0),
    "four-dimensional": (["(2, 2, 2, 2)", "dimension"], np.ones((2, 2, 2, 2))),
    "ragged": (["row 1 has 1 entries", "row 0 has 2 entries"], [[1.0, 2.0], [3.0]]),
    "half a matrix": (["row 1", "row 0"], [[1.0, 2.0], 3.0]),
    "a string": (["'abc'"], "abc"),
    "bytes": (["b'abc'"], b"abc"),
    "strings": (["expected"], [["a", "b"], ["c", "d"]]),
    "numbers as strings": (["expected"], [["1", "2"], ["3", "4"]]),
    "None": (["None"], None),
    "complex": (["expected"], [[1j, 0], [0, 1]]),
    "None inside": (["expected"], [[None, 1.0], [1.0, 2.0]]),
    "a dict": (["dict"], {"a": 1}),
    "a generator": (["generator"], (x for x in ())),
    "dates": (["datetime64"], np.array([["2020-01-01"]], dtype="M8[D]")),
    "an integer beyond doubles": (["expected"], [[HUGE_INT, 1], [1, 1]]),
    "no number at all": (["expected"], object()),
}
ARRAY_ARGUMENTS = {
    "arms": (ao.InvalidInstance, lambda x: ao.regret_constant(x, THETA)),
    "theta": (ao.InvalidInstance, lambda x: ao.regret_constant(ARMS, x)),
    "arms of optimal_pulls": (ao.InvalidInstance, lambda x: ao.optimal_pulls(x, GAPS, 100)),
    "gaps": (ao.InvalidInstance, lambda x: ao.optimal_pulls(ARMS, x, 100)),
    "arms of g_optimal": (ao.InvalidInstance, ao.programs.g_optimal),
    "arms of the spanner": (ao.InvalidInstance, ao.barycentric_spanner),
    "pulls": (ao.InvalidInstance, lambda x: ao.programs.remaining(bandit(), x, 100)),
    **{
        name: (ao.InvalidProgram, lambda x, name=name: general(**{name: x}))
        for name in ("features", "costs", "targets", "radii")
    },
    # None is the default of these two
    "lower": (ao.InvalidProgram, lambda x: general(lower=x) if x is not None else general(lower="None")),
    "upper": (ao.InvalidProgram, lambda x: general(upper=x) if x is not None else general(upper="None")),
}


@pytest.mark.parametrize("wrong", NOT_ARRAYS)
@pytest.mark.parametrize("argument", ARRAY_ARGUMENTS)
def test_what_is_not_an_array_of_numbers_is_refused_by_name(argument, wrong):
    error, call = ARRAY_ARGUMENTS[argument]
    words, value = NOT_ARRAYS[wrong]
    refused(error, [argument.split()[0] + ":", "expected", *words], lambda: call(value))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("error", "name", "call"),
    [
        (ao.InvalidInstance, "arms", lambda x: ao.regret_constant([[1, 0], [0, x], [0.75, 0.5]], THETA)),
        (ao.InvalidInstance, "theta", lambda x: ao.regret_constant(ARMS, [1, x])),
        (ao.InvalidInstance, "gaps", lambda x: ao.optimal_pulls(ARMS, [0, x, 1], 100)),
        (ao.InvalidInstance, "arms", lambda x: ao.optimal_pulls([[1, 0], [0, x], [1, 1]], GAPS, 100)),
        (ao.InvalidInstance, "arms", lambda x: ao.programs.g_optimal([[1, 0], [0, x]])),
        (ao.InvalidInstance, "arms", lambda x: ao.barycentric_spanner([[1, 0], [0, x]])),
        (ao.InvalidInstance, "pulls", lambda x: ao.programs.remaining(bandit(), [1, x, 1], 100)),
        (ao.InvalidProgram, "features", lambda x: general(features=[[1, 0], [0, x]])),
        (ao.InvalidProgram, "costs", lambda x: general(costs=[1, x])),
        (ao.InvalidProgram, "targets", lambda x: general(targets=[[1, x]])),
        (ao.InvalidProgram, "radii", lambda x: general(radii=[x])),
        (ao.InvalidProgram, "lower", lambda x: general(lower=[0, x])),
    ],
)
def test_nan_and_inf_are_refused_with_their_place(error, name, call, bad):
    refused(error, [name + ":", "finite", str(bad), "column 1" if name in ("arms", "features", "targets") else "entry"],
            lambda: call(bad))  # fmt: skip


@pytest.mark.parametrize(
    ("bad", "words"), [(math.nan, ["entry 0", "nan"]), (-math.inf, ["entry 0", "inf"]), (-1.0, ["entry 0", "-1.0"])]
)
def test_upper_may_be_inf_but_neither_nan_nor_below_lower(bad, words):
    assert np.isinf(general(upper=[math.inf, math.inf]).upper).all()
    refused(ao.InvalidProgram, ["upper:", *words], lambda: general(upper=[bad, 1.0]))


@pytest.mark.parametrize("empty", [[], [[]], np.zeros((0, 3)), np.zeros((3, 0)), (), ""])
@pytest.mark.parametrize(
    "call",
    [
        lambda x: ao.LinearBandit(x, []),
        lambda x: ao.regret_constant(x, []),
        ao.programs.g_optimal,
        ao.barycentric_spanner,
        lambda x: ao.optimal_pulls(x, [], 100),
    ],
)
def test_no_arms_or_no_columns_are_refused(call, empty):
    refused(ao.InvalidInstance, ["arms:", "expected"], lambda: call(empty))


@pytest.mark.parametrize("name", ["features", "costs", "targets", "radii", "lower", "upper"])
@pytest.mark.parametrize("kind", ["none", "one too many", "transposed"])
def test_arrays_of_a_program_must_fit_together(name, kind):
    value = np.atleast_1d(np.array(GENERAL[name], dtype=float))
    wrong = {"none": value[:0], "one too many": np.concatenate([value, value, value]), "transposed": value.T[..., :1]}
    changed = wrong[kind]
    if name == "features" and kind != "none":
        changed = np.hstack([value, value])
    if name == "targets" and kind == "one too many":
        changed = np.hstack([value, value])
    if changed.shape == value.shape:
        changed = np.ones((*value.shape, 1))
    with pytest.raises(ao.InvalidProgram, match=r"^(features|costs|targets|radii|lower|upper): expected"):
        general(**{name: changed})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("costs", [1.0, -1.0], ["entry 1", "-1.0", ">= 0"]),
        ("radii", [0.0], ["entry 0", "0.0", "> 0"]),
        ("radii", [-1.0], ["entry 0", "-1.0", "> 0"]),
        ("lower", [-1.0, 0.0], ["entry 0", "-1.0", ">= 0"]),
        ("lower", [0.0, 101.0], ["upper", "entry 1", ">= lower"]),
        ("upper", [0.0, -1e-300], ["entry 1", ">= lower"]),
    ],
)
def test_signs_of_a_program_are_checked_with_their_place(name, value, words):
    refused(ao.InvalidProgram, words, lambda: general(**{name: value}))


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (["theta:", "expected 2", "got 3"], lambda: ao.LinearBandit(ARMS, [1, 0, 0])),
        (["theta:", "expected 2", "got 0"], lambda: ao.LinearBandit(ARMS, [])),
        (["gaps:", "expected 3", "got 2"], lambda: ao.optimal_pulls(ARMS, [0, 1], 100)),
        (["gaps:", "entry 1", "-0.5", ">= 0"], lambda: ao.optimal_pulls(ARMS, [0, -0.5, 1], 100)),
        (["pulls:", "expected 3", "got 1"], lambda: ao.programs.remaining(bandit(), [1], 100)),
        (["pulls:", "entry 0", "-1.0"], lambda: ao.programs.remaining(bandit(), [-1, 0, 0], 100)),
        (["arms:", "got one"], lambda: ao.regret_constant([[1, 2]], [1, 0])),
        (["arms:", "got one"], lambda: ao.optimal_pulls([[1, 2]], [1], 100)),
        (["arms:", "all 3 are equal"], lambda: ao.regret_constant([[1, 2]] * 3, [1, 0])),
        (["arms:", "all 2 are equal"], lambda: ao.optimal_pulls([[1, 2]] * 2, [0, 1], 100)),
        (["gaps:", "all 3 are zero"], lambda: ao.programs.best_arm(ao.LinearBandit(ARMS, [0, 0]))),
        (["arms:", "zero vector"], lambda: ao.regret_constant([[0, 0], [0, 0]], [1, 0])),
        (["arms:", "zero vector"], lambda: ao.programs.g_optimal([[0, 0], [0, 0]])),
        (["arms:", "not zero"], lambda: ao.barycentric_spanner([[0, 0], [0, 0]])),
        (["bandit:", "arms [0, 1] tie"], lambda: ao.programs.best_arm(ao.LinearBandit([[1, 0], [1, 1], [0, 1]], THETA))),
        (["bandit:", "list"], lambda: ao.programs.regret(ARMS)),
        (["bandit:", "NoneType"], lambda: ao.programs.best_arm(None)),
        (["bandit:", "str"], lambda: ao.programs.optimism("abc", 1.0)),
        (["bandit:", "int"], lambda: ao.programs.remaining(3, [1], 100)),
        (["optimal_arms:", "from 0 to 2", "5"], lambda: ao.LinearBandit(ARMS, THETA, optimal_arms=[5])),
        (["optimal_arms:", "none"], lambda: ao.LinearBandit(ARMS, THETA, optimal_arms=[])),
        (["optimal_arms:", "distinct"], lambda: ao.LinearBandit(ARMS, THETA, optimal_arms=[0, 0])),
        (["optimal_arms:", "whole numbers"], lambda: ao.LinearBandit(ARMS, THETA, optimal_arms=[0.5])),
        (["optimal_arms:", "whole numbers"], lambda: ao.LinearBandit(ARMS, THETA, optimal_arms="0")),
        (["optimal_arms:", "arm 0"], lambda: ao.LinearBandit(ARMS, THETA, optimal_arms=[1])),
    ],
)  # fmt: skip
def test_instances_with_nothing_to_learn_or_parts_that_do_not_fit_are_refused(words, call):
    refused(ao.InvalidInstance, words, call)


NOT_POSITIVE = [0, -1.0, math.nan, -math.inf, "1", None, b"1", [1.0], np.ones(2), True, 1j, np.complex128(1 + 1j), {}]


@pytest.mark.parametrize("bad", [*NOT_POSITIVE, math.inf, HUGE_INT], ids=lambda x: repr(x)[:40])
@pytest.mark.parametrize(
    ("name", "error", "call"),
    [
        ("noise_variance", ao.InvalidInstance, lambda x: ao.LinearBandit(ARMS, THETA, x)),
        ("noise_variance", ao.InvalidInstance, lambda x: ao.regret_constant(ARMS, THETA, x)),
        ("width", ao.InvalidOption, lambda x: ao.programs.optimism(bandit(), x)),
        ("tol", ao.InvalidOption, lambda x: ao.regret_constant(ARMS, THETA, tol=x)),
    ],
)
def test_what_must_be_a_positive_finite_number_is_checked(name, error, call, bad):
    refused(error, [name + ":", "positive, finite number"], lambda: call(bad))


@pytest.mark.parametrize("bad", [0, 0.0, -1.0, math.nan, "1", [1.0], True, 1j, HUGE_INT], ids=lambda x: repr(x)[:40])
def test_max_seconds_must_be_positive(bad):
    refused(
        ao.InvalidOption, ["max_seconds:", "positive number"], lambda: ao.regret_constant(ARMS, THETA, max_seconds=bad)
    )


@pytest.mark.parametrize("bad", [-1e-300, -1.0, math.nan, math.inf, "0", None, 1j, [0.0]], ids=repr)
def test_tie_tolerance_must_not_be_negative(bad):
    refused(
        ao.InvalidInstance, ["tie_tolerance:", "non-negative"], lambda: ao.LinearBandit(ARMS, THETA, tie_tolerance=bad)
    )


@pytest.mark.parametrize("bad", [2, 0, -5, 2.999, 100.5, math.nan, math.inf, "100", None, True, [100], 1j], ids=repr)
@pytest.mark.parametrize(
    "call",
    [
        lambda n: ao.optimal_pulls(ARMS, GAPS, n),
        lambda n: ao.programs.horizon(ARMS, GAPS, n),
        lambda n: ao.programs.remaining(bandit(), [1, 1, 1], n),
    ],
)
def test_n_must_be_a_whole_number_of_at_least_3(call, bad):
    refused(ao.InvalidOption, ["n:", "whole number >= 3"], lambda: call(bad))


@pytest.mark.parametrize(
    "n", [3, 10**6, 1e6, np.int64(1000), np.float64(1000), 10**18, 10**30, 1e300, HUGE_INT], ids=lambda n: str(n)[:40]
)
def test_any_whole_n_from_3_on_will_do(n):
    assert ao.optimal_pulls(ARMS, GAPS, n).status is ao.Status.CERTIFIED
    assert ao.solve(ao.programs.remaining(bandit(), [1, 1, 1], n)).status is ao.Status.CERTIFIED


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, "1", None], ids=repr)
def test_the_constant_of_f_n_is_checked(bad):
    refused(ao.InvalidOption, ["constant:"], lambda: ao.optimal_pulls(ARMS, GAPS, 100, constant=bad))


@pytest.mark.parametrize("bad", [0.5, 0, -1, math.nan, "1", 1j], ids=repr)
def test_the_bound_of_a_spanner_is_checked(bad):
    refused(ao.InvalidOption, ["C:", ">= 1"], lambda: ao.barycentric_spanner(ARMS, bad))


@pytest.mark.parametrize(
    ("words", "arms", "theta"),
    [
        (["arms:", "1e+50", "1e+200"], 1e200, 1e200),
        (["arms:", "1e+50"], 1e200, 1.0),
        (["arms:", "1e-50"], 1e-200, 1.0),
        (["theta:", "1e+50"], 1.0, 1e60),
        (["gaps:", "1e-50"], 1e-40, 1e-40),
    ],
)
def test_means_and_gaps_beyond_doubles_are_refused(words, arms, theta):
    refused(ao.InvalidInstance, words, lambda: ao.regret_constant(np.array(ARMS) * arms, np.array(THETA) * theta))


@pytest.mark.parametrize("exponent", [-49, -20, -6, 6, 20, 49])
def test_the_units_of_arms_do_not_matter(exponent):
    """The constant is the same when arms are multiplied and θ divided; also for huge and tiny factors."""
    scale = 10.0**exponent
    s = ao.regret_constant(np.array(ARMS) * scale, np.array(THETA) / scale)
    assert s.status is ao.Status.CERTIFIED
    assert s.value == pytest.approx(8, rel=1e-10)
    assert s.verify().midpoint == pytest.approx(8, rel=1e-10)
    assert ao.solve(ao.programs.g_optimal(np.array(ARMS) * scale)).value == pytest.approx(2, rel=1e-7)


@pytest.mark.parametrize("scale", [1e-323, 1e-307, 1e-200, 1e-100, 1e100, 1e200, 1e307])
@pytest.mark.parametrize(
    "scaled", [("features",), ("costs",), ("targets",), ("radii",), ("features", "costs")], ids=str
)
def test_programs_of_any_scale_are_refused_or_answered_with_something_that_holds(scaled, scale):
    """Never NaN, and CERTIFIED only with an allocation that a proof confirms."""
    changes = {name: (np.array(GENERAL[name]) * scale) for name in scaled}
    program_data = {**GENERAL, "lower": None, "upper": None, **changes}
    s, message = attempt(lambda: ao.solve(ao.AllocationProgram(**program_data)))
    if s is None:
        assert message
        return
    assert not np.isnan(s.allocation).any()
    assert not np.isnan([s.lower, s.upper]).any()
    e = s.verify()
    assert e.lower <= e.upper
    if s.status is ao.Status.CERTIFIED:
        assert math.isfinite(e.upper)
        assert s.lower <= e.upper
        assert s.upper >= e.lower
    else:
        assert s.stats["reason"]


@pytest.mark.parametrize("variance", [1e-320, 1e-300, 1e300, 1e308])
def test_extreme_noise_is_answered_or_refused_by_name(variance):
    s, message = attempt(lambda: ao.regret_constant(ARMS, THETA, variance))
    if s is None:
        assert "noise_variance" in message
    else:
        assert s.status is not ao.Status.CERTIFIED or s.value == pytest.approx(8 * variance, rel=1e-8)


@pytest.mark.parametrize("width", [1e100, 1e300, 1.7e308])
def test_a_huge_width_is_no_bound_at_all(width):
    b = counter_example(1e-6)
    s, message = attempt(lambda: ao.solve(ao.programs.optimism(b, width)))
    if s is None:
        assert "width" in message
    else:
        assert s.value == pytest.approx(8, rel=1e-7)
        assert s.verify().midpoint == pytest.approx(8, rel=1e-7)


def test_an_instance_in_place_of_its_arms_is_told_what_to_write():
    bandit = ao.LinearBandit([[1, 0], [0, 1]], [1, 0])
    for call in (ao.barycentric_spanner, ao.Allocator):
        with pytest.raises(ao.InvalidInstance, match=r"got a LinearBandit; write its \.arms"):
            call(bandit)
    with pytest.raises(ao.InvalidInstance, match=r"got a list; write LinearBandit\(arms, theta\)"):
        ao.hardness([[1, 0], [0, 1]])
