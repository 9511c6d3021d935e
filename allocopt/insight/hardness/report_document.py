"""The hardness report as a JSON document: everything that the sections show, and all that they leave out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from allocopt.base.json_data import json_data
from allocopt.insight.documents import enclosure_document, solution_document
from allocopt.insight.hardness.report import WIDTHS, assumptions_as_json, checked_widths, price_row
from allocopt.model.status_text import confirmed

if TYPE_CHECKING:
    from allocopt.insight.hardness.hardness import Addition, Hardness

__all__ = ["document"]


def document(
    h: Hardness, widths: Iterable[float] = WIDTHS, additions: Sequence[Addition] = (), *, prove: bool = True
) -> dict[str, Any]:
    """The whole report as JSON data: infinities are the string "inf", what does not exist is null.

    Examples
    --------
    >>> from allocopt.insight.hardness.hardness import hardness
    >>> from allocopt.insight.instances import counter_example
    >>> round(document(hardness(counter_example(0.01)))["ucb_ratio"], 6)
    25.25
    """

    def named(entry: dict[str, Any]) -> dict[str, Any]:
        return {"arm": entry["arm"], "label": None if h.labels is None else h.labels[entry["arm"]], **entry}

    alternatives = [
        {"arm": a.arm, "theta": a.theta, "shift": a.shift, "evidence": a.evidence, "contributions": a.contributions}
        for a in h.alternatives
    ]
    additions_found = [
        {"vector": a.vector, "gap": a.gap, "value": a.solution.value, "lower": a.solution.lower, "change": a.change,
         "status": a.solution.status.name, "assumptions": assumptions_as_json(a.solution), "note": a.note} for a in additions
    ]  # fmt: skip
    best = h.best_arm
    plain: dict[str, Any] = json_data({
        "constant": {"value": h.solution.value, "lower": h.solution.lower, "upper": h.solution.upper},
        "status": h.status.name,
        "assumptions": assumptions_as_json(h.solution),
        "proven": enclosure_document(h.proven) if prove else None,
        "confirmed": confirmed(h.solution, h.proven) if prove else None,
        "solution": solution_document(h.solution, None),
        "ucb_constant": h.ucb_constant,
        "ucb_ratio": h.ucb_ratio,
        "best_arm_time": h.best_arm_time,
        "best_arm_status": None if best is None else best.status.name,
        "best_arm_assumptions": assumptions_as_json(best),
        "price_of_optimism": [price_row(h, width) for width in checked_widths(widths)],
        "informative": [named(asdict(e)) for e in h.informative],
        "confusing": [named(asdict(e)) for e in h.confusing],
        "alternatives": [named(a) for a in alternatives],
        "evidence": h.evidence,
        "gradient": h.gradient,
        "gradient_unique": h.sensitivity.unique,
        "gap_derivatives": h.gap_derivatives,
        "gap_derivatives_unique": h.sensitivity.gaps_unique,
        "derivatives_note": h.sensitivity.note,
        "leave_one_out": [named({**asdict(r), "value": r.value}) for r in h.leave_one_out],
        "additions": additions_found,
        "geometry": asdict(h.geometry),
        "warnings": h.warnings,
    })  # fmt: skip
    return plain
