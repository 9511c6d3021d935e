"""The named programs, as users write them: ``allocopt.programs.regret(bandit)``."""

from allocopt.model.program import AllocationProgram, best_arm, g_optimal, horizon, optimism, regret, remaining

__all__ = ["AllocationProgram", "best_arm", "g_optimal", "horizon", "optimism", "regret", "remaining"]
