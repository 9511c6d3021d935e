"""The referee against closed forms, against forged claims, and on its own: it needs nothing but Python."""

import copy
import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from allocopt.certify import referee
from allocopt.certify.referee import judge, read
from allocopt.linear import assumptions

FILE = Path(referee.__file__)


def proof(program, allocation, multipliers, lower, upper, *, quotient, status="CERTIFIED", tol=1e-8, assumed=()):
    names = ("pivot_arms", "pivot_columns", "basis_arms", "coordinates")
    return {
        "format": "allocopt-proof",
        "version": 2,
        "program": program,
        "quotient": dict(zip(names, map(list, quotient), strict=True)),
        "assumptions": [{"kind": k, "arms": list(arms), "size": size, "text": ""} for k, arms, size in assumed],
        "method": "by hand",
        "tol": tol,
        "claim": {"lower": lower, "upper": upper, "status": status},
        "allocation": allocation,
        "multipliers": multipliers,
    }


def bandit(kind, arms, theta, optimal, **more):
    return {
        "kind": kind, "arms": arms, "theta": theta, "noise_variance": 1.0, "tie_tolerance": 0.0, "optimal_arms": optimal,
    } | more  # fmt: skip


def general(features, costs, targets, radii, lower=None, upper=None):
    k = len(features)
    return {
        "kind": "general", "features": features, "costs": costs, "targets": targets, "radii": radii,
        "lower": lower or [0.0] * k, "upper": upper or ["inf"] * k,
    }  # fmt: skip


def orthogonal():
    """Gaps 1/2 and 2: c = 2/(1/2) + 2/2 = 5, with α_x = 2/Δ² and λ_x = κ_x α_x."""
    arms = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    program = bandit("regret", arms, [2.0, 1.5, 0.0], [0])
    return proof(program, ["inf", 8.0, 0.5], [0.0, 4.0, 1.0], 5.0, 5.0, quotient=([0], [0], [1, 2], [1, 2]))


def plane():
    """The counter example with ε = 1/4, a = 2: c = 2a² = 8; the quotient is one-dimensional."""
    program = bandit("regret", [[1.0, 0.0], [0.0, 1.0], [0.75, 0.5]], [1.0, 0.0], [0])
    return proof(program, ["inf", 8.0, 0.0], [0.0, 0.0, 8.0], 8.0, 8.0, quotient=([0], [0], [1], [1]))


def bounded():
    """min α_0 + α_1 with 1/α_0 <= 1/4 and 1/α_1 <= 1/2, α_0 >= 5: 7; the multiplier of the first is not needed."""
    program = general([[1, 0], [0, 1]], [1, 1], [[1, 0], [0, 1]], [0.25, 0.5], [5.0, 0.0], ["inf", 3.0])
    return proof(program, [5.0, 2.0], [0.0, 2.0], 7.0, 7.0, quotient=([], [], [0, 1], [0, 1]))


def changed(document, path, value):
    result = copy.deepcopy(document)
    place = result
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return result


@pytest.mark.parametrize(("document", "value"), [(orthogonal(), 5), (plane(), 8), (bounded(), 7)])
def test_closed_forms_are_proven_exactly(document, value):
    verdict = judge(document)
    assert verdict.problems == []
    assert verdict.proven
    assert (verdict.lower, verdict.upper) == (value, value)
    assert isinstance(verdict.lower, Fraction)
    assert verdict.assumed == {}
    assert judge(read(json.dumps(document))) == verdict


def test_the_rounding_level_is_the_packages():
    assert referee.ROUNDING_LEVEL == assumptions.ROUNDING_LEVEL


def test_one_file_without_anything_of_the_package():
    text = FILE.read_text(encoding="utf-8")
    assert "import allocopt" not in text
    assert "from allocopt" not in text


