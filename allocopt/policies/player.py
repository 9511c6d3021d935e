"""Player: a policy at play, one round at a time, in a loop of one's own; with contexts or without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from allocopt.base.errors import InvalidInstance, InvalidOption
from allocopt.policies.phase import Phase
from allocopt.policies.rounds import PAUSE

if TYPE_CHECKING:
    from allocopt.policies.base import Policy, Setting

__all__ = ["Player", "checked_arm", "checked_reward"]


class Player:
    """A policy at play, one round at a time; made by ``policy.start``, or with contexts by ``policy.start_contexts``."""

    def __init__(self, policy: Policy, setting: Setting, rng: np.random.Generator) -> None:
        self.policy = policy
        self.setting = setting
        self.state = policy.initial_state(setting)
        self.rng = rng
        self.round = 1
        """The round to be played next."""
        self._starts = np.cumsum([0, *setting.sizes]).tolist()
        self._context: int | None = None
        self._chosen: int | None = None

    def choose(self, context: int | None = None) -> int:
        """The arm to play in this round; the same one until its reward has come.

        With contexts, the number of this round's context must be given, and the arm is numbered within it.
        """
        if self._chosen is None:
            if self.round > self.setting.horizon:
                raise InvalidOption(f"horizon: all {self.setting.horizon} rounds have been played")
            begin, end = self._offer(context)
            arm = int(self.policy.choose(self.state, self.round, self.rng))
            if arm == PAUSE:
                self.policy.plan(self.state, self.round, self.setting)
                arm = int(self.policy.choose(self.state, self.round, self.rng))
            self._context = context
            self._chosen = begin + checked_arm(self.policy.name, arm - begin, end - begin, self.round)
        elif context is not None and context != self._context:
            raise InvalidOption(
                f"context: expected {self._context}, with which round {self.round} began and whose reward has not come yet, "
                f"got {context!r}"
            )
        return self._chosen - self._first

    def update(self, arm: int, reward: float) -> None:
        """Report the reward of the arm that ``choose`` returned."""
        if self._chosen is None and self.setting.sizes:
            raise InvalidOption(f"arm: call choose(context) first; round {self.round} has no context yet")
        chosen = self.choose()
        if arm != chosen:
            raise InvalidOption(f"arm: expected {chosen}, which was chosen for round {self.round}, got {arm!r}")
        assert self._chosen is not None
        self.policy.update(self.state, self.round, self._chosen, checked_reward(reward, chosen, self.round))
        self._chosen = self._context = None
        self.round += 1

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases so far."""
        return self.policy.phases(self.state, self.round - 1)

    @property
    def _first(self) -> int:
        """The first arm of this round's context, numbered through all contexts."""
        return 0 if self._context is None else int(self._starts[self._context])

    def _offer(self, context: Any) -> tuple[int, int]:
        """Tell the policy which arms this round offers: the first of them, and the first beyond them."""
        contexts = len(self.setting.sizes)
        if not contexts:
            if context is not None:
                raise InvalidOption(
                    f"context: expected none, since the policy was started without contexts, got {context!r}"
                )
            return 0, self.setting.n_arms
        if isinstance(context, bool) or not isinstance(context, int | np.integer) or not 0 <= context < contexts:
            raise InvalidOption(f"context: expected the number of a context, from 0 to {contexts - 1}, got {context!r}")
        self.state.offered[:] = self._starts[context], self._starts[context + 1]
        return self._starts[context], self._starts[context + 1]


def checked_arm(policy: str, arm: Any, n_arms: int, t: int) -> int:
    """An arm that a policy chose, or an error that says what it chose instead."""
    if isinstance(arm, bool) or not isinstance(arm, int | np.integer) or not 0 <= arm < n_arms:
        raise InvalidOption(f"policy {policy}: expected an arm from 0 to {n_arms - 1} in round {t}, got {arm!r}")
    return int(arm)


def checked_reward(reward: Any, arm: int, t: int) -> float:
    """A reward as a finite float, or an error that says where it came from."""
    try:
        number = float(reward)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInstance(f"reward: expected a number for arm {arm} in round {t}, got {reward!r}") from None
    if not np.isfinite(number):
        raise InvalidInstance(f"reward: expected a finite number for arm {arm} in round {t}, got {number!r}")
    return number
