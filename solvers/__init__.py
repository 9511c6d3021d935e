"""The methods: what each can solve and how it scales, as data. A method's module loads when it is first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from allocopt.certify.canonical import Canonical

__all__ = ["AUTO", "METHODS", "Method", "backend"]


@dataclass(frozen=True)
class Method:
    """One row of the table of methods."""

    name: str
    module: str
    bounds: bool
    """Whether it can handle lower or upper bounds on the allocation."""
    most_arms: int | None
    """More arms than this would exhaust time or memory: refused before solving."""
    options: tuple[str, ...]
    starts: bool
    """Whether it can begin from the solution of a similar program."""
    summary: str

    def lacks(self, problem: Canonical) -> str | None:
        """Why this method cannot solve the problem, or None if it can."""
        if not self.bounds and not problem.scalable:
            return "cannot handle lower or upper bounds on the allocation"
        if self.most_arms is not None and len(problem.features) > self.most_arms:
            return f"takes at most {self.most_arms} arms (this program has {len(problem.features)})"
        if self.module == "closed_form":
            from allocopt.solvers.closed_form import structure

            if structure(problem) is None:
                return (
                    "needs linearly independent directions (orthogonal arms, a one-dimensional quotient) or equal gaps"
                )
        return None


METHODS: dict[str, Method] = {
    m.name: m
    for m in (
        Method("closed-form", "closed_form", False, None, (), False,
               "formulas: independent directions, one-dimensional quotient, equal gaps"),
        Method("interior-point", "interior_point", True, 4000, ("max_iterations",), True,
               "primal-dual Newton on the whole program, O(k^3) a step"),
        Method("active-set", "active_set", True, None, ("max_passes",), True,
               "interior point on a few arms, priced against all; O(k r^2) a pass"),
        Method("frank-wolfe", "frank_wolfe", False, None, ("max_iterations",), False,
               "pairwise steps on a smoothed maximum; any-time, first order"),
        Method("conic", "conic", True, 5000, ("solver", "formulation"), False,
               "cvxpy: CLARABEL (default), SCS or a licensed MOSEK"),
    )
}  # fmt: skip

AUTO: tuple[tuple[str, int | None], ...] = (("closed-form", None), ("interior-point", 100), ("active-set", None))
"""`auto` takes the first of these that applies and whose number of arms is not exceeded."""


def backend(method: Method) -> Callable[..., dict[str, Any]]:
    """The ``solve(problem, monitor, **options)`` of a method."""
    solve: Callable[..., dict[str, Any]] = importlib.import_module(f"allocopt.solvers.{method.module}").solve
    return solve
