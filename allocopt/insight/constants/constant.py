"""Constant: a number that somebody published, with the program whose value it should be, and what a proof says of it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from allocopt.base.spelling import spelled
from allocopt.base.validation import Array
from allocopt.certify.verdict import recertify
from allocopt.model.program import AllocationProgram
from allocopt.model.solution import Solution

__all__ = ["Constant", "Finding", "Number", "Shares", "Verdict", "finding"]

ROUNDING = 1e-3
"""Relative difference up to which a printed number is called one that was rounded or computed roughly, not another number."""
SAME = 1e-9
"""Relative difference that the rounding of an instance to doubles explains, where a source states a value exactly."""


class Verdict(enum.Enum):
    """What a proven interval says of a printed number."""

    AGREES = "agrees"
    """Every printed digit is right; a value that is stated exactly lies in the interval."""
    ROUNDING = "rounding"
    """Some last digits are wrong, and nothing else: what the tolerance of a solver leaves."""
    DIFFERS = "differs"
    """It is not the value of this instance."""
    OTHER_INSTANCE = "another instance"
    """It is not the value of this instance, but of another one that is on the page."""
    UNPRINTED = "not printed"
    """The source has the instance and no number; here is one to compare with."""


@dataclass(frozen=True)
class Number:
    """A value as it is printed, digit by digit.

    Attributes
    ----------
    digits : str
        What is printed.
    exact : bool
        Whether it is stated as exact: a closed form, or a theorem.

    Examples
    --------
    >>> Number("27.8697").half_unit
    Fraction(1, 20000)
    """

    digits: str
    exact: bool = False
    """Stated as exact: a closed form, or a theorem."""

    @property
    def value(self) -> Fraction:
        """The number that the digits are."""
        return Fraction(Decimal(self.digits))

    @property
    def half_unit(self) -> Fraction:
        """Half a unit of the last printed digit."""
        return half_unit(self.digits)

    def __str__(self) -> str:
        return self.digits


@dataclass(frozen=True)
class Shares:
    """An allocation as it is printed: the share of each arm in the total, digit by digit; arms not listed have none.

    Attributes
    ----------
    digits : mapping
        Arm → its share as it is printed.
    partial : bool
        Whether only some of the shares are printed, so that they can be compared but not played.
    """

    digits: Mapping[int, str]
    partial: bool = False

    def weights(self, n_arms: int) -> Array:
        """The printed shares as a vector."""
        found = np.zeros(n_arms)
        for arm, text in self.digits.items():
            found[arm] = float(text)
        return found

    @property
    def rounding(self) -> float:
        """What rounding the shares to their digits can cost at most, relatively.

        If w̃_i >= (1 − η) w_i for all i then H(w̃) >= (1 − η) H(w), so w̃ costs at most 1/(1 − η) times as much as w.
        """
        share = max(half_unit(text) / max(Fraction(Decimal(text)), half_unit(text)) for text in self.digits.values())
        return float(share / (1 - share)) if share < 1 else float("inf")

    def __str__(self) -> str:
        return ", ".join(f"{text} on arm {arm}" for arm, text in self.digits.items())


def half_unit(digits: str) -> Fraction:
    """Half a unit of the last digit of a decimal number."""
    exponent = Decimal(digits).as_tuple().exponent
    return Fraction(1, 2) * Fraction(10) ** int(exponent)


@dataclass(frozen=True)
class Constant:
    """One row of the page.

    Attributes
    ----------
    name : str
        Its name, for `allocopt.constants.named` and ``allocopt constants``.
    group : str
        Which part of the page it is in; its proof file is proofs/<group>/<name>.json.
    source : str
        Who published it.
    place : str
        Where in the source it is printed.
    quantity : str
        What the number is, in words.
    printed : Number, Shares or None
        What is printed; None where the source has the instance only.
    instance : str
        The instance in words; ``program`` is the same in code.
    program : callable
        Makes the program whose value the number should be.
    remark : str
        How to check it by hand, and what is wrong where something is.
    belongs_to : str or None
        The row whose instance has the printed number, where that is known.
    wording : str or None
        How the number is written in the source, where not as plain digits.
    """

    name: str
    group: str
    """Which part of the page it is in; its proof file is proofs/<group>/<name>.json."""
    source: str
    place: str
    """Where in the source it is printed."""
    quantity: str
    """What the number is, in words."""
    printed: Number | Shares | None
    """None where the source has the instance only."""
    instance: str
    """The instance in words; ``program`` is the same in code."""
    program: Callable[[], AllocationProgram] = field(repr=False)
    remark: str
    """How to check it by hand, and what is wrong where something is."""
    belongs_to: str | None = None
    """The row whose instance has the printed number, where that is known."""
    wording: str | None = None
    """How the number is written in the source, where not as plain digits."""

    @property
    def brief(self) -> str:
        """What is printed, in a few digits."""
        if isinstance(self.printed, Shares):
            return ", ".join(text[:6] for text in list(self.printed.digits.values())[:2])
        return "–" if self.printed is None else self.printed.digits

    @property
    def text(self) -> str:
        """What is printed."""
        if self.wording is not None:
            return self.wording
        return "–" if self.printed is None else str(self.printed)


@dataclass(frozen=True)
class Finding:
    """What a proof says of a row.

    Attributes
    ----------
    verdict : Verdict
        Whether the printed number is right.
    difference : float or None
        (printed − proven)/proven for a number; for shares what they cost more than the optimum, relatively; None where there
        is nothing to compare.
    """

    verdict: Verdict
    difference: float | None


@spelled
def finding(constant: Constant, solution: Solution) -> Finding:
    """Compare what is printed with what a solution proves."""
    printed = constant.printed
    if printed is None:
        return Finding(Verdict.UNPRINTED, None)
    verdict, difference = (
        _of_number(printed, solution) if isinstance(printed, Number) else _of_shares(printed, solution)
    )
    if verdict is Verdict.DIFFERS and constant.belongs_to is not None:
        verdict = Verdict.OTHER_INSTANCE
    return Finding(verdict, difference)


def _of_number(printed: Number, solution: Solution) -> tuple[Verdict, float]:
    lower, upper = Fraction(solution.lower), Fraction(solution.upper)
    value = printed.value
    room = Fraction(SAME) * value if printed.exact else printed.half_unit
    nearest = min(max(value, lower), upper)
    difference = float((value - nearest) / nearest) if nearest else float(value)
    if abs(value - nearest) <= room:
        return Verdict.AGREES, difference
    return (Verdict.ROUNDING if abs(difference) <= ROUNDING else Verdict.DIFFERS), difference


def _of_shares(printed: Shares, solution: Solution) -> tuple[Verdict, float]:
    """Shares are judged by what playing them costs, which is certified, or by their digits where only some are printed."""
    if printed.partial:
        finite = solution.allocation / solution.allocation.sum()
        off = {i: abs(Fraction(float(finite[i])) - Fraction(Decimal(text))) for i, text in printed.digits.items()}
        agrees = all(size <= half_unit(printed.digits[i]) for i, size in off.items())
        worst = float(max(off.values()))
        close = worst <= ROUNDING
        return (Verdict.AGREES if agrees else Verdict.ROUNDING if close else Verdict.DIFFERS), worst
    program = solution.program
    weights = printed.weights(program.n_arms)
    free = program if program.constraints is None else replace(program, constraints=None)
    played = recertify(free, weights, solution.multipliers, "as printed", solution.tol, {})
    if program.constraints is not None:  # limits of shares hold for every multiple; enough for rounding is added
        scaled = weights * (played.upper / float(program.costs @ weights) * (1.0 + SAME))
        rows = np.zeros(program.constraints.n_rows)
        played = recertify(program, scaled, solution.multipliers, "as printed", solution.tol, {}, row_multipliers=rows)
    more = played.upper / solution.upper - 1.0
    if more <= printed.rounding:
        return Verdict.AGREES, more
    return (Verdict.ROUNDING if more <= ROUNDING else Verdict.DIFFERS), more
