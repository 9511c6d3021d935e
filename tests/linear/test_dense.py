"""The words that Newton's method is written in: numpy and the compiled loops say the same, and so does the method in both."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from allocopt.base import compiling
from allocopt.insight.instances import random_unit
from allocopt.linear import dense, loops
from allocopt.solvers.newton import iteration as newton
from allocopt.solvers.newton import start as newton_start
from allocopt.solving import kernel
from allocopt.solving.compiled_rows import in_units

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.tuples(st.integers(1, 6), st.integers(1, 9))


@cache
def callable_from_python(name, count):
    """A word of compiled code."""
    space = {name: getattr(loops, name)}
    names = ", ".join(f"x{i}" for i in range(count))
    exec(f"def call({names}):\n    return {name}({names})\n", space)
    return njit(error_model="numpy")(space["call"])


def compiled(name, *arguments):
    """A word as compiled code says it."""
    return callable_from_python(name, len(arguments))(*arguments)


def spread_out(rng, *shape):
    """Numbers of very different sizes and both signs."""
    return rng.normal(size=shape) * 10.0 ** rng.uniform(-3, 3, size=shape)


def arguments_of(name, rng, r, k):
    """Arguments for each word, and what numpy's answer may differ by."""
    matrix, vector = spread_out(rng, r, k), spread_out(rng, k)
    positive = np.abs(vector) + 1e-6
    return {
        "total": (vector,),
        "dot": (vector, spread_out(rng, k)),
        "magnitude": (vector, positive),
        "largest": (vector,),
        "smallest": (vector,),
        "geometric_mean": (positive,),
        "fastest": (spread_out(rng, k), positive),
        "cross": (matrix, spread_out(rng, r, 4)),
        "weighted": (matrix, positive),
        "gram": (matrix, spread_out(rng, r)),
        "times": (matrix, vector),
        "back": (matrix, spread_out(rng, r)),
        "scaled_columns": (matrix, vector),
        "squared_ratios": (matrix, np.abs(spread_out(rng, r)) + 1e-6),
        "squared_lengths": (matrix,),
    }[name]


VALUES = (
    "total", "dot", "magnitude", "largest", "smallest", "geometric_mean", "fastest", "cross", "weighted", "gram", "times",
    "back", "scaled_columns", "squared_ratios", "squared_lengths",
)  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
@given(seed=SEEDS, size=SIZES)
def test_numpy_and_the_loops_agree(name, seed, size):
    arguments = arguments_of(name, np.random.default_rng(seed), *size)
    ours, theirs = getattr(dense, name)(*arguments), compiled(name, *arguments)
    # sums of large terms that cancel are known to the rounding of the terms
    scale = np.max(np.abs(getattr(dense, name)(*(np.abs(a) for a in arguments)))) if name != "fastest" else np.max(ours)
    np.testing.assert_allclose(theirs, ours, rtol=1e-12, atol=1e-13 * float(scale))


@given(seed=SEEDS, size=SIZES)
def test_what_changes_a_matrix_changes_it_alike(seed, size):
    rng = np.random.default_rng(seed)
    k = size[1]
    for name, rest in (
        ("add_products", (2.0, spread_out(rng, k, k), spread_out(rng, k, k))),
        ("add_diagonal", (spread_out(rng, k),)),
    ):
        ours = spread_out(rng, k, k)
        theirs = ours.copy()
        compiled(name, theirs, *rest)
        getattr(dense, name)(ours, *rest)  # last: it may use what it is given as room
        np.testing.assert_allclose(theirs, ours, rtol=1e-14, atol=1e-14 * np.abs(ours).max())


def test_branches_are_the_same_number_by_number():
    for x, y in ((1.0, 2.0), (2.0, 1.0), (-0.5, -0.5)):
        assert compiled("larger", x, y) == dense.larger(x, y)
        assert compiled("smaller", x, y) == dense.smaller(x, y)
        assert compiled("choose", x > y, x, y) == dense.choose(x > y, x, y)


def test_lanes_are_all_entries_in_either_form():
    def doubled(x, n):
        out = np.zeros(len(x))
        for i in dense.lanes(n):
            out[i] = 2.0 * x[i]
        return out

    x = np.arange(5.0)
    assert doubled(x, 3).tolist() == [0.0, 2.0, 4.0, 0.0, 0.0]
    space = {"lanes": loops.lanes, "np": np}
    exec(
        "def lane(x, n):\n    o = np.zeros(len(x))\n    for i in lanes(n):\n        o[i] = 2.0 * x[i]\n    return o\n",
        space,
    )
    assert njit(space["lane"])(x, 3).tolist() == doubled(x, 3).tolist()