FORGED = [
    (("claim", "lower"), math.nextafter(5.0, 6), "lower bound"),
    (("claim", "upper"), math.nextafter(5.0, 4), "upper bound"),
    (("claim", "upper"), "inf", "gap is above tol"),
    (("claim", "upper"), 5.1, "gap is above tol"),
    (("claim", "status"), "CONDITIONAL", "0 assumptions"),
    (("claim", "status"), "OPTIMAL", "no status is 'OPTIMAL'"),
    (("claim", "status"), None, "no status is None"),
    (("claim", "lower"), True, "expected a double"),
    (("claim",), ..., "'claim'"),
    (("tol",), -1.0, ">= 0"),
    (("format",), "other", "not a proof"),
    (("version",), 1, "version 2"),
    (("version",), True, "expected an int"),
    (("program", "kind"), "magic", "magic"),
    (("program", "optimal_arms"), [1], "arm 0 is optimal too"),
    (("program", "optimal_arms"), [0, 1], "taken as optimal"),
    (("program", "optimal_arms"), [0, 0], "distinct"),
    (("program", "optimal_arms"), [-1], "expected an int"),
    (("program", "optimal_arms"), [3], "below 3"),
    (("program", "optimal_arms"), [0.0], "expected an int"),
    (("program", "theta"), [2.0, 1.5], "list of 3"),
    (("program", "theta", 0), math.nan, "malformed"),
    (("program", "theta", 0), math.inf, "malformed"),
    (("program", "theta", 0), 2**53 + 1, "expected a double"),
    (("program", "theta", 0), 10**400, "malformed"),
    (("program", "theta", 0), "2", "expected a double"),
    (("program", "theta", 1), 1.25, "lower bound"),
    (("program", "arms", 1), [0.0, 1.0], "equal length"),
    (("program", "arms", 1, 1), 0.5, "upper bound"),
    (("program", "arms"), [[], [], []], "equal length"),
    (("program", "arms"), [], "malformed"),
    (("program", "arms"), {"0": 1}, "expected a list"),
    (("program", "noise_variance"), 0.0, "positive"),
    (("program", "noise_variance"), 2.0, "upper bound"),
    (("program", "noise_variance"), ..., "noise_variance"),
    (("program",), [], "malformed"),
    (("allocation", 0), 3.0, "free arms only"),
    (("allocation", 1), "inf", "free arms only"),
    (("allocation", 1), -8.0, ">= 0"),
    (("allocation", 1), 0.0, "upper bound"),
    (("allocation", 1), 9.0, "upper bound"),
    (("allocation", 1), 10**308, "expected a double"),
    (("allocation",), [8.0, 0.5], "list of 3"),
    (("multipliers", 1), 0.0, "lower bound"),
    (("multipliers", 1), "inf", "expected a double"),
    (("multipliers", 1), -4.0, ">= 0"),
    (("multipliers", 1), False, "expected a double"),
    (("quotient", "pivot_arms"), [1], "contradicts"),
    (("quotient", "pivot_arms"), [], "as many"),
    (("quotient", "pivot_columns"), [1], "contradicts"),
    (("quotient", "coordinates"), [0, 1, 2], "contradicts"),
    (("quotient", "coordinates"), [1], "as many"),
    (("quotient", "coordinates"), [1, 3], "below 3"),
    (("quotient",), ..., "'quotient'"),
    (("assumptions",), ..., "'assumptions'"),
    (("assumptions",), [{"kind": "tie", "arms": [1], "size": "1e999999999", "text": ""}], "malformed"),
    (("assumptions",), [{"kind": "tie", "arms": [1], "size": "1/0", "text": ""}], "malformed"),
    (("assumptions",), [{"kind": "tie", "arms": [1], "size": "1/4", "text": ""}], "1 assumptions"),
]


@pytest.mark.parametrize(("path", "value", "words"), FORGED, ids=lambda x: str(x)[:40])
def test_forged_and_malformed_documents_are_refused(path, value, words):
    verdict = judge(changed(orthogonal(), path, value))
    assert not verdict.proven
    assert words in " ".join(verdict.problems)
    assert all("\n" not in problem for problem in verdict.problems)


def test_fewer_coordinates_prove_the_lower_bound_of_what_is_kept_but_no_upper_bound():
    document = changed(
        orthogonal(), ("quotient",), {"pivot_arms": [0], "pivot_columns": [0], "basis_arms": [1], "coordinates": [1]}
    )
    verdict = judge(document)
    assert not verdict.proven
    assert (verdict.lower, verdict.upper) == (4, None)


def test_wide_claims_that_are_true_are_proven():
    document = changed(orthogonal(), ("claim",), {"lower": 1.0, "upper": "inf", "status": "FAILED"})
    assert judge(document).proven
    document = changed(orthogonal(), ("claim",), {"lower": 1.0, "upper": 7.0, "status": "INACCURATE"})
    assert judge(document).proven
    assert judge(document).upper == 5


def tied(size="1/1125899906842624", gap=2.0**-52):
    """Two arms that tie up to ``gap``; e3 is left, of gap 1: c = 2."""
    arms = [[1.0, 0.0, 0.0], [1.0 - gap, 1.0, 0.0], [0.0, 0.0, 1.0]]
    return proof(
        bandit("regret", arms, [1.0, 0.0, 0.0], [0, 1]), ["inf", "inf", 2.0], [0.0, 0.0, 2.0], 2.0, 2.0,
        quotient=([0, 1], [0, 1], [2], [2]), status="CONDITIONAL", assumed=[("tie", [1], size)] if size else [],
    )  # fmt: skip


