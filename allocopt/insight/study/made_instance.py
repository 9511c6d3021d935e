"""An instance of a study once it is made: whatever a family's code returned, checked and in one form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from allocopt.base.errors import InvalidInstance
from allocopt.base.validation import Array, positive_number, vector
from allocopt.insight.instances.files import Instance
from allocopt.model.bandit import LinearBandit, arm_matrix, checked_noise

__all__ = ["MadeInstance", "made_instance"]

_MOST_TIES = 5  # that are named


@dataclass(frozen=True, eq=False)
class MadeInstance:
    """An instance as the quantities need it: its gaps come from a θ, or were given themselves."""

    arms: Array
    gaps: Array
    noise_variance: float | Array
    bandit: LinearBandit | None
    width: float | None

    @property
    def suboptimal(self) -> Array:
        """The positive gaps."""
        positive = self.gaps[self.gaps > 0]
        if not len(positive):
            raise InvalidInstance(f"every one of the {len(self.gaps)} arms is optimal: there is no positive gap")
        return positive

    @cached_property
    def assumed_ties(self) -> str | None:
        """Which arms are taken as optimal although they are not quite, in words; None where none is."""
        return None if self.bandit is None else "; ".join(_assumed_ties(self.bandit)) or None

    def with_theta(self, quantity: str) -> LinearBandit:
        """The bandit, for a quantity that gaps alone do not determine."""
        if self.bandit is None:
            raise InvalidInstance(f"{quantity} needs theta, but the instance has gaps only")
        return self.bandit


def _assumed_ties(bandit: LinearBandit) -> Iterator[str]:
    """The arms that are taken as optimal although, for the doubles as they are, one of the others is better."""
    optimal = bandit.optimal_arms.tolist()
    if len(optimal) == 1:
        return
    theta = [Fraction(x) for x in bandit.theta.tolist()]
    rows = [tuple(row) for row in bandit.arms[optimal].tolist()]
    means = {
        row: sum((Fraction(x) * t for x, t in zip(row, theta, strict=True)), Fraction(0)) for row in dict.fromkeys(rows)
    }
    best = max(means.values())
    gaps = [(arm, best - means[row]) for arm, row in zip(optimal, rows, strict=True) if means[row] != best]
    for arm, gap in gaps[:_MOST_TIES]:
        yield f"arm {arm} is taken as optimal; its exact gap is {float(gap):.3g}"
    if len(gaps) > _MOST_TIES:
        yield f"and {len(gaps) - _MOST_TIES} more"


def made_instance(
    make: Callable[[Any], Any], entry: Any, width: float | str | None, point: Mapping[str, Any]
) -> MadeInstance:
    """The instance that ``make`` returns for an entry, checked; and its confidence width, a number or a parameter of the point."""
    given = make(entry)
    number = None if width is None else positive_number("width", point[width] if isinstance(width, str) else width)
    if isinstance(given, LinearBandit):
        return MadeInstance(given.arms, given.gaps, given.noise_variance, given, number)
    if isinstance(given, tuple) and len(given) == 2:
        given = {"arms": given[0], "theta": given[1]}
    if isinstance(given, Mapping):
        known = ("arms", "theta", "gaps", "noise_variance", "labels")
        unknown = [key for key in given if key not in known]
        if unknown or "arms" not in given:
            wrong = f"unknown entry {unknown[0]!r}" if unknown else "no arms"
            raise InvalidInstance(f"the function returned a dictionary with {wrong} (known: {', '.join(known)})")
        given = Instance(**given)
    if not isinstance(given, Instance):
        raise InvalidInstance(
            f"the function returned a {type(given).__name__}; expected a LinearBandit, (arms, theta) or a dictionary of them"
        )
    noise = 1.0 if given.noise_variance is None else given.noise_variance
    if (given.theta is None) == (given.gaps is None):
        raise InvalidInstance(f"expected theta or gaps, got {'neither' if given.theta is None else 'both'}")
    if given.theta is not None:
        bandit = LinearBandit(given.arms, given.theta, noise, labels=given.labels)
        return MadeInstance(bandit.arms, bandit.gaps, bandit.noise_variance, bandit, number)
    arms = arm_matrix(given.arms)
    gaps = vector("gaps", given.gaps, InvalidInstance, length=len(arms))
    if (gaps < 0).any():
        i = int(np.flatnonzero(gaps < 0)[0])
        raise InvalidInstance(f"gaps: expected entries >= 0, but entry {i} is {float(gaps[i])!r}")
    noise = checked_noise(noise, len(arms), InvalidInstance)
    if not isinstance(noise, float):
        raise InvalidInstance("noise_variance: expected one number with gaps, got one per arm; that needs theta")
    return MadeInstance(arms, gaps, noise, None, number)