def test_what_is_not_a_number_is_not_lost_in_a_maximum():
    x = np.array([1.0, np.nan, 3.0])
    for word in ("largest", "smallest"):
        assert np.isnan(getattr(dense, word)(x))
        assert np.isnan(compiled(word, x))
    assert np.isnan(compiled("fastest", x, np.ones(3)))
    assert np.isnan(dense.fastest(x, np.ones(3)))


@given(seed=SEEDS, r=st.integers(1, 6), more=st.integers(0, 8))
def test_both_whiteners_make_the_information_matrix_the_identity(seed, r, more):
    rng = np.random.default_rng(seed)
    columns, alpha = rng.normal(size=(r, r + more)), 10.0 ** rng.uniform(-2, 2, r + more)
    if np.linalg.cond(columns * np.sqrt(alpha)) > 1e5:
        return
    for regular, basis in (dense.whitener(columns, alpha, None), compiled("whitener", columns, alpha, None)):
        assert regular
        assert np.all(np.tril(basis, -1) == 0)
        identity = basis.T @ ((columns * alpha) @ columns.T) @ basis
        np.testing.assert_allclose(identity, np.eye(r), atol=1e-5)


def test_both_whiteners_refuse_what_is_singular():
    columns = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])
    assert not compiled("whitener", columns, np.ones(3), None)[
        0
    ]  # numpy leaves what is singular up to rounding to others
    assert not dense.whitener(np.eye(2), np.array([1.0, 0.0]), None)[0]
    assert not dense.whitener(np.eye(2), np.array([1.0, np.nan]), None)[0]
    for bad in (np.nan, np.inf):
        assert not compiled("whitener", np.eye(2), np.array([1.0, bad]), None)[0]
    assert not compiled("whitener", np.eye(2), np.array([1.0, 0.0]), None)[0]


@given(seed=SEEDS, k=st.integers(1, 12))
def test_both_solvers_solve(seed, k):
    rng = np.random.default_rng(seed)
    root, scale = rng.normal(size=(k + 3, k)), 10.0 ** rng.uniform(-4, 4, k)
    matrix, right = (root.T @ root) * scale * scale[:, None], rng.normal(size=k)
    for factorised, solved in (
        (dense.factorised, dense.solved),
        (lambda m: compiled("factorised", m), lambda *a: compiled("solved", *a)),
    ):
        definite, factor = factorised(matrix)
        assert definite
        residual = matrix @ solved(matrix, factor, right) - right
        assert np.linalg.norm(scale * residual) <= 1e-6 * np.linalg.norm(scale * right) * np.linalg.cond(root) ** 2


def test_an_indefinite_matrix_is_refused_by_both():
    matrix = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert not dense.factorised(matrix)[0]
    assert not compiled("factorised", matrix)[0]


@pytest.mark.parametrize(("dim", "arms", "seed"), [(2, 3, 0), (3, 6, 1), (5, 20, 2), (8, 40, 3)])
def test_the_method_takes_the_same_steps_interpreted_and_compiled(dim, arms, seed):
    bandit = random_unit(dim, arms, seed=seed)
    gaps = np.array(bandit.gaps)
    rows = np.empty_like(bandit.arms)
    r = kernel.quotient(in_units(np.array(bandit.arms)[None])[0], gaps, rows)
    zeros = np.zeros(arms)
    _, _, columns, ratios, _, lam, _ = kernel.prepare(rows, r, gaps, np.ones(len(gaps)), gaps, 2.0, False, zeros, zeros)
    k = len(ratios)
    found = []
    for begin, minimise in ((newton_start.begin, newton.minimise), (kernel.begin, kernel.minimise)):
        problem = columns, None, ratios, None, None, 0.0, None
        x, y = begin(problem, np.zeros(k), lam, False)
        start = x.copy(), y.copy()
        steps, gap, best = minimise(problem, x, y, 1e-8, 60, None, None, None)
        # and again from its solution, for other ratios
        moved = columns, None, ratios * (1.0 + 0.02 * np.cos(np.arange(k))), None, None, 0.0, None
        x, y = begin(moved, best[0][k:].copy(), best[2], True)
        again = x.copy(), y.copy()
        found.append((start, again, (steps, gap, best), minimise(moved, x, y, 1e-8, 60, None, None, None)))
    ours, theirs = found
    for one, other, digits in ((ours[0], theirs[0], 1e-9), (ours[1], theirs[1], 1e-3)):
        np.testing.assert_allclose(other[0], one[0], rtol=digits)
        np.testing.assert_allclose(other[1], one[1], rtol=digits)
    for one, other in ((ours[2], theirs[2]), (ours[3], theirs[3])):
        assert abs(one[0] - other[0]) <= 1
        assert max(one[1], other[1]) <= 1e-8
        assert other[2][0][k:].sum() == pytest.approx(one[2][0][k:].sum(), rel=1e-7)
    assert ours[3][0] < ours[2][0]  # the second time it knows something


