"""Figures for a paper's column: geometry, allocation, curves with certified bands, heat maps, regret.

Every function returns a matplotlib ``Figure`` that belongs to the caller; `save` writes it as .png, .pdf or .svg. docs/plots.md
shows them. matplotlib is loaded when the first figure is drawn.
"""

from __future__ import annotations

from allocopt.insight.plots.allocation_bars import allocation
from allocopt.insight.plots.bound_curve import bound_curve
from allocopt.insight.plots.files import save
from allocopt.insight.plots.heat_maps import heat_map
from allocopt.insight.plots.instance_geometry import geometry
from allocopt.insight.plots.parameter_curves import family_curve
from allocopt.insight.plots.regret_over_time import performance_profiles, regret_curves

__all__ = [
    "allocation",
    "bound_curve",
    "family_curve",
    "geometry",
    "heat_map",
    "performance_profiles",
    "regret_curves",
    "save",
]
