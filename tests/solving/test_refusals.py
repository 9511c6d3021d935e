"""What cannot be solved is refused before solving: unknown methods and options, infeasible programs, what a method lacks."""

import importlib.util
import math

import pytest
from refusals import ARMS, THETA, bandit, general, never, refused

import allocopt as ao
from allocopt.insight.instances import finite_armed, random_unit


@pytest.mark.parametrize(
    ("words", "how"),
    [
        (["method:", "'simplex'", "interior-point", "auto"], {"method": "simplex"}),
        (["method:", "'AUTO'"], {"method": "AUTO"}),
        (["method:", "None"], {"method": None}),
        (["method:", "['auto']"], {"method": ["auto"]}),
        (["max_iterations:", "'auto'"], {"max_iterations": 5}),
        (["solver:", "'auto'"], {"solver": "SCS"}),
        (["bogus:", "'auto'"], {"bogus": 1}),
        (["tolerance:", "did you mean 'tol'?"], {"tolerance": 1e-6}),
        (["tie_tolerence:", "did you mean 'tie_tolerance'?"], {"tie_tolerence": 1e-6}),
        (["bogus:", "'conic'", "solver", "formulation"], {"method": "conic", "bogus": 1}),
        (["solver:", "'interior-point'", "max_iterations"], {"method": "interior-point", "solver": "SCS"}),
        (["max_iterations:", "'active-set'", "max_passes"], {"method": "active-set", "max_iterations": 5}),
        (["max_passes:", "'frank-wolfe'", "max_iterations"], {"method": "frank-wolfe", "max_passes": 5}),
        (["bogus:", "'closed-form'", "none"], {"method": "closed-form", "bogus": 1}),
        (["solver:", "'GUROBI'", "CLARABEL"], {"method": "conic", "solver": "GUROBI"}),
        (["solver:", "None", "CLARABEL"], {"method": "conic", "solver": None}),
        (["formulation:", "'sdp'", "compact"], {"method": "conic", "formulation": "sdp"}),
        (["callback:", "int"], {"callback": 3}),
        (["callback:", "str"], {"callback": "print"}),
        *[
            ([f"{name}:"], {"method": method, name: bad})
            for method, name in (
                ("interior-point", "max_iterations"),
                ("frank-wolfe", "max_iterations"),
                ("active-set", "max_passes"),
            )
            for bad in ("5", -1, math.nan, None, 2.5)
        ],
    ],
    ids=str,
)
def test_unknown_methods_and_options_are_named(words, how):
    refused(ao.InvalidOption, words, lambda: ao.regret_constant(ARMS, THETA, **how))


@pytest.mark.parametrize("bad", [None, ARMS, "regret", 3, bandit])
def test_solve_takes_only_programs(bad):
    value = bandit() if bad is bandit else bad
    refused(ao.InvalidProgram, ["program:", "AllocationProgram", type(value).__name__], lambda: ao.solve(value))


@pytest.mark.parametrize("bad", [0, 63, -1, 1.5, "128", True], ids=repr)
def test_precision_must_be_a_number_of_bits(bad):
    s = ao.regret_constant(ARMS, THETA)
    refused(ao.InvalidOption, ["precision:", "64"], lambda: s.verify(bad))


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["target 0", "upper bound", "radius"], lambda: general(upper=[1.0, 1.0])),
        (["target 0", "span"], lambda: general(upper=[math.inf, 0.0])),
        (["target 0", "span"], lambda: general(upper=[0.0, 0.0])),
        (["target 0", "span"], lambda: general(features=[[1, 0], [2, 0]])),
        (["target 0", "span"], lambda: general(features=[[0, 0], [0, 0]])),
        (["target 0", "upper bound"], lambda: general(costs=[0, 0], upper=[1, 1])),
        (["the target of arm", "upper bound", "radius"], lambda: ao.programs.optimism(finite_armed([0, 1, 2]), 0.1)),
        (["arm 2", "upper bound", "radius"], lambda: ao.programs.optimism(bandit(), 1e-9)),
    ],
)
@pytest.mark.parametrize("method", ["auto", "interior-point", "active-set", "conic"])
def test_what_cannot_be_met_is_infeasible_with_the_reason_before_solving(words, program, method):
    refused(ao.Infeasible, words, lambda: ao.solve(program(), method, callback=never))


@pytest.mark.parametrize(
    ("method", "words", "program"),
    [
        ("closed-form", ["independent", "interior-point"], lambda: ao.programs.regret(random_unit(3, 6))),
        ("closed-form", ["bounds", "interior-point"], lambda: ao.programs.optimism(bandit(), 1.0)),
        ("frank-wolfe", ["bounds", "active-set"], lambda: ao.programs.optimism(bandit(), 1.0)),
        ("frank-wolfe", ["bounds", "active-set"], lambda: ao.programs.remaining(bandit(), [1, 1, 1], 100)),
        ("frank-wolfe", ["bounds", "active-set"], general),
        ("interior-point", ["at most 4000", "active-set"], lambda: ao.programs.regret(random_unit(3, 4100))),
        ("conic", ["at most 5000", "active-set"], lambda: ao.programs.regret(random_unit(3, 5100))),
    ],
)
def test_a_method_that_cannot_solve_a_program_says_what_it_lacks_before_solving(method, words, program):
    refused(ao.MethodUnavailable, [f"'{method}'", *words], lambda: ao.solve(program(), method, callback=never))


def test_mosek_without_package_or_licence_says_what_to_do():
    if importlib.util.find_spec("mosek") is None:
        words = ["MOSEK", "not installed", "pip install", "CLARABEL"]
        message = refused(
            ao.MethodUnavailable, words, lambda: ao.regret_constant(ARMS, THETA, method="conic", solver="MOSEK")
        )
        assert "licence" not in message
    else:
        from allocopt.solvers.conic import mosek_status

        if mosek_status() == "no licence":
            words = ["licence", "MOSEKLM_LICENSE_FILE", "CLARABEL"]
            refused(ao.LicenseMissing, words, lambda: ao.regret_constant(ARMS, THETA, method="conic", solver="MOSEK"))
