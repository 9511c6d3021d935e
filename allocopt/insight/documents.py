"""Solutions and proven intervals as text and as JSON data, for reports and for the command line."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

import numpy as np

from allocopt.base.json_data import json_data, json_number
from allocopt.certify.enclosure import Enclosure
from allocopt.model.solution import Solution
from allocopt.model.status_text import confirmed

__all__ = ["enclosure_document", "interval", "short_interval", "solution_document"]


def interval(enclosure: Enclosure) -> str:
    """A proven interval, with every digit of its two ends."""
    if not np.isfinite(enclosure.upper):
        return f"[{enclosure.lower!r}, inf)"
    return f"[{enclosure.lower!r}, {enclosure.upper!r}]"


def short_interval(lower: float, upper: float, digits: int = 10) -> str:
    """An interval rounded outwards to so many significant digits: wider than what was proven, never narrower.

    Examples
    --------
    >>> short_interval(7.99999999999, 8.0, digits=4)
    '[7.999, 8]'
    """
    outwards = [
        Context(prec=digits, rounding=rounding).create_decimal_from_float(x).normalize()
        for x, rounding in ((lower, ROUND_FLOOR), (upper, ROUND_CEILING))
    ]
    return f"[{outwards[0]:f}, {outwards[1]:f}]"


def solution_document(solution: Solution, enclosure: Enclosure | None) -> dict[str, Any]:
    """A solution as JSON data: always the same keys, null where there is nothing to say; infinities are the string "inf"."""
    origin, bounds = solution.program.origin, solution.stats.get("answers", {})
    return {
        "program": solution.program.kind,
        "value": json_number(solution.value),
        "lower": json_number(solution.lower),
        "upper": json_number(solution.upper),
        "gap": json_number(solution.gap),
        "tol": solution.tol,
        "status": solution.status.name,
        "reason": solution.stats.get("reason"),
        "assumptions": [a.as_json() for a in solution.assumptions],
        "method": solution.method,
        "stats": {
            k: v if isinstance(v, str) else json_number(v)
            for k, v in solution.stats.items()
            if k not in ("claim", "answers")
        },
        "optimal_arms": solution.optimal_arms.tolist(),
        "support": solution.support.tolist(),
        "binding": solution.binding.tolist(),
        "allocation": json_data(solution.allocation),
        "multipliers": json_data(solution.multipliers),
        "constraint_multipliers": json_data(solution.constraint_multipliers),
        "answer": origin.answer,
        "answer_arms": solution.answer_arms.tolist(),
        "binding_names": list(solution.binding_names),
        "answers": [{"arm": i, "lower": json_number(x), "upper": json_number(y)} for i, (x, y) in bounds.items()],
        "compared": None if origin.compared is None else origin.compared.tolist(),
        "labels": None if solution.labels is None else list(solution.labels),
        "proven": None if enclosure is None else enclosure_document(enclosure),
        "confirmed": None if enclosure is None else confirmed(solution, enclosure),
    }


def enclosure_document(enclosure: Enclosure) -> dict[str, Any]:
    """A proven interval as JSON data."""
    return {
        "lower": enclosure.lower,
        "upper": json_number(enclosure.upper),
        "tied_gaps": {str(i): g for i, g in enclosure.tied_gaps.items()},
        "notes": list(enclosure.notes),
        "precision_bits": enclosure.precision,
    }
