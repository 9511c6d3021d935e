"""How compiled functions end: the integer codes that they return, and what each means."""

from __future__ import annotations

__all__ = [
    "CERTIFIED",
    "CERTIFIED_BY_FORMULA",
    "INVALID",
    "NEEDS_DESIGN",
    "NEEDS_ORDINARY_PATH",
    "NOTHING_TO_EXPLORE",
    "NOT_CONVERGED",
    "REASONS",
    "SEVERAL_FREE_ARMS",
    "SINGULAR",
]

CERTIFIED = 0
INVALID = 1
NOTHING_TO_EXPLORE = 2
NEEDS_ORDINARY_PATH = 3
SINGULAR = 4
NOT_CONVERGED = 5
SEVERAL_FREE_ARMS = 6
CERTIFIED_BY_FORMULA = 7
NEEDS_DESIGN = 8
REASONS = {
    INVALID: "gaps that are not finite, negative, all zero or out of range",
    NOTHING_TO_EXPLORE: "nothing to explore: the free arms span everything",
    NEEDS_ORDINARY_PATH: "arms that are rank-deficient, or nearly so, or out of range",
    SEVERAL_FREE_ARMS: "several arms of gap 0",
    SINGULAR: "a numerically singular information or Newton matrix",
    NOT_CONVERGED: "the compiled method did not reach the tolerance",
    NEEDS_DESIGN: "equal gaps, which are a design",
}
"""Why compiled code did not certify an answer; the caller then takes the ordinary path, `allocopt.solve`."""
