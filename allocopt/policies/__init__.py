"""Policies: rules that choose the next arm, one a file, all behind the interface of `base.py`.

Each is loaded when first asked for (numba takes half a second).

>>> from allocopt import policies
>>> policies.parse("LinUCB:a=1.5")
LinUCB(a=1.5, radius='log', ridge=None, norm_bound=None, delta=None)
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers and editors; at run time `__getattr__` loads what is asked for
    from allocopt.policies.base import Policy, Setting
    from allocopt.policies.field.ao_ids import AOIDS
    from allocopt.policies.field.e4 import E4
    from allocopt.policies.field.oam import OAM
    from allocopt.policies.field.ossb import OSSB
    from allocopt.policies.field.phased_elimination import PhasedElimination
    from allocopt.policies.field.solid import SOLID
    from allocopt.policies.lints import LinTS
    from allocopt.policies.linucb import LinUCB
    from allocopt.policies.parsing import parse
    from allocopt.policies.phase import Phase
    from allocopt.policies.player import Player
    from allocopt.policies.tracking.allocation_tracking import AllocationTracking
    from allocopt.policies.tracking.end_of_optimism import EndOfOptimism
    from allocopt.policies.tracking.optimal_tracking import OptimalTracking
    from allocopt.policies.ucb import UCB

__all__ = [
    "AOIDS",
    "E4",
    "NAMES",
    "OAM",
    "OSSB",
    "SOLID",
    "UCB",
    "AllocationTracking",
    "EndOfOptimism",
    "LinTS",
    "LinUCB",
    "OptimalTracking",
    "Phase",
    "PhasedElimination",
    "Player",
    "Policy",
    "Setting",
    "parse",
]

_MODULES = {
    "EndOfOptimism": "tracking.end_of_optimism",
    "UCB": "ucb",
    "LinUCB": "linucb",
    "LinTS": "lints",
    "AOIDS": "field.ao_ids",
    "E4": "field.e4",
    "OAM": "field.oam",
    "OSSB": "field.ossb",
    "SOLID": "field.solid",
    "PhasedElimination": "field.phased_elimination",
    "OptimalTracking": "tracking.optimal_tracking",
    "AllocationTracking": "tracking.allocation_tracking",
}
_OTHERS = {"Phase": "phase", "Player": "player", "Policy": "base", "Setting": "base", "parse": "parsing"}

NAMES = tuple(_MODULES)
"""The policies of this package, by name."""


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name) or _OTHERS.get(name)
    if module is None:
        raise AttributeError(
            f"module 'allocopt.policies' has no attribute {name!r}", name=name, obj=sys.modules[__name__]
        )
    return getattr(importlib.import_module(f"allocopt.policies.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
