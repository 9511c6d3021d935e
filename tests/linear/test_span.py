"""Which rows span, exactly or up to rounding: shares and sizes in rationals, and the rounding level as a sharp boundary."""

from fractions import Fraction

import numpy as np
import pytest
from exactly import rational

import allocopt as ao
from allocopt.base.errors import SolverFailed
from allocopt.linear import span
from allocopt.linear.assumptions import ROUNDING_LEVEL, Assumption, assuming, sentences
from allocopt.linear.span import column_units, free_span, largest_share, outside_span, span_of, spanning_coordinates


def everything(rows):
    return np.arange(len(rows))


def spanned(rows):
    """The span of rows without free ones."""
    rows = np.asarray(rows, dtype=float)
    free = free_span(rows, everything(rows)[:0])
    return span_of(rows, everything(rows), free, free.modulo(rows))


def test_the_rounding_level():
    assert Fraction(1, 2**40) == ROUNDING_LEVEL
    for size, small in (
        (ROUNDING_LEVEL, True),
        (ROUNDING_LEVEL * Fraction(10**20 + 1, 10**20), False),
        (Fraction(0), True),
    ):
        assert Assumption("tie", (1, 2), size, "so").at_rounding_level is small
    made = Assumption("tie", (1, 2), Fraction(1, 3), "so").as_json()
    assert made == {"kind": "tie", "arms": [1, 2], "size": "1/3", "text": "so"}


def test_units_are_powers_of_two_that_make_columns_alike():
    rows = np.array([[3.0, 0.0, -1e-20], [1.0, 0.0, 1e-30]])
    units = column_units(rows, np.array([[0.1, 0.0, 7e-20]]))
    assert all(np.frexp(u)[0] == 0.5 for u in units)
    scaled = np.abs(np.vstack([rows, [[0.1, 0.0, 7e-20]]]) * units).max(axis=0)
    assert ((scaled[[0, 2]] >= 0.5) & (scaled[[0, 2]] < 1.0)).all()
    assert units[1] == 1.0
    assert column_units(np.array([[0.5, 1.0]])).tolist() == [1.0, 0.5]


def near(epsilon):
    """Two rows that differ by ε in one entry: of the terms 1 + ε and 1."""
    return np.array([[1.0, 1.0], [1.0, 1.0 + epsilon]])


# the share ε/(2 + ε) is the level at ε = 2^-39/(1 − 2^-40): these are the doubles on both sides
JUST_BELOW = 2.0**-39
JUST_ABOVE = 2.0**-39 + 2.0**-52


@pytest.mark.parametrize("free", [True, False])
def test_the_level_is_a_sharp_boundary(free, monkeypatch):
    monkeypatch.setattr(span, "RANK", 1e-3)  # so that what is proposed is too little, and the check decides

    def of(rows):
        return free_span(rows, everything(rows)) if free else spanned(rows)

    assert Fraction(JUST_BELOW) / (2 + Fraction(JUST_BELOW)) <= ROUNDING_LEVEL
    assert Fraction(JUST_ABOVE) / (2 + Fraction(JUST_ABOVE)) > ROUNDING_LEVEL
    close = of(near(JUST_BELOW))
    (assumption,) = close.assumptions
    assert assumption.size == Fraction(JUST_BELOW) / (2 + Fraction(JUST_BELOW))
    assert assumption.kind == "dependence"
    assert len(close.columns) == 1
    apart = of(near(JUST_ABOVE))
    assert apart.assumptions == ()
    assert len(apart.columns) == 2
    same = of(near(0.0))
    assert same.assumptions == () and len(same.columns) == 1
    clearly = of(near(0.5))
    assert clearly.assumptions == () and len(clearly.columns) == 2


def test_the_size_is_that_of_the_worst_row():
    rows = np.array([[1.0, 1.0, 0.0], [2.0, 2.0 + 2.0**-45, 0.0], [1.0, 1.0 + 2.0**-50, 0.0], [0.0, 0.0, 1.0]])
    for found in (free_span(rows, everything(rows)), spanned(rows)):
        (assumption,) = found.assumptions
        modulo = found.modulo
        sizes = {
            i: max((modulo.exact_share(row, j) for j in range(len(modulo.columns))), default=Fraction(0))
            for i, row in enumerate(rows)
        }
        assert assumption.size == max(sizes.values()) > 0
        assert assumption.arms == (max(sizes, key=sizes.get),)
        assert largest_share(modulo, rows) == (assumption.size, assumption.arms[0])
        assert assumption.text.startswith("2 of the ")
        outside = outside_span(found, rows)
        assert [x > 0 for x in outside] == [sizes[i] > 0 for i in range(4)]
        assert outside == pytest.approx([float(sizes[i]) for i in range(4)], rel=1e-6)


def test_exact_dependence_is_no_assumption():
    rng = np.random.default_rng(0)
    for turn in range(20):
        d, rank = 3 + turn % 3, 1 + turn % 3
        rows = (rng.integers(-5, 6, size=(9, rank)) @ rng.integers(-5, 6, size=(rank, d))).astype(float)
        rows = rows[rows.any(axis=1)]
        if not len(rows):
            continue
        true = int(np.linalg.matrix_rank(rows))
        for found in (free_span(rows, everything(rows)), spanned(rows)):
            assert found.assumptions == ()
            assert len(found.columns) == true
            assert not outside_span(found, rows).any()


