r"""Schedule: a solved allocation as whole pulls in an order of play.

T = (level/2) · α for a regret solution (T_n of Definition 9, `def:opt`, at level f_n), rounded up: more pulls only add
information, so ⌈T⌉ meets every constraint that T meets. In these constraints the zero-gap (free) arms are played without
end; within n rounds they are played finitely often, and the norms are larger by what that leaves unknown.
`Schedule.check` gives both norms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.validation import Array, ArrayLike, IntArray, frozen, whole_number
from allocopt.linear.assumptions import assuming, sentences
from allocopt.linear.information import Directions
from allocopt.model.rows.sightings import Sightings, sightings_of
from allocopt.model.solution import Solution
from allocopt.model.status_text import usable
from allocopt.model.tables import Table, Tabular, drawn
from allocopt.policies.schedule.constraint_check import ConstraintCheck
from allocopt.policies.schedule.files import schedule_document, write_csv, write_json
from allocopt.policies.schedule.plan import (
    apportioned,
    check_choices,
    fixed_number_of_rounds,
    planned_pulls,
    planned_scale,
    pulls_so_far,
)
from allocopt.policies.schedule.play_order import PlayOrder, merged, order_of_play
from allocopt.policies.schedule.rounding import LONGEST, as_listed, ceilings

if TYPE_CHECKING:
    from allocopt.policies.schedule.following import Follower

__all__ = ["Schedule"]


@dataclass(frozen=True, eq=False)
class Schedule(Tabular):
    """Whole pulls and an order of play, made by `Schedule.from_solution`. Rounds are counted from 1, after ``played``.

    Attributes
    ----------
    solution : Solution
        What it was made from.
    horizon : int
        n: all rounds, those already played included.
    order : str
        "interleaved", "explore-first" or "tracking".
    rounding : str
        "ceiling", "efficient" or "listing": how real-valued pulls became whole ones.
    allocation : array, shape (k,)
        T: real-valued pulls, inf on free arms.
    scale : float
        T = scale · (the solution's allocation); constraints are held to radius/scale.
    required : array, shape (k,)
        Whole pulls that are wanted in all, those already played included; inf on free arms.
    played : array of int, shape (k,)
        Pulls before the schedule begins.
    labels : tuple of str or None
        Names of the arms.
    """

    solution: Solution
    horizon: int
    """n: all rounds, those already played included."""
    order: str
    rounding: str
    allocation: Array
    """T: real-valued pulls, inf on free arms."""
    scale: float
    """T = scale · (the solution's allocation): constraints are held to radius/scale."""
    required: Array
    """Whole pulls that are wanted in all, those already played included; inf on free arms (doubles: they may be huge)."""
    played: IntArray
    labels: tuple[str, ...] | None = None

    @classmethod
    def from_solution(
        cls,
        solution: Solution,
        horizon: float,
        played: ArrayLike | None = None,
        *,
        order: str = "interleaved",
        rounding: str | None = None,
        level: str | float | None = None,
        constant: float = 1.0,
        exploration: float | None = None,
    ) -> Schedule:
        r"""Whole pulls for ``horizon`` rounds from a solution.

        Parameters
        ----------
        solution : Solution
            Of the programs regret, horizon, optimism or remaining: arms are played ⌈T⌉ times and the free arms take the
            rest. Of best_arm, g_optimal or a general program without free arms: exactly ``horizon`` rounds in the
            proportions of the allocation. A FAILED solution is refused.
        horizon : int
            n >= 3, all rounds in all. It must agree with the n of a horizon or remaining solution.
        played : array_like of int, optional
            Pulls so far, one per arm; they count towards what is required (remaining solutions: those it was made with).
        order : str
            "interleaved" (the paper's passes), "explore-first" or "tracking"; see `allocopt.policies.schedule.play_order`.
        rounding : str, optional
            "ceiling" (default where there are free arms) keeps every constraint. "efficient" (default elsewhere)
            spends a fixed number of rounds, ``exploration``, on arms that are not free; constraints may be missed by a
            factor of at most 1/(1 − s/rounds) for s such arms. "listing" is ⌊T⌋ + 1, as the paper's Algorithm 1 plays.
        level : str or float, optional
            "f_n": T = α·f_n/2, the paper's T_n (default for regret); "log": T = α·log n, the lower bound's own scale
            (default for optimism and remaining); a number f: T = α·f/2. A horizon solution has its own level.
        constant : float
            The universal constant in f_n, for level "f_n".
        exploration : int, optional
            With rounding "efficient": pulls of arms that are not free, in all; ⌈ΣT⌉ by default.

        Examples
        --------
        >>> import allocopt as ao
        >>> from allocopt.policies.schedule.schedule import Schedule
        >>> solution = ao.regret_constant([[1, 0], [0, 1], [0.99, 0.02]], [1, 0])
        >>> s = Schedule.from_solution(solution, horizon=10**9)
        >>> s.length, s.pulls.tolist(), s.regret
        (1000000000, [999999796, 204, 0], 204.0)
        >>> list(Schedule.from_solution(solution, horizon=10**9, order="explore-first").runs())
        [(1, 204), (0, 999999796)]
        """
        check_choices(solution, order, rounding)
        n = whole_number("horizon", horizon, InvalidOption, least=3)
        if n > LONGEST:
            raise InvalidOption(f"horizon: expected at most {LONGEST}, got {n}")
        program = solution.program
        counts = pulls_so_far(solution, played)
        if counts.sum() > n:
            raise InvalidOption(f"played: expected at most the horizon's {n} rounds in all, got {counts.sum()}")
        fixed = fixed_number_of_rounds(program)
        scale = planned_scale(solution, n, level, constant)
        allocation = planned_pulls(solution, scale)
        chosen = rounding or ("efficient" if fixed else "ceiling")
        if exploration is not None and (chosen != "efficient" or fixed):
            raise InvalidOption('exploration: only with rounding "efficient" of a program with free arms')
        if fixed and chosen != "efficient":
            raise InvalidOption(
                f'rounding: expected "efficient" for a {program.kind} program (a fixed number of rounds), got "{chosen}"'
            )
        rounds = n if fixed else exploration
        if chosen == "efficient":
            required = apportioned(allocation, counts, rounds, fixed)
        else:
            required = ceilings(allocation) if chosen == "ceiling" else as_listed(allocation)
        return cls(solution, n, order, chosen, frozen(allocation), scale, frozen(required), counts, solution.labels)

    @cached_property
    def length(self) -> int:
        """Rounds of this schedule: horizon − played, or fewer if no arm is free and everything required is played."""
        left = self.horizon - int(self.played.sum())
        return left if len(self.free_arms) else int(min(left, self.wanted.sum()))

    @cached_property
    def free_arms(self) -> IntArray:
        """Zero-gap arms: they take the rounds that are left, in turns."""
        return np.flatnonzero(np.isinf(self.allocation))

    @cached_property
    def wanted(self) -> Array:
        """What is still wanted of each arm that is not free, after ``played``; 0 on free arms."""
        missing = np.maximum(self.required - self.played, 0.0)
        missing[self.free_arms] = 0.0
        return missing

    @cached_property
    def _arms(self) -> IntArray:
        """The arms that are played at all; the order of play knows only these."""
        return np.union1d(np.flatnonzero(self.wanted), self.free_arms).astype(np.int64)

    @cached_property
    def _order(self) -> PlayOrder:
        free = np.flatnonzero(np.isin(self._arms, self.free_arms))
        return order_of_play(self.order, self.wanted[self._arms], free, self.length)

    @cached_property
    def pulls(self) -> IntArray:
        """How often this schedule plays each arm (without ``played``)."""
        return self.pulls_at(self.length)

    @cached_property
    def missing(self) -> Array:
        """Pulls that are required but do not fit in the horizon; all zero if the schedule is ``complete``."""
        return frozen(np.where(np.isinf(self.required), 0.0, np.maximum(self.wanted - self.pulls, 0.0)))

    @property
    def complete(self) -> bool:
        """Whether everything that is required is played."""
        return not self.missing.any()

    @cached_property
    def losses(self) -> Array:
        """Gaps; the program's costs where it has no gaps (G-optimal and general programs)."""
        origin = self.solution.program.origin
        return self.solution.program.costs if origin.bandit is None else origin.bandit.gaps

    @property
    def regret(self) -> float:
        """Σ gap · pulls over the rounds of this schedule."""
        return self.regret_at(self.length)

    @property
    def total_regret(self) -> float:
        """Regret of all rounds, those already played included."""
        return self.regret + float(self.losses @ self.played)

    def pulls_at(self, t: float) -> IntArray:
        """How often each arm is played in the first ``t`` rounds; a formula, whatever t is.

        Examples
        --------
        >>> import allocopt as ao
        >>> solution = ao.regret_constant([[1, 0], [0, 1], [0.99, 0.02]], [1, 0])
        >>> Schedule.from_solution(solution, 10**9, order="tracking").pulls_at(5 * 10**8)
        array([499999898,       102,         0])
        """
        result = np.zeros(len(self.allocation), dtype=np.int64)
        result[self._arms] = self._order.pulls_at(self._round(t))
        return result

    def regret_at(self, t: float) -> float:
        """Regret of the first ``t`` rounds (``played`` is not counted)."""
        return float(self.losses @ self.pulls_at(t))

    def runs(self) -> Iterator[tuple[int, int]]:
        """(arm, count) for every run of rounds with the same arm, made as you go."""
        arms = self._arms.tolist()
        return ((arms[i], count) for i, count in merged(self._order.runs(), self.length))

    def __iter__(self) -> Iterator[int]:
        """The arm of every round, one at a time: n rounds are never in memory."""
        for arm, count in self.runs():
            yield from repeat(arm, count)

    def __len__(self) -> int:
        return self.length

    def plot(self, **options: Any) -> Any:
        """`allocopt.plots.schedule_plan`: pulls of the explored arms, round by round. Returns a matplotlib Figure."""
        return drawn("schedule_plan", self, **options)

    def _table(self) -> Table:
        """The arms that are played, those with the most pulls first."""
        pulls = self.pulls
        arms = np.flatnonzero(pulls)
        arms = arms[np.argsort(-pulls[arms], kind="stable")]
        columns: dict[str, Any] = {"arm": arms}
        if self.labels is not None:
            columns["label"] = [self.labels[i] for i in arms.tolist()]
        columns |= {"allocation": self.allocation[arms], "required": self.required[arms], "pulls": pulls[arms]}
        facts = {
            "rounds": self.length, "order": self.order, "rounding": self.rounding, "regret": self.regret,
            "complete": "yes" if self.complete else "no: the rounds do not suffice",
        }  # fmt: skip
        return Table("Schedule", facts, columns)

    def follow(self) -> Follower:
        """Begin to play this schedule round by round: ``next()`` says the arm, ``update(arm)`` what was played.

        Examples
        --------
        >>> import allocopt as ao
        >>> solution = ao.regret_constant([[1, 0], [0, 1], [0.99, 0.02]], [1, 0])
        >>> follower = Schedule.from_solution(solution, 1000).follow()
        >>> first = follower.next()
        >>> follower.update(first)
        >>> first, follower.next(), follower.left
        (0, 1, 999)
        """
        from allocopt.policies.schedule.following import Follower

        return Follower.of(self)

    @staticmethod
    def resume(path: str | PathLike[str]) -> Follower:
        """Go on with what ``follower.save(path)`` wrote; the file is all that is needed."""
        from allocopt.policies.schedule.following import Follower

        return Follower.load(path)

    def check(self, t: float | None = None) -> ConstraintCheck:
        """Every constraint after the first ``t`` rounds (all of them by default), with ``played`` counted as data.

        Examples
        --------
        >>> import allocopt as ao
        >>> solution = ao.regret_constant([[1, 0], [0, 1], [0.99, 0.02]], [1, 0])
        >>> schedule = Schedule.from_solution(solution, 10**6)
        >>> schedule.check().met, schedule.check(100).met
        (True, False)
        """
        now = self.length if t is None else self._round(t)
        counts = (self.played + self.pulls_at(now)).astype(np.float64)
        program = self.solution.program
        if program.owners is not None:
            counts = counts[program.owners]  # of rows
        if program.noise_variance is not None:
            counts = counts / program.noise_variance
        return ConstraintCheck(
            now,
            np.arange(program.n_targets) if program.target_arms is None else program.target_arms,
            program.radii / self.scale,
            self._directions.quotient_norms(counts),
            self._directions.norms(counts),
        )

    @cached_property
    def _directions(self) -> Directions | Sightings:
        program = self.solution.program
        seen = sightings_of(program)
        if seen is not None:  # whose information matrix is diagonal
            return seen
        free = self.free_arms
        if program.owners is not None:  # arms that show several things free all their rows
            free = np.flatnonzero(np.isin(program.owners, free))
        return Directions.of(program.features, program.targets, free)

    def _round(self, t: float) -> int:
        now = whole_number("t", t, InvalidOption)
        if now > self.length:
            raise InvalidOption(f"t: expected at most the schedule's {self.length} rounds, got {now}")
        return now

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What one should know before playing this: ties, what the solution assumes or lacks, pulls that do not fit."""
        return tuple(_notes(self))

    def to_csv(self, path: str | PathLike[str], *, per_round: bool = False, force: bool = False) -> None:
        """Write the runs (or every round) as CSV, line by line; an existing file is kept unless ``force``."""
        write_csv(self, path, per_round=per_round, force=force)

    def to_json(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write `document` as JSON; an existing file is kept unless ``force``."""
        write_json(self, path, force=force)

    def document(self) -> dict[str, Any]:
        """The schedule as compact JSON data: pulls per arm and the rule of the order, not n rounds."""
        return schedule_document(self)

    def __repr__(self) -> str:
        assumed = assuming(self.solution.assumptions)
        return (
            f"Schedule({self.solution.program.kind}, horizon={self.horizon}, order={self.order!r}, length={self.length}, "
            f"exploration={int(self.pulls.sum() - self.pulls[self.free_arms].sum())}, regret={self.regret:.6g}"
            f"{'' if self.complete else ', incomplete'}{f', {assumed}' if assumed else ''})"
        )


def _notes(schedule: Schedule) -> Iterator[str]:
    solution = schedule.solution
    if not usable(solution.status):
        yield f"the solution is {solution.status.name}: its cost may be {solution.gap:.2g} (relative) above the optimum"
    if solution.assumptions:
        said = "; ".join(sentences(solution.assumptions))
        yield f"the solution is {solution.status.name}, {assuming(solution.assumptions)}: {said}"
    free = schedule.free_arms
    if len(free) > 1:
        shown = ", ".join(str(i) for i in free[:8]) + (", …" if len(free) > 8 else "")
        yield f"{len(free)} arms have gap 0 (arms {shown}): they share the rounds that are left evenly"
    short = np.flatnonzero(schedule.missing)
    if len(short):
        wanted = schedule.wanted.sum()
        got = float(schedule.pulls[schedule.wanted > 0].sum())
        how = (
            " (each pass also plays the optimal arms; explore-first or tracking would play them all)"
            if wanted <= schedule.length
            else ""
        )
        yield (
            f"the allocation does not fit: {wanted:.10g} pulls are wanted, {got:.10g} {'is' if got == 1 else 'are'} played in the "
            f"{schedule.length} rounds left{how}; {len(short)} arm{'s get' if len(short) > 1 else ' gets'} fewer than wanted, "
            f"first arm {short[0]}: {schedule.pulls[short[0]]} of {schedule.wanted[short[0]]:.10g}"
        )
    if not len(free) and schedule.length < schedule.horizon - int(schedule.played.sum()):
        yield f"no arm has gap 0: the schedule ends after {schedule.length} rounds, once every pull is played"
