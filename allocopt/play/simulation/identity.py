"""Everything that determines the result of a simulation, for the manifest of its checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allocopt.base.long_runs.identity import described, versions
from allocopt.model.bandit import LinearBandit
from allocopt.model.contexts import ContextualBandit

if TYPE_CHECKING:
    from allocopt.play.simulation.runs import Experiment

__all__ = ["bandit_identity", "identity"]


def identity(experiment: Experiment, runs: int) -> dict[str, Any]:
    """Policy and environment with their code and all they hold, the bandit's numbers, the seed, and the versions."""
    return {
        "policy": described("policy", experiment.policy),
        "environment": described("environment", experiment.environment),
        "horizon": experiment.horizon,
        "runs": runs,
        "seed": {"entropy": experiment.entropy, "spawn_key": list(experiment.spawn_key)},
        "bandit": bandit_identity(experiment.bandit),
        "times": experiment.times.tolist(),
        "conditions": experiment.conditions.as_json(),
        "keep_pulls": experiment.keep_pulls,
        "compiled": experiment.compiled,
        "versions": versions(),
    }


def bandit_identity(bandit: LinearBandit | ContextualBandit) -> dict[str, Any]:
    """What a simulation depends on of a bandit."""
    contexts = ("sizes", "weights") if isinstance(bandit, ContextualBandit) else ()
    names = ("arms", "theta", "noise_variance", "gaps", *contexts)
    return {name: described(f"bandit.{name}", getattr(bandit, name)) for name in names}