def test_a_tie_is_proven_only_as_an_assumption_of_its_exact_size():
    verdict = judge(tied())
    assert verdict.proven
    assert verdict.upper == 2
    exact = Fraction(1, 2**52) / (2 - Fraction(1, 2**52))
    assert verdict.assumed == {"tie": exact}
    assert judge(tied(str(exact))).proven
    assert not judge(tied(str(exact - Fraction(1, 10**30)))).proven
    assert not judge(tied(None)).proven
    assert not judge(changed(tied(), ("claim", "status"), "CERTIFIED")).proven
    assert not judge(changed(tied(), ("assumptions", 0, "arms"), [2])).proven
    assert not judge(changed(tied(), ("assumptions", 0, "kind"), "dependence")).proven
    # beyond rounding level no assumption helps
    large = judge(tied("1/2", gap=2.0**-30))
    assert not large.proven
    assert (large.lower, large.upper) == (0, None)
    # an exact tie is no assumption
    exact_tie = changed(changed(tied(None, gap=0.0), ("claim", "status"), "CERTIFIED"), ("assumptions",), [])
    assert judge(exact_tie).proven


def dependent(rest, size):
    """Free arms e1 and e1 + rest · e2: one pivot, if they are taken as dependent; then e2 of gap 1 is left: c = 2."""
    gaps = [0.0, 0.0, 1.0]
    program = {"kind": "horizon", "arms": [[1.0, 0.0], [1.0, rest], [0.0, 1.0]], "gaps": gaps, "f_n": 2.0}
    return proof(
        program, ["inf", "inf", 2.0], [0.0, 0.0, 2.0], 2.0, 2.0, quotient=([0], [0], [2], [1]),
        status="CONDITIONAL" if size else "CERTIFIED", assumed=[("dependence", [1], size)] if size else [],
    )  # fmt: skip


def test_an_entry_in_its_own_column_is_never_rounding():
    """1e-16 beside 1 in another column is no rounding: relative to the terms of its own column it is everything."""
    assert judge(dependent(0.0, None)).proven
    verdict = judge(dependent(1e-16, "1/1099511627776"))
    assert not verdict.proven
    assert "free arm 1" in verdict.problems[0]


def rotated(last, size):
    """Arms in the plane third column = first + second, up to the last entry; G-optimal value 2."""
    arms = [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, last]]
    program = {"kind": "g_optimal", "arms": arms}
    return proof(
        program, [2 / 3] * 3, [2 / 3] * 3, 2 - 1e-9, 2 + 1e-9, quotient=([], [], [0, 1], [0, 1]), tol=1e-8,
        status="CONDITIONAL" if size else "CERTIFIED", assumed=[("dependence", [2], size)] if size else [],
    )  # fmt: skip


def test_dropped_columns_must_follow_from_the_others():
    assert judge(rotated(2.0, None)).proven
    beside = math.nextafter(2.0, 3.0)
    verdict = judge(rotated(beside, "1/1125899906842624"))
    assert verdict.proven
    assert verdict.assumed == {"dependence": Fraction(2, 2**52) / (4 + Fraction(2, 2**52))}
    assert not judge(rotated(beside, None)).proven
    assert judge(rotated(beside, None)).upper is None
    assert judge(rotated(beside, None)).lower > 1.99  # the lower bound takes nothing for granted
    assert not judge(rotated(2.0001, "1/100")).proven
    # without dropping anything there is nothing to assume, and the value is the rank: 3
    document = changed(
        rotated(2.5, None),
        ("quotient",),
        {"pivot_arms": [], "pivot_columns": [], "basis_arms": [], "coordinates": [0, 1, 2]},
    )
    document["allocation"] = document["multipliers"] = [1.0, 1.0, 1.0]
    document["claim"] |= {"lower": 3.0, "upper": 3.0}
    assert judge(document).proven


def test_a_copied_column_is_an_exact_dependence():
    """Found by an outside check: column 3 = column 1, said 7.2787, is 2.150537634."""
    arms = [[1, -0.4, 1], [-1.4, -0.6, -1.4], [0.9, 0.6, 0.9]]
    program = bandit("regret", arms, [-0.3, 0.9, 0.0], [2])
    document = proof(
        program, [10.0, 0.0, "inf"], [1.0, 1.0, 0.0], 0.0, "inf", quotient=([2], [0], [0], [1]), status="FAILED"
    )
    best = []
    for arm in (0, 1):
        for target in (0, 1):
            tried = changed(document, ("allocation",), [1.0 * (arm == 0), 1.0 * (arm == 1), "inf"])
            tried["multipliers"] = [1.0 * (target == 0), 1.0 * (target == 1), 0.0]
            best.append(judge(tried))
            assert best[-1].proven
    assert max(v.lower for v in best) == min(v.upper for v in best)
    assert float(min(v.upper for v in best)) == pytest.approx(2.150537634, rel=1e-9)


