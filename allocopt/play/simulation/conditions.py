"""Conditions: the law of the rewards, the σ² that policies are told, rewards that come late, rounds drawn block by block."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from allocopt.base.errors import InvalidInstance, InvalidOption
from allocopt.base.validation import positive_number, whole_number
from allocopt.model.bandit import LinearBandit, checked_noise
from allocopt.model.contexts import ContextualBandit
from allocopt.policies.base import Policy, Setting, check_plays_contexts
from allocopt.policies.rounds import BERNOULLI, GAUSSIAN, STUDENT

__all__ = ["Conditions"]

_MOST_WAITING = 10**8  # rewards that may be under way at once


@dataclass(frozen=True)
class Conditions:
    """How the rounds of a simulation are played; the defaults are the paper's setting."""

    noise: str = "gaussian"
    """"gaussian", "bernoulli" or "student-t:ν" with ν > 2 degrees of freedom."""
    assumed_noise_variance: Any = None
    """σ² that the policy is told (a number, or a tuple with one per arm); None for the true one."""
    delay: int = 0
    """The reward of round t is told after round t + delay."""
    batch: int = 1
    """Rewards are told after every so many rounds."""
    blockwise: bool = False
    """Rounds in which a policy does not look are drawn at once."""

    @classmethod
    def checked(
        cls,
        bandit: LinearBandit | ContextualBandit,
        noise: Any,
        assumed_noise_variance: Any,
        delay: Any,
        batch: Any,
        blockwise: Any,
    ) -> Conditions:
        """From what a user passed, or an error that names the argument."""
        law, _ = _law(noise)
        if law == BERNOULLI and ((bandit.means < 0) | (bandit.means > 1)).any():
            arm = int(np.flatnonzero((bandit.means < 0) | (bandit.means > 1))[0])
            raise InvalidInstance(
                f"noise: Bernoulli rewards need means between 0 and 1, but arm {arm} has {float(bandit.means[arm])!r}"
            )
        if not isinstance(blockwise, bool | np.bool_):
            raise InvalidOption(f"blockwise: expected True or False, got {blockwise!r}")
        waits = (
            whole_number("delay", delay, InvalidOption, least=0),
            whole_number("batch", batch, InvalidOption, least=1),
        )
        if sum(waits) > _MOST_WAITING:
            raise InvalidOption(f"delay + batch: expected at most {_MOST_WAITING}, got {sum(waits)}")
        found = cls(str(noise), _variance(assumed_noise_variance, bandit), *waits, bool(blockwise))
        if found.blockwise and (found.late or law != GAUSSIAN):
            raise InvalidOption("blockwise: expected Gaussian noise, no delay and no batches beside it")
        return found

    def check_policy(self, policy: Any, name: str, interpreted: bool, contexts: bool = False) -> None:
        """Refuse what this policy cannot be played with."""
        if contexts:
            check_plays_contexts(policy, name)
            if interpreted:
                raise InvalidOption(
                    "environment: expected none with contexts; for rewards of your own play round by round, with "
                    "policy.start_contexts(bandit.contexts, horizon)"
                )
            if self.blockwise:
                raise InvalidOption("blockwise: expected False with contexts, at which a policy looks in every round")
        if (self.late or self.blockwise or self.law != GAUSSIAN) and (interpreted or not isinstance(policy, Policy)):
            asked = "blockwise" if self.blockwise else "delay and batch" if self.late else "noise"
            raise InvalidOption(
                f"{asked}: expected a policy of allocopt.policies and no environment; in your own you can do the same"
            )
        if self.blockwise and policy.run_blocks is None:
            raise InvalidOption(f"blockwise: policy {name} looks at every reward; expected one that does not")

    @property
    def law(self) -> int:
        """Of the rewards, as a `Ledger` has it."""
        return _law(self.noise)[0]

    @property
    def late(self) -> bool:
        """Whether rewards are told later than in their round."""
        return self.delay > 0 or self.batch > 1

    def ledger_options(self, policy: Any, setting: Setting) -> dict[str, Any]:
        """Keyword arguments for `Ledger.blank`."""
        law, freedom = _law(self.noise)
        opening = (
            policy.opening(setting) if self.late and not setting.sizes else 0
        )  # arms of contexts come as they like
        return {"law": law, "freedom": freedom, "delay": self.delay, "batch": self.batch, "opening": opening}

    def as_json(self) -> dict[str, Any]:
        """What is not the default, as JSON data."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return {name: list(x) if isinstance(x, tuple) else x for name, x in given.items()}


def _law(noise: Any) -> tuple[int, float]:
    """The law's number, and its degrees of freedom."""
    if noise == "gaussian":
        return GAUSSIAN, 0.0
    if noise == "bernoulli":
        return BERNOULLI, 0.0
    name, _, freedom = noise.partition(":") if isinstance(noise, str) else ("", "", "")
    try:
        nu = float(freedom) if name == "student-t" else 0.0
    except ValueError:
        nu = 0.0
    if not 2.0 < nu < np.inf:
        raise InvalidOption(
            f"noise: expected 'gaussian', 'bernoulli' or 'student-t:ν' with ν > 2 degrees of freedom, got {noise!r}"
        )
    return STUDENT, nu


def _variance(assumed: Any, bandit: LinearBandit | ContextualBandit) -> Any:
    if assumed is None:
        return None
    if np.ndim(assumed) == 0:
        return positive_number("assumed_noise_variance", assumed)
    try:
        each = checked_noise(assumed, bandit.n_arms, InvalidOption)
    except InvalidOption as error:
        raise InvalidOption(str(error).replace("noise_variance", "assumed_noise_variance")) from None
    return tuple(np.broadcast_to(each, bandit.n_arms).tolist())
