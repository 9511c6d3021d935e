"""The named programs, as users write them: ``allocopt.programs.regret(bandit)``. docs/programs.md has the table."""

from allocopt.model.program import AllocationProgram
from allocopt.model.programs.gap_programs import at_level as at_level
from allocopt.model.programs.gap_programs import contextual, g_optimal, horizon, optimism, regret, remaining
from allocopt.model.programs.gap_programs import horizon_at_level as horizon_at_level
from allocopt.model.programs.gap_programs import remaining_at_log as remaining_at_log
from allocopt.model.programs.identification import best_arm, duelling, threshold, top_m, transductive
from allocopt.model.programs.observations import semi_bandit, side_observations

__all__ = [
    "AllocationProgram",
    "best_arm",
    "contextual",
    "duelling",
    "g_optimal",
    "horizon",
    "optimism",
    "regret",
    "remaining",
    "semi_bandit",
    "side_observations",
    "threshold",
    "top_m",
    "transductive",
]


def __dir__() -> list[str]:
    return sorted(__all__)