def test_bounded_programs():
    assert judge(bounded()).lower == 7
    # an allocation below a lower bound is raised to it, one that misses a constraint proves nothing
    assert judge(changed(bounded(), ("allocation", 0), 1.0)).upper == 7
    assert judge(changed(bounded(), ("allocation", 1), 1.999)).upper is None
    assert not judge(changed(bounded(), ("program", "lower", 1), 4.0)).proven  # above its upper bound
    assert judge(changed(bounded(), ("program", "lower", 0), 4.0)).lower == 6
    # no multipliers: only the lower bounds are proven
    assert judge(changed(bounded(), ("multipliers",), [0.0, 0.0])).lower == 5


def test_arms_without_cost_and_with_an_upper_bound_are_not_free():
    """e1 costs nothing up to 1, 2·e1 costs 1: ||e1||² = 1/(α_0 + 4 α_1) <= 1/9, so α_1 = 2."""
    program = general([[1.0], [2.0]], [0.0, 1.0], [[1.0]], [1 / 8 + 1 / 1024], upper=[1.0, "inf"])
    program["radii"] = [0.125]
    document = proof(program, [1.0, 1.75], [2.0], 1.75, 1.75, quotient=([], [], [0], [0]))
    verdict = judge(document)
    assert verdict.proven
    assert (verdict.lower, verdict.upper) == (1.75, 1.75)
    assert not judge(changed(document, ("allocation", 0), "inf")).proven


def test_optimism_by_its_closed_form():
    """A = {e1, e2, (1 − ε, 8aε)}: 4a + (2 − 1/(16a))/ε, with a = 1 and ε = 1/1024."""
    e = 1 / 1024
    program = bandit("optimism", [[1.0, 0.0], [0.0, 1.0], [1 - e, 8 * e]], [1.0, 0.0], [0], width=1.0)
    value = 4 + (2 - 1 / 16) / e
    document = proof(
        program, ["inf", 4.0, (2 - 1 / 16) / e**2], [0.0, 0.0, 3.0], value, value, quotient=([0], [0], [1], [1])
    )
    verdict = judge(document)
    assert verdict.problems == []
    assert (verdict.lower, verdict.upper) == (value, value)


