"""Barycentric spanners of arms that only a linear-optimisation oracle knows (Awerbuch & Kleinberg, 2008, section 2.2).

Nothing is listed: the dimension of the span, the spanner and the proof that it is one all come from oracle calls. With
dimension d and rank r there are at most 2d + 2r + r² log_C r of them.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from allocopt.actions.oracle_answers import Counted
from allocopt.actions.oracles import ListOracle, Oracle
from allocopt.base.errors import InvalidInstance, InvalidOption, SolverFailed
from allocopt.base.validation import Array, frozen, positive_number
from allocopt.linear.span import column_units, free_span, span_of
from allocopt.model.tables import Table, Tabular

__all__ = ["OracleSpanner", "oracle_spanner"]

_ORTHOGONAL = 1e-9
"""An arm whose component along a unit direction is below this times its length counts as orthogonal to it. Components
of 0/1 arms are either rounding (about 1e-14 after d reflections) or of the order of 1/d."""

_SLACK = 1e-9
"""A swap must enlarge the volume by this much more than C, so that ties at exactly C are not swapped."""

_OUTSIDE_SPAN = 1e-6
"""How much of an arm the spanner may miss, relatively, before the oracle is called inconsistent."""


@dataclass(frozen=True, eq=False)
class OracleSpanner(Tabular):
    """Arms that span all arms of an oracle with coefficients of at most ``C`` in absolute value.

    Attributes
    ----------
    arms : array, shape (r, d)
        The spanner; r is the dimension of the span of all arms.
    labels : tuple
        What the oracle calls them.
    C : float
        The largest absolute coefficient of any arm, found by two linear optimisations per spanner arm.
    oracle_calls : int
        Calls made, those for the proof included.
    swaps : int
        How many times an arm replaced one of the first spanner.
    functionals : array, shape (r, d)
        The coefficients of an arm x of the oracle are ``functionals @ x``.
    """

    arms: Array
    labels: tuple[Any, ...]
    C: float
    oracle_calls: int
    swaps: int
    functionals: Array

    @property
    def dim(self) -> int:
        """r, the dimension of the span of the arms."""
        return len(self.arms)

    def _table(self) -> Table:
        """The arms of the spanner."""
        facts = {
            "arms": self.dim,
            "largest coefficient": self.C,
            "swaps": self.swaps,
            "oracle calls": self.oracle_calls,
        }
        columns = {"arm": [str(label) for label in self.labels], "length": np.linalg.norm(self.arms, axis=1)}
        return Table("Barycentric spanner of an oracle's arms", facts, columns)

    def __repr__(self) -> str:
        return f"OracleSpanner(dim={self.dim}, C={self.C:.6g}, swaps={self.swaps}, oracle_calls={self.oracle_calls})"


def oracle_spanner(oracle: Oracle, C: float = 2.0) -> OracleSpanner:
    r"""A C-approximate barycentric spanner from linear optimisation alone.

    First, directions orthogonal to the arms found so far are tried with both signs until those left are orthogonal to
    every arm. Then coefficient by coefficient the arm with the largest one is asked for, and swapped in if it exceeds C,
    until a whole round finds none: that round is the proof. The first arms have coordinates in which every arm lies in
    [−1, 1]^r and their own volume is 1, so by Hadamard at most (r/2) log_C r swaps follow.

    Parameters
    ----------
    oracle : Oracle
        ``oracle(direction)`` returns (arm minimising ⟨arm, direction⟩, label) over a finite set, exactly.
    C : float
        Bound on the coefficients, more than 1: with C = 1 the number of swaps has no such bound.

    Examples
    --------
    >>> import networkx as nx
    >>> from allocopt.actions.oracles import shortest_path_oracle
    >>> grid = nx.DiGraph([(0, 1), (0, 2), (1, 3), (2, 3), (1, 2)])
    >>> s = oracle_spanner(shortest_path_oracle(grid, 0, 3), C=2)
    >>> s.dim, s.C <= 2, s.oracle_calls <= 40
    (3, True, True)
    """
    bound = _bound(C)
    if not isinstance(oracle, ListOracle):
        return _spanner(oracle, bound)
    units = column_units(oracle.arms)  # so that nothing depends on the units of a column
    arms = oracle.arms * units
    found = _spanner(ListOracle(arms), bound)
    everything = np.arange(len(arms))
    rank = len(span_of(arms, everything, free_span(arms, everything[:0]), arms).columns)
    if rank != found.dim:
        raise SolverFailed(
            f"arms: they span {rank} dimensions, but only {found.dim} by more than {_ORTHOGONAL:g} of an arm's length; solve arms "
            "that are listed as they are (`regret_constant`)"
        )
    return replace(found, arms=frozen(found.arms / units), functionals=frozen(found.functionals * units))


def _spanner(oracle: Oracle, bound: float) -> OracleSpanner:
    counted = Counted(oracle)
    arms, labels, coordinates = _independent(counted)
    r = len(arms)
    if not r:
        raise InvalidInstance("oracle: every arm it returns is zero, so there is nothing to span")
    values, i, unchanged, swaps = np.zeros(r), 0, 0, 0
    functionals = _functionals(arms, coordinates)
    while unchanged < r:
        x, label, value = counted.extreme(functionals[i])
        if abs(value) > bound * (1 + _SLACK):
            arms[i], labels[i] = x, label
            functionals = _functionals(arms, coordinates)  # afresh: rounding errors of updates would add up
            swaps, unchanged = swaps + 1, 0
            values[i] = 1.0
            if swaps > 4 * r * (1 + np.log(r) / np.log(bound)):
                raise SolverFailed("the oracle's arms do not maximise: the volume cannot grow that often")
        else:
            values[i], unchanged = abs(value), unchanged + 1
            missing = np.abs(x - (functionals @ x) @ arms).max()
            if missing > _OUTSIDE_SPAN * np.abs(x).max():
                raise SolverFailed(
                    f"oracle: the arm {reprlib.repr(label)} is outside the span that its earlier answers left, "
                    "so it is not exact for every direction"
                )
        i = (i + 1) % r
    reached = float(max(values.max(), 1.0))
    return OracleSpanner(frozen(arms), tuple(labels), reached, counted.calls, swaps, frozen(functionals))


def _bound(C: object) -> float:
    try:
        bound = positive_number("C", C, InvalidOption)
    except InvalidOption:
        bound = 0.0
    if bound <= 1:
        raise InvalidOption(
            f"C: expected a number > 1, got {reprlib.repr(C)}; an oracle's spanner needs C > 1, since with C = 1 swaps may "
            "enlarge the volume by next to nothing each (C = 1.01 is close; a list of arms allows C = 1)"
        )
    return bound


def _independent(counted: Counted) -> tuple[Array, list[Any], Array]:
    """Arms that span all arms, and functionals under which every arm has coordinates in [−1, 1] and these volume 1."""
    left = np.eye(counted.dim)  # rows: an orthonormal basis of what is orthogonal to all arms and directions so far
    arms: list[Array] = []
    labels: list[Any] = []
    functionals: list[Array] = []
    while len(left):
        u = left[0]
        x, label, value = counted.extreme(u)
        if abs(value) <= _ORTHOGONAL * float(np.linalg.norm(x)):
            left = left[1:]  # no arm has a component along u
            continue
        arms.append(x)
        labels.append(label)
        functionals.append(u / value)
        # reflect the basis so that its first row is the component of x in it, and drop that row
        w = left @ x
        w[0] += np.copysign(np.linalg.norm(w), w[0])
        left = (left - np.outer(w, (2.0 / (w @ w)) * (w @ left)))[1:]
    return np.array(arms), labels, np.array(functionals)


def _functionals(arms: Array, coordinates: Array) -> Array:
    """Row i maps an arm to its coefficient of ``arms[i]``; coordinates in which the arms are of size 1 keep this accurate."""
    square = coordinates @ arms.T
    inverse = np.linalg.inv(square)
    inverse = inverse @ (2.0 * np.eye(len(arms)) - square @ inverse)  # one Newton step takes away most of the rounding
    result: Array = inverse @ coordinates
    return result