def test_many_entries_are_not_all_compared(monkeypatch):
    monkeypatch.setattr(span, "_MANY", 2)
    rows = np.array([[1.0, 1.0], *[[1.0, 1.0 + 2.0**-51 * k] for k in range(1, 9)]])
    found = free_span(rows, everything(rows))
    (assumption,) = found.assumptions
    shares = [found.modulo.exact_share(row, 0) for row in rows]
    assert assumption.size == max(shares)


def test_free_arms_come_first():
    rows = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 1.0, 1.0], [1.0, 2.0, 2.0]])
    free = free_span(rows, np.array([0, 1]))
    assert free.rows.tolist() in ([0], [1]) and free.columns == (0,)
    whole = span_of(rows, np.array([2, 3]), free, free.modulo(rows[[2, 3]]))
    assert len(whole.columns) == 1 and whole.columns[0] in (1, 2)
    assert len(whole.rows) == 1 and whole.rows[0] in (2, 3)
    assert whole.assumptions == ()
    full = span_of(rows, np.array([2, 3]), free, np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert full.columns == (1, 2) and full.assumptions == () and not len(full.rows)


def test_rows_that_do_not_span_what_they_seem_to_are_refused():
    rows = np.array([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [0.0, 0.0, 1.0]])
    free = free_span(rows, everything(rows)[:0])
    with pytest.raises(SolverFailed, match="rank"):  # the proposal says that columns 0 and 1 are independent
        span_of(rows, everything(rows), free, np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))


def test_proposals_do_not_depend_on_units():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(400, 3)) @ np.array([[1.0, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]])
    assert len(spanning_coordinates(rows)) == 3
    assert len(spanning_coordinates(rows * 2.0 ** np.array([40, -40, 0, 3]))) == 3
    assert len(spanning_coordinates(rows[:, :3])) == 3
    assert spanning_coordinates(np.zeros((3, 2))) == ()
    late = np.zeros((2000, 2))
    late[:, 0] = 1.0
    late[1, 1] = 1.0  # a sample misses it
    assert spanning_coordinates(late) == (0, 1)


@pytest.mark.parametrize(
    ("epsilon", "status"), [(0.0, "CERTIFIED"), (2.0**-50, "CONDITIONAL"), (2.0**-30, "CERTIFIED")]
)
def test_what_is_assumed_is_in_the_status(epsilon, status):
    rows = np.array([[1.0, 1.0, 0.0], [1.0, 1.0 + epsilon, 0.0], [0.0, 0.0, 1.0]])
    s = ao.solve(ao.AllocationProgram(rows, [1, 1, 1], [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [1.0, 1.0]))
    assert s.status is ao.Status[status]
    assert bool(s.assumptions) is (status == "CONDITIONAL")
    assert {a.size for a in s.assumptions} <= {Fraction(epsilon) / (2 + Fraction(epsilon))}
    assert rational(s.lower) <= 2 <= rational(s.upper)
    assert s.upper - s.lower <= 1e-8 * s.lower


def test_fewer_rows_than_columns_span_nothing_that_could_be_checked(monkeypatch):
    rows = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    monkeypatch.setattr(span, "spanning_rows", lambda some: np.arange(1))
    with pytest.raises(SolverFailed, match="the rank of the arms could not be decided"):
        spanned(rows)


def test_rows_of_which_nothing_is_left_need_no_basis():
    rows = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
    free = free_span(rows, np.array([0]))
    for arms in ([1, 2], [1], []):
        found = span_of(rows, np.array(arms, dtype=np.int64), free, np.zeros((len(arms), 1)))
        assert found.rows.tolist() == [] and found.columns == () and found.assumptions == ()
        assert found.modulo.n == 1


def test_assumptions_in_words_are_rounded_up():
    made = [
        Assumption(kind, (n,), Fraction(n, 10**15), f"a{n}") for n, kind in enumerate(["tie", "tie", "dependence"], 1)
    ]
    assert assuming([]) == "" and sentences([]) == []
    assert assuming(made[:1]) == "assuming 1 tie (<= 1e-15)"
    assert assuming(made) == "assuming 2 ties and 1 dependence (<= 3e-15)"
    for size, said in (
        (Fraction(1, 3), "0.34"),
        (Fraction(1001, 1000), "1.1"),
        (Fraction(12, 10), "1.2"),
        (Fraction(1, 2**400), "3.9e-121"),
    ):
        assert assuming([Assumption("tie", (0,), size, "")]).endswith(f"(<= {said})")
        assert Fraction(said) >= size
    assert sentences(made) == ["a3", "a2", "a1"]
    assert sentences(made, 2) == ["a3", "a2", "and 1 more"]
    many = [Assumption("tie", (n,), Fraction(n, 10**15), f"a{n}") for n in range(1, 8)]
    assert sentences(many[:5]) == ["a5", "a4", "a3", "a2", "a1"]
    assert sentences(many) == ["a7", "a6", "a5", "a4", "a3", "and 2 more"]