def test_best_arm_and_remaining():
    program = bandit("best_arm", [[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0], [0])
    document = proof(program, [4.0, 4.0], [0.0, 8.0], 8.0, 8.0, quotient=([], [], [0, 1], [0, 1]))
    assert judge(document).proven
    assert judge(document).lower == 8
    program = bandit(
        "remaining", [[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0], [0], pulls=[50.0, 3.0], n=1000, log_n=math.log(1000)
    )
    document = proof(program, ["inf", 2.0], [0.0, 2.0], 2.0, 2.0, quotient=([0], [0], [1], [1]))
    assert judge(document).problems == []
    assert not judge(changed(document, ("program", "log_n"), 6.9)).proven
    assert not judge(changed(document, ("program", "n"), 1001)).proven
    assert not judge(changed(document, ("program", "n"), 2)).proven
    assert judge(changed(document, ("program", "n"), ...)).proven
    # 30 pulls are more than are needed, and so is their cost
    many = changed(document, ("program", "pulls"), [50.0, 30.0])
    assert judge(many).lower == Fraction(30) / Fraction(math.log(1000))


def horizon(n=1000, constant=1.0, level=None):
    from allocopt.model.levels import f_n

    level = f_n(n, 2, constant) if level is None else level
    program = {
        "kind": "horizon",
        "arms": [[1.0, 0.0], [0.0, 1.0]],
        "gaps": [0.0, 0.5],
        "f_n": level,
        "n": n,
        "constant": constant,
    }
    return proof(program, ["inf", level * 4], [0.0, 1.0], level * 2, level * 2, quotient=([0], [0], [1], [1]))


@pytest.mark.parametrize("n", [3, 10, 1000, 10**6, 10**15, 10**30])
@pytest.mark.parametrize("constant", [0.0, 1.0, 2.5])
def test_levels_are_computed_from_the_horizon(n, constant):
    document = horizon(n, constant)
    assert judge(document).problems == []
    for name, value in (
        ("n", n + 1 + n // 1000),
        ("constant", constant + 1e-9),
        ("f_n", document["program"]["f_n"] * (1 + 1e-11)),
    ):
        assert "f_n" in judge(changed(document, ("program", name), value)).problems[0]


def test_a_level_needs_a_constant_and_the_true_rank():
    assert not judge(changed(horizon(), ("program", "constant"), ...)).proven
    assert judge(changed(changed(horizon(level=1.0), ("program", "n"), ...), ("program", "constant"), ...)).proven
    assert not judge(horizon(level=0.001)).proven
    # dropping a column changes the rank and so the level; but then the targets are not spanned, and nothing is proven
    from allocopt.model.levels import f_n

    three = changed(
        horizon(level=f_n(1000, 2)), ("program", "arms"), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    )
    three["program"]["gaps"] = [0.0, 0.5, 0.5]
    three |= {"allocation": ["inf", 4.0, 4.0], "multipliers": [0.0, 1.0, 1.0]}
    three["quotient"]["basis_arms"] = [1]
    verdict = judge(three)
    assert not verdict.proven
    assert (verdict.lower, verdict.upper) == (0, None)


@pytest.mark.parametrize("x", [1, 2, 3, 10, 1000, 10**20, Fraction(3, 2), Fraction(10**9 + 7, 10**9)])
def test_the_logarithm(x):
    from flint import arb, ctx

    before, ctx.prec = ctx.prec, 200
    try:
        value = referee.log(x)
        error = abs(
            arb(value.numerator) / arb(value.denominator) - (arb(Fraction(x).numerator) / Fraction(x).denominator).log()
        )
        assert error < arb("1e-30")
    finally:
        ctx.prec = before


def test_the_inverse_of_integers():
    assert referee.inverse([]) == ([], 1)
    assert referee.inverse([[0, 2], [3, 0]])[1] != 0
    matrix = [[0, 2, 1], [3, 0, -1], [4, 5, 6]]
    adjugate, d = referee.inverse(matrix)
    product = [[sum(x * adjugate[n][c] for n, x in enumerate(row)) for c in range(3)] for row in matrix]
    assert product == [[d if i == c else 0 for c in range(3)] for i in range(3)]
    assert referee.inverse([[6, 0], [0, -4]]) == ([[2, 0], [0, -3]], 12)
    assert referee.inverse([[6, 0], [0, 0]]) == ([], 0)
    assert referee.inverse([[5]]) == ([[1]], 5)
    assert referee.inverse([[1, 2], [2, 4]]) == ([], 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "a": 2}', "twice"),
        ('{"a": {"theta": [1], "theta": [2]}}', "twice"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "Infinity"),
        ('{"a": 1e400}', "1e400"),
        ("", "Expecting value"),
        ("[1, 2", "delimiter"),
    ],
)
def test_json_is_read_strictly(text, words):
    with pytest.raises(ValueError, match=words):
        read(text)


def test_literals_are_the_doubles_they_denote():
    assert read("[0.1, 1e-400, 3, -2.5e0]") == [Fraction(0.1), 0, 3, Fraction(-5, 2)]


def run(path, *, arguments=()):
    return subprocess.run(
        [sys.executable, "-I", "-S", "-W", "error", str(FILE), str(path), *arguments],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_the_command_line_needs_nothing_but_python(tmp_path):
    path = tmp_path / "p.json"
    path.write_text(json.dumps(orthogonal()))
    result = run(path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == ["the witness proves [5.0, 5.0]", "the claim is proven"]
    path.write_text(json.dumps(tied()))
    result = run(path)
    assert result.returncode == 0
    assert "assumed: tie" in result.stdout
    path.write_text(json.dumps(changed(orthogonal(), ("claim", "lower"), 5.1)))
    result = run(path)
    assert (result.returncode, result.stderr) == (1, "")
    assert "not proven: the lower bound 5.1 is claimed, but 5.0 is proven" in result.stdout
    for content in (
        "",
        "{",
        "[]",
        "null",
        '{"a": 1, "a": 2}',
        "[" * 100_000,
        "9" * 5000,
        '{"format": "allocopt-proof"}',
    ):
        path.write_text(content)
        result = run(path)
        assert (result.returncode, result.stderr) == (1, ""), content[:20]
        assert "not proven: " in result.stdout
    path.write_bytes(b"\xff\xfe\x00")
    assert run(path).returncode == 1
    none = run(tmp_path / "none.json")
    assert (none.returncode, none.stdout) == (1, f"not proven: {tmp_path / 'none.json'}: No such file or directory\n")
    assert run(path, arguments=["more"]).returncode == 1
    for asked in ("-h", "--help"):
        result = run(asked)
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.rstrip() == referee.__doc__
