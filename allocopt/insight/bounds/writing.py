"""Proof files of finite-time bounds: the instance, the alternatives, what is allowed there, the weights, and the claim."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Any

from allocopt.base.atomic_files import file_path, whole_file
from allocopt.base.json_data import json_data

if TYPE_CHECKING:
    from allocopt.insight.bounds.bound import FiniteTimeBound

__all__ = ["FORMAT", "VERSION", "bound_document", "save_bound"]

FORMAT = "allocopt-bound"
VERSION = 1


def save_bound(bound: FiniteTimeBound, path: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Write a proof file; the old file, if any, is replaced only once the new one is complete."""
    target = file_path(path)
    text = json.dumps(bound_document(bound), allow_nan=False, separators=(",", ":"))
    with whole_file(target, overwrite=overwrite, what="the proof file") as out:
        out.write(text.encode("utf-8") + b"\n")


def bound_document(bound: FiniteTimeBound) -> dict[str, Any]:
    """The content of a proof file. A θ' that is no vector of doubles has its entries as text, "p/q"."""
    bandit = bound.bandit
    instance = {
        "arms": bandit.arms_in_memory.tolist(),
        "theta": bandit.theta.tolist(),
        "noise_variance": json_data(bandit.noise_variance),
    }
    if bandit.labels is not None:
        instance["labels"] = list(bandit.labels)
    alternatives = [
        {"theta": [_entry(x) for x in theta], "regret": "inf" if math.isinf(regret) else regret, "weight": weight}
        for theta, regret, weight in zip(bound.parameters, bound.regrets, bound.weights, strict=True)
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "instance": instance,
        "n": bound.n,
        "alternatives": alternatives,
        "claim": {"value": bound.value},
    }


def _entry(x: Fraction) -> float | str:
    return float(x) if Fraction(float(x)) == x else f"{x.numerator}/{x.denominator}"
