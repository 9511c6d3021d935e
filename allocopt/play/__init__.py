"""From a solved allocation to play: schedules, simulations, audits."""