FIRST = """
import sys
import numpy as np
sys.executable = {executable!r}
from allocopt.solving.allocator import Allocator
solution = Allocator(np.eye(3)).solve(np.array([0.0, 1.0, 2.0]))
assert solution.stats["compiled"]
print(solution.value)
"""


@pytest.mark.slow
@pytest.mark.parametrize("executable", [sys.executable, "/bin/false"])
def test_an_empty_cache_is_filled_whether_or_not_a_second_process_helps(executable, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for script, said in (
        (FIRST, "CompilingWarning"),
        ("from allocopt.solving import kernel\n" + FIRST + "assert kernel.minimise.stats.cache_hits\n", ""),
    ):
        done = subprocess.run(
            [sys.executable, "-c", script.format(executable=executable)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert (said in done.stderr) if said else (done.stderr == "")
        assert float(done.stdout) == pytest.approx(3.0, rel=1e-8)
    entries = {path.name.split(".")[1].rsplit("_", 1)[0] for path in tmp_path.rglob("*.nbi")}
    assert entries == {
        "minimise",
        "_quotient",
        "_units",
        "begin",
        "certify",
        "closed_form",
        "_prepare",
    }


@pytest.mark.slow
def test_a_machine_without_a_second_python_compiles_alone(tmp_path, monkeypatch):
    """Where sys.executable is another program, as in applications that embed Python, it is not waited for."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    other = tmp_path / "application"
    other.write_text("#!/bin/sh\nexec sleep 600\n")
    other.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", FIRST.format(executable=str(other))],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr


def test_numba_may_be_told_to_leave_functions_as_they_are(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    script = FIRST.format(executable=sys.executable).replace("assert solution", "assert not solution")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "SlowWarning" in done.stderr
    assert float(done.stdout) == pytest.approx(3.0, rel=1e-8)


def test_machine_code_is_made_anew_when_anything_it_was_made_from_changes():
    def digest(shift, options):
        space = {"SHIFT": shift, "__name__": __name__}
        exec("def inner(x):\n    return x * SHIFT\ndef outer(x):\n    return inner(x)\n", space)
        space["inner"] = njit(**options)(space["inner"])
        return compiling.kept_on_disk(space["outer"]).py_func.__qualname__

    same, other = {"nogil": True}, {"nogil": True, "fastmath": True}
    assert digest(1.0, same) == digest(1.0, same)
    assert digest(1.0, same) != digest(2.0, same)
    assert digest(1.0, same) != digest(1.0, other)
    space = {"dense": dense, "__name__": __name__}
    exec("def outer(x):\n    return x * dense.DIAGONAL_SHIFT\n", space)
    with pytest.raises(TypeError, match="takes something from the module dense"):
        compiling.kept_on_disk(space["outer"])


def test_matrices_that_are_not_positive_are_refused_by_both():
    for matrix in (np.diag([1.0, -1.0]), np.array([[1.0, np.nan], [np.nan, 1.0]]), np.full((2, 2), np.nan)):
        assert not dense.factorised(matrix)[0]
        assert not compiled("factorised", matrix)[0]


def test_refinement_removes_what_the_shift_of_the_diagonal_does():
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 8)))[0]
    matrix = (basis * 10.0 ** np.linspace(0, -6, 8)) @ basis.T
    matrix = 0.5 * (matrix + matrix.T)
    wanted = basis[:, -1]  # where the shift, 1e-14 of the diagonal, matters most: by 1e-8
    for factorised, solved in (
        (dense.factorised, dense.solved),
        (lambda m: compiled("factorised", m), lambda *a: compiled("solved", *a)),
    ):
        _, factor = factorised(matrix)
        assert np.linalg.norm(solved(matrix, factor, matrix @ wanted) - wanted) <= 1e-9
