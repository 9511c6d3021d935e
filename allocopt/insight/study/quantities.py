"""The quantities of a study: what is computed of each instance, with certified bounds or the reason why there are none."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from allocopt.base.errors import MethodUnavailable
from allocopt.base.machine import single_threaded
from allocopt.base.tolerances import SUPPORT
from allocopt.base.validation import Array
from allocopt.insight.study.made_instance import MadeInstance, made_instance
from allocopt.insight.study.source import reason_of
from allocopt.linear.assumptions import sentences
from allocopt.linear.floating import GAP_ERROR
from allocopt.linear.span import spanning_coordinates
from allocopt.model import programs
from allocopt.model.program import AllocationProgram
from allocopt.model.programs import horizon_at_level
from allocopt.model.solution import Solution, Status
from allocopt.model.status_text import usable, why_not
from allocopt.solving.allocator import MOST_ARMS
from allocopt.solving.batch import solve_many
from allocopt.solving.solve import solve

__all__ = ["COUNTED", "QUANTITIES", "WITH_WIDTH", "Answer", "Asked", "answers"]

T = TypeVar("T")

COUNTED = "COUNTED"
"""The status of a quantity that is a count read off floating-point numbers: right or wrong, but without an interval."""

QUANTITIES: Mapping[str, str] = {
    "c": "c(A,θ), the regret constant",
    "ucb": "Σ 2σ²/Δ, the constant of UCB",
    "ratio": "ucb/c: what ignoring the linear structure costs",
    "best-arm": "T*(θ), the characteristic time of best-arm identification",
    "optimism": "the least that an optimistic algorithm of this width pays",
    "price": "optimism/c, the price of optimism",
    "gap-min": "the smallest positive gap",
    "gap-max": "the largest gap",
    "rank": "the dimension that the arms span",
    "support-size": "how many suboptimal arms the optimal allocation plays",
}

_CERTAINTY = (Status.CERTIFIED.name, Status.CONDITIONAL.name, Status.INACCURATE.name)
"""What a number with bounds can be, the most certain first."""

WITH_WIDTH = ("optimism", "price")

_SECOND_METHOD = "active-set"
"""The method that "auto" resorts to where its first choice does not get there: it takes other steps, so it fails elsewhere."""


_SUM_ERROR = 4 * GAP_ERROR  # relative, of sums of reciprocal gaps


class Answer(NamedTuple):
    """One quantity of one instance."""

    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    status: str = Status.FAILED.name
    reason: str | None = None
    assumptions: str | None = None
    """What the bounds assume, in words; None where that is nothing."""

    @classmethod
    def rounded(cls, value: float, tol: float) -> Answer:
        """A value that is right but for the rounding of gaps and sums."""
        status = Status.CERTIFIED if tol >= 2 * _SUM_ERROR else Status.INACCURATE
        reason = None if status is Status.CERTIFIED else f"rounding alone accounts for {2 * _SUM_ERROR:.1g}"
        return cls(value, value * (1 - _SUM_ERROR), value * (1 + _SUM_ERROR), status.name, reason)


@dataclass(frozen=True)
class Asked:
    """What is wanted of every instance."""

    quantities: tuple[str, ...]
    tol: float
    method: str
    width: float | str | None


def answers(
    asked: Asked, make: Callable[[Any], Any], entries: Sequence[Any], points: Sequence[Mapping[str, Any]]
) -> list[list[Answer]]:
    """All quantities of some instances: one list per instance, in the order in which they were asked for.

    Nothing that goes wrong with one instance touches another, and no answer depends on which others are beside it.

    Examples
    --------
    >>> from allocopt.insight.instances import counter_example
    >>> asked = Asked(("c", "rank"), 1e-8, "auto", None)
    >>> [[c, rank]] = answers(asked, lambda epsilon: counter_example(epsilon), [0.1], [{}])
    >>> round(c.value, 6), c.status, rank.value
    (8.0, 'CERTIFIED', 2.0)
    """
    with _one_blas_thread():
        made = [
            _attempt(made_instance, make, entry, asked.width, point)
            for entry, point in zip(entries, points, strict=True)
        ]
        constants: list[_Constant | str] = []
        if {"c", "ratio", "price", "support-size"} & set(asked.quantities):
            constants = _regret_constants(made, asked)
        return [
            [Answer(reason=instance)] * len(asked.quantities)
            if isinstance(instance, str)
            else _answers_of(instance, constants[i] if constants else "", asked)
            for i, instance in enumerate(made)
        ]


def _attempt(work: Callable[..., T], *arguments: Any) -> T | str:
    """What the work returns, or why it could not: users' code may raise anything, even SystemExit."""
    try:
        return work(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return reason_of(error)


_blas = threading.Lock()
_inside = 0
_limit = contextlib.ExitStack()


@contextlib.contextmanager
def _one_blas_thread() -> Iterator[None]:
    """One BLAS thread while any thread of this process is inside: sums then do not depend on the number of workers."""
    global _inside
    with _blas:
        if _inside == 0:
            _limit.enter_context(single_threaded())
        _inside += 1
    try:
        yield
    finally:
        with _blas:
            _inside -= 1
            if _inside == 0:
                _limit.close()


class _Constant(NamedTuple):
    """c(A,θ) and the allocation that costs it."""

    answer: Answer
    allocation: Array


def _constant(
    lower: float, upper: float, status: Status, reason: str | None, allocation: Array, assumptions: str | None = None
) -> _Constant:
    if status is Status.FAILED:
        return _Constant(Answer(reason=reason), allocation)
    return _Constant(Answer(upper, lower, upper, status.name, reason, assumptions), allocation)


def _of_solution(solution: Solution) -> _Constant:
    assumed = "; ".join(sentences(solution.assumptions)) or None
    return _constant(solution.lower, solution.upper, solution.status, why_not(solution), solution.allocation, assumed)


def _regret_constants(made: Sequence[MadeInstance | str], asked: Asked) -> list[_Constant | str]:
    """c of every instance: those of equal shape together by the compiled batch, large ones or by another method alone."""
    found: list[_Constant | str] = ["" for _ in made]
    groups: dict[tuple[Any, ...], list[int]] = {}
    for i, instance in enumerate(made):
        if isinstance(instance, str):
            continue
        # the compiled batch knows variances per arm of bandits alone, not beside gaps
        known = instance.bandit is not None or isinstance(instance.noise_variance, float)
        if asked.method == "auto" and len(instance.arms) <= MOST_ARMS and known:
            theta = instance.bandit is not None
            groups.setdefault((instance.arms.shape, theta, theta or instance.noise_variance), []).append(i)
        else:
            found[i] = _attempt(_alone, instance, asked)
    for members in groups.values():
        together = _attempt(_batch, [made[i] for i in members], asked)
        if isinstance(together, str):  # one of them fails the whole batch: one by one, to find which
            for i in members:
                single = _attempt(_batch, [made[i]], asked)
                found[i] = single if isinstance(single, str) else single[0]
        else:
            for i, one in zip(members, together, strict=True):
                found[i] = one
        for i in members:
            constant = found[i]
            # alone also where it is conditional: a batch does not say what its rows assume
            if not isinstance(constant, str) and constant.answer.status != Status.CERTIFIED.name:
                found[i] = _attempt(_alone, made[i], asked)
    return found


def _alone(instance: MadeInstance, asked: Asked) -> _Constant:
    if instance.bandit is not None:
        program = programs.regret(instance.bandit)
    else:
        program = horizon_at_level(instance.arms, instance.gaps, 2.0 * float(instance.noise_variance), None)
    return _of_solution(_solution(program, asked))


def _solution(program: AllocationProgram, asked: Asked) -> Solution:
    """By the method that was asked for. "auto" tries a second one where the first did not get there: bounds are bounds."""
    first = solve(program, asked.method, asked.tol)
    if asked.method != "auto" or usable(first.status) or first.method == _SECOND_METHOD:
        return first
    try:
        second = solve(program, _SECOND_METHOD, asked.tol)
    except MethodUnavailable:
        return first
    return second if second.gap < first.gap else first


def _batch(group: Sequence[MadeInstance], asked: Asked) -> list[_Constant]:
    """Instances of equal shape, in this thread, each from a cold start."""
    if group[0].bandit is not None:
        batch = solve_many([made.bandit for made in group], tol=asked.tol, workers=1)
    else:
        arms, gaps = np.array([made.arms for made in group]), np.array([made.gaps for made in group])
        batch = solve_many(arms, gaps, level=2.0 * float(group[0].noise_variance), tol=asked.tol, workers=1)
    return [
        _constant(
            float(batch.lower[i]), float(batch.upper[i]), batch.status[i], batch.reasons.get(i), batch.allocation[i]
        )
        for i in range(len(batch))
    ]


def _answers_of(instance: MadeInstance, constant: _Constant | str, asked: Asked) -> list[Answer]:
    known: dict[str, Answer] = {}

    def answer(quantity: str) -> Answer:
        if quantity not in known:
            found = _attempt(_compute, quantity, instance, constant, asked, answer)
            known[quantity] = Answer(reason=found) if isinstance(found, str) else found
        return known[quantity]

    return [answer(quantity) for quantity in asked.quantities]


def _compute(
    quantity: str, made: MadeInstance, constant: _Constant | str, asked: Asked, answer: Callable[[str], Answer]
) -> Answer:
    if quantity == "c":
        return Answer(reason=constant) if isinstance(constant, str) else constant.answer
    if quantity == "ucb":
        return _of_the_tie(made, Answer.rounded(2.0 * _sum_over_gaps(made), asked.tol))
    if quantity == "ratio":
        return _quotient("ucb", answer("ucb"), answer("c"))
    if quantity == "price":
        return _quotient("optimism", answer("optimism"), answer("c"))
    if quantity == "best-arm":
        return _solved(programs.best_arm(made.with_theta(quantity)), asked)
    if quantity == "optimism":
        assert made.width is not None
        return _solved(programs.optimism(made.with_theta(quantity), made.width), asked)
    if quantity == "gap-min":
        return _of_the_tie(made, Answer.rounded(float(made.suboptimal.min()), asked.tol))
    if quantity == "gap-max":
        return Answer.rounded(float(made.suboptimal.max()), asked.tol)
    if quantity == "rank":
        rank = made.bandit.rank if made.bandit is not None else len(spanning_coordinates(made.arms))
        return Answer(float(rank), status=COUNTED)
    assert quantity == "support-size", quantity
    if isinstance(constant, str) or constant.answer.value is None:
        return Answer(reason=f"no c: {constant if isinstance(constant, str) else constant.answer.reason}")
    # an interior point leaves a trace on every arm: what carries no noticeable part of the cost is not counted
    cost = np.where(np.isfinite(constant.allocation), constant.allocation, 0.0) * made.gaps
    return Answer(float((cost > SUPPORT * cost.max(initial=0.0)).sum()), status=COUNTED)


def _sum_over_gaps(made: MadeInstance) -> float:
    """Σ σ_x²/Δ_x."""
    if isinstance(made.noise_variance, float):
        return made.noise_variance * math.fsum(1.0 / made.suboptimal)
    return math.fsum((made.noise_variance[made.gaps > 0] / made.suboptimal).tolist())


def _of_the_tie(made: MadeInstance, answer: Answer) -> Answer:
    """A quantity that would be another one if the arms taken as optimal were not tied; conditional where they are not quite."""
    if made.assumed_ties is None:
        return answer
    status = Status.CONDITIONAL.name if answer.status == Status.CERTIFIED.name else answer.status
    return answer._replace(status=status, assumptions=made.assumed_ties)


def _solved(program: AllocationProgram, asked: Asked) -> Answer:
    return _of_solution(_solution(program, asked)).answer


def _quotient(name: str, above: Answer, below: Answer) -> Answer:
    """A quotient of certified intervals, rounded outwards; as certain as the less certain of the two, assuming what both do."""
    for part, answer in ((name, above), ("c", below)):
        if answer.value is None:
            return Answer(reason=f"no {part}: {answer.reason}")
    if below.upper == 0.0:
        return Answer(reason="c is 0: the optimal arms already tell everything, so there is nothing to divide by")
    assert above.value is not None and above.lower is not None and above.upper is not None
    assert below.value is not None and below.lower is not None and below.upper is not None
    lower = max(0.0, math.nextafter(above.lower / below.upper, -math.inf))
    upper = math.nextafter(above.upper / below.lower, math.inf) if below.lower > 0 else math.inf
    value = above.value / below.value
    worse = max(above, below, key=lambda part: _CERTAINTY.index(part.status))
    said = dict.fromkeys(part.assumptions for part in (above, below) if part.assumptions is not None)
    return Answer(value, lower, upper, worse.status, worse.reason, "; ".join(said) or None)
