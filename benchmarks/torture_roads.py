"""The roads of torture: every way in which a program can be solved, each from instances to what was claimed of them."""

from __future__ import annotations

import dataclasses
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torture_families import CHUNK, Family, Instance
from torture_programs import next_gaps

import allocopt as ao
from allocopt.base.errors import Infeasible, InvalidInstance, InvalidProgram, MethodUnavailable, SolverFailed
from allocopt.base.validation import Array
from allocopt.certify.by_block.problem import StreamedProblem
from allocopt.certify.proofs.writing import proof_document
from allocopt.certify.reduction import Quotient
from allocopt.certify.verdict import recertify
from allocopt.model.arms import blocks, opening, spanning, survey
from allocopt.model.program import AllocationProgram
from allocopt.model.programs import at_level, regret
from allocopt.model.solution import Solution
from allocopt.solvers import streaming
from allocopt.solvers.settings import StreamingSettings
from allocopt.solving.roads.side_observations import solve_by_sight

LONGEST = 120
"""Seconds after which an instance counts as stuck."""


@dataclasses.dataclass
class Outcome:
    """What happened to one instance."""

    seed: int
    what: str
    """"solved", "Infeasible", "refused", "unavailable", "gave up", "uncaught" or "warning"."""
    text: str = ""
    program: AllocationProgram | None = None
    solution: Solution | None = None
    document: dict[str, Any] | None = None
    """The claim and its witness, as a proof file holds them."""
    known: Any = None
    """The exact value, where a formula gives it."""
    broken: str = ""
    """What contradicts the law or the promise that the road checks."""


class Stuck(Exception):
    """An instance took longer than any should."""


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise `Stuck` after so much processor time: others may take most of the machine."""

    def stop(*_: Any) -> None:
        raise Stuck(f"still running after {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def attempt(seed: int, call: Callable[[Outcome], None]) -> Outcome:
    """An outcome, filled by the call; whatever it raises becomes part of it."""
    outcome = Outcome(seed, "solved")
    try:
        with warnings.catch_warnings(), at_most(LONGEST):
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", ".*threadpoolctl.*", RuntimeWarning)
            call(outcome)
    except Infeasible as error:
        outcome.what, outcome.text = "Infeasible", str(error)
    except (InvalidInstance, InvalidProgram) as error:
        outcome.what, outcome.text = "refused", str(error)
    except MethodUnavailable as error:
        outcome.what, outcome.text = "unavailable", str(error)
    except SolverFailed as error:
        outcome.what, outcome.text = "gave up", str(error)
    except Warning as error:
        outcome.what, outcome.text = "warning", f"{type(error).__name__}: {error}"
    except Exception as error:  # the point of the whole exercise
        outcome.what, outcome.text = "uncaught", f"{type(error).__name__}: {error}"
    return outcome


def _claim(outcome: Outcome, solution: Solution, witness: Quotient | None = None) -> None:
    outcome.solution = solution
    outcome.document = proof_document(solution, witness)


def _witness(solution: Solution) -> Quotient | None:
    """The quotient that a solution by blocks is about."""
    return None if solution.program._blocks is None else StreamedProblem(solution.program).witness


def _by(method: str, **how: Any) -> Callable[[Instance, Outcome], None]:
    def road(instance: Instance, outcome: Outcome) -> None:
        outcome.program = instance.program()
        outcome.known = instance.value
        _claim(outcome, ao.solve(outcome.program, method=method, **how))

    return road


def _sightings(instance: Instance, outcome: Outcome) -> None:
    """The road of very many side observations, whose claim the referee judges as any other."""
    outcome.program = instance.program()
    _claim(outcome, solve_by_sight(outcome.program, 1e-8, None, None))


@contextmanager
def in_blocks() -> Iterator[None]:
    """Every array is a large set, seen in blocks of seven rows through a pool of a few arms."""
    new = [
        (opening, "LARGE", 0), (opening, "SHARED", 0), (opening, "MANY", 0), (blocks, "block_rows", lambda *shape: 7),
        (survey, "KEEP", 1), (spanning, "SAMPLE", 2), (streaming, "DEFAULT", StreamingSettings(entering=1)),
    ]  # fmt: skip
    old = [(module, name, getattr(module, name)) for module, name, _ in new]
    for module, name, value in new:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in old:
            setattr(module, name, value)


def _in_memory(solution: Solution, program: AllocationProgram) -> Solution:
    """The same claim about the same arms, listed."""
    names = ("allocation", "multipliers", "lower", "upper", "status", "method", "tol", "binding", "coordinates")
    values = {name: getattr(solution, name) for name in (*names, "assumptions")}
    return Solution(program, stats=dict(solution.stats), **values)


def _streamed(instance: Instance, outcome: Outcome) -> None:
    outcome.program = instance.program()
    outcome.known = instance.value
    with in_blocks():
        solution = ao.solve(instance.program())
        witness = _witness(solution)
        solution = _in_memory(solution, outcome.program)
    _claim(outcome, solution, witness)


def _dask(instance: Instance, outcome: Outcome) -> None:
    import dask
    import dask.array as da

    outcome.program = instance.program()
    outcome.known = instance.value
    # threads take three times as long as none, and mostly wait: one instance in twenty has them
    with dask.config.set(scheduler="synchronous" if outcome.seed % 20 else "threads", num_workers=2):
        away: Any = da.from_array(instance.arms, chunks=(3, -1))  # type: ignore[no-untyped-call]
        there = dataclasses.replace(instance, arms=away)
        solution = ao.solve(there.program())
        witness = _witness(solution)
        solution = _in_memory(solution, outcome.program)
    _claim(outcome, solution, witness)


def _saved(instance: Instance, outcome: Outcome) -> None:
    outcome.program = instance.program()
    solution = ao.solve(outcome.program)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof.json"
        solution.save(path, overwrite=True)
        loaded = ao.load_solution(path)
    _claim(outcome, loaded)
    enclosure = loaded.verify()
    if solution.status in SOLVED and not np.isfinite(enclosure.upper):
        outcome.broken = f"{solution.status.name}, but verify() proves [{enclosure.lower:.6g}, {enclosure.upper:.6g}]"
    elif (
        solution.status is not loaded.status and "answers" not in solution.stats
    ):  # a proof is of the answer that was found
        outcome.broken = f"{solution.status.name} when saved, {loaded.status.name} when loaded"


def _recertified(instance: Instance, outcome: Outcome) -> None:
    """Other people's numbers: an allocation and multipliers that are nearly right."""
    outcome.program = instance.program()
    found = ao.solve(outcome.program)
    rng = np.random.default_rng(outcome.seed)
    size = rng.choice([0.0, 1e-12, 1e-6, 1e-1])
    allocation = found.allocation * (1 + size * rng.uniform(size=len(found.allocation)))
    multipliers = found.multipliers * (1 + size * rng.uniform(size=len(found.multipliers)))
    allocation = np.clip(allocation, outcome.program.lower, outcome.program.upper)
    _claim(outcome, recertify(outcome.program, allocation, multipliers, "interior-point", 1e-8, {}))


SOLVED = (ao.Status.CERTIFIED, ao.Status.CONDITIONAL)
"""What promises a gap within the tolerance."""


def _answer(instance: Instance, gaps: Array | None) -> tuple[Any, ...]:
    """Status, bounds, allocation and multipliers, by `solve` or, where gaps are given, by the compiled roads too."""
    one = ao.solve(instance.program())
    said: tuple[Any, ...] = (one.status, one.lower, one.upper, one.allocation, one.multipliers)
    if gaps is not None:
        one = ao.Allocator(instance.arms).solve(gaps)
        said += (one.status, one.lower, one.upper, one.allocation, one.multipliers)
        many = ao.solve_many(instance.arms, gaps[None], workers=1)
        said += (many.status[0], many.lower[0], many.upper[0], many.allocation[0], many.multipliers[0])
    return said


_AT_THE_LIMIT = 1.1e-8  # a gap just beyond the tolerance of 1e-8: rounding alone may take it there


def _gap(said: tuple[Any, ...], at: int) -> float:
    """The relative gap of an answer."""
    lower, upper = said[at + 1 : at + 3]
    return float((upper - lower) / lower) if lower > 0 else float("inf")


_SAID = ("status", "lower", "upper", "allocation", "multipliers")


def _laws(instance: Instance, outcome: Outcome) -> None:
    """Units of the columns say nothing new, to the bit; nor do their order, a copied column, or one of zeros (one of these)."""
    outcome.program = instance.program()
    _claim(outcome, ao.solve(outcome.program))
    gaps = _gaps_of(instance) if instance.kind in ("regret", "horizon") else None
    rng = np.random.default_rng(outcome.seed)
    d = instance.arms.shape[1]
    powers = 2.0 ** rng.integers(-10, 11, d)
    one, two = _answer(instance, gaps), _answer(_moved(instance, np.diag(powers)), gaps)
    changed = [
        i for i, (x, y) in enumerate(zip(one, two, strict=True)) if not np.array_equal(x, y, equal_nan=i % 5 > 0)
    ]
    if changed:
        who = ("solve", "Allocator", "solve_many")
        which = ", ".join(f"{_SAID[i % 5]} of {who[i // 5]}" for i in changed)
        outcome.broken = f"columns times {powers.tolist()} change {which}"
        return
    order = rng.permutation(d)
    copy = int(rng.integers(d))
    what, matrix = (
        (f"columns in the order {order.tolist()}", np.eye(d)[:, order]),
        (f"a copy of column {copy}", np.hstack([np.eye(d), np.eye(d)[:, [copy]]])),
        ("a column of zeros", np.hstack([np.eye(d), np.zeros((d, 1))])),
    )[int(rng.integers(3))]
    other = _answer(_moved(instance, matrix), gaps)
    for at in range(0, len(one), 5):
        if (one[at] in SOLVED) != (other[at] in SOLVED) and max(_gap(one, at), _gap(other, at)) > _AT_THE_LIMIT:
            outcome.broken = f"{what}: {one[at].name} becomes {other[at].name}"
        elif one[at + 1] > other[at + 2] or other[at + 1] > one[at + 2]:
            before, after = ([float(x) for x in said[at + 1 : at + 3]] for said in (one, other))
            outcome.broken = f"{what}: {before} becomes {after}"


def _moved(instance: Instance, matrix: Array) -> Instance:
    """The arms times a matrix of powers of two, zeros and ones; θ so that every mean stays the same to the last bit."""
    theta, general = instance.theta, instance.general
    if theta is not None:
        column = np.argmax(matrix != 0, axis=1)  # the first column that holds this coordinate gets its θ
        moved = np.zeros(matrix.shape[1])
        moved[column] = theta / matrix[np.arange(len(matrix)), column]
        theta = moved
    if general is not None:
        general = {**general, "targets": general["targets"] @ matrix}
    items = None if instance.items is None else instance.items @ matrix
    return dataclasses.replace(instance, arms=instance.arms @ matrix, theta=theta, general=general, items=items)


SINGLE: dict[str, Callable[[Instance, Outcome], None]] = {
    "auto": _by("auto", road="compiled"),
    "numpy": _by("auto", road="numpy"),
    "closed-form": _by("closed-form"),
    "design": _by("design"),
    "interior-point": _by("interior-point"),
    "active-set": _by("active-set"),
    "frank-wolfe": _by("frank-wolfe", tol=1e-3, max_iterations=200),
    "conic": _by("conic", tol=1e-6),
    "streamed": _streamed,
    "Dask": _dask,
    "saved": _saved,
    "recertified": _recertified,
    "laws": _laws,
    "sightings": _sightings,
}


def _gaps_of(instance: Instance) -> Array:
    return instance.bandit().gaps if instance.gaps is None else instance.gaps


def sequence(family: Family, seeds: Sequence[int]) -> tuple[Array, list[tuple[int, Array]]]:
    """The arms of the chunk's first instance, and gaps for each seed."""
    first = family.instance(seeds[0] - seeds[0] % CHUNK)
    start = _gaps_of(first)
    return first.arms, [
        (seed, next_gaps(np.random.default_rng([seed, 1]), start, far=not family.determined)) for seed in seeds
    ]


def _allocator(family: Family, seeds: Sequence[int]) -> list[Outcome]:
    made: list[Any] = []
    failed = attempt(
        seeds[0], lambda _: made.extend((*sequence(family, seeds), ao.Allocator(sequence(family, seeds)[0])))
    )
    if not made:
        return [dataclasses.replace(failed, seed=seed) for seed in seeds]
    _, asked, allocator = made

    return [attempt(seed, lambda outcome, gaps=gaps: _claim(outcome, allocator.solve(gaps))) for seed, gaps in asked]  # type: ignore[misc]


def _many_shared(family: Family, seeds: Sequence[int]) -> list[Outcome]:
    made: list[Any] = []
    failed = attempt(seeds[0], lambda _: made.extend(sequence(family, seeds)))
    if not made:
        return [dataclasses.replace(failed, seed=seed) for seed in seeds]
    arms, asked = made
    return _batch(
        [seed for seed, _ in asked],
        lambda at: ao.solve_many(arms, np.array([asked[i][1] for i in at]), workers=1),
    )


class _Given(NamedTuple):
    """An instance of a batch."""

    seed: int
    arms: Array
    gaps: Array
    bandit: Any


def _many_rows(family: Family, seeds: Sequence[int]) -> list[Outcome]:
    def call(group: list[_Given]) -> Any:
        return ao.solve_many(np.array([g.arms for g in group]), np.array([g.gaps for g in group]), workers=1)

    return _many(family, seeds, call)


def _many_bandits(family: Family, seeds: Sequence[int]) -> list[Outcome]:
    return _many(family, seeds, lambda group: ao.solve_many([g.bandit for g in group], workers=1))


def _many(family: Family, seeds: Sequence[int], call: Callable[[list[_Given]], Any]) -> list[Outcome]:
    """The instances of a chunk as batches, one per shape."""
    shapes: dict[tuple[int, ...], list[_Given]] = {}
    outcomes = []

    def prepare(seed: int) -> None:
        instance = family.instance(seed)
        bandit = instance.bandit() if instance.gaps is None else None
        gaps = instance.gaps if bandit is None else bandit.gaps
        shapes.setdefault(instance.arms.shape, []).append(_Given(seed, instance.arms, gaps, bandit))  # type: ignore[arg-type]

    for seed in seeds:
        outcome = attempt(seed, lambda _, seed=seed: prepare(seed))  # type: ignore[misc]
        if outcome.what != "solved":
            outcomes.append(outcome)
    for rows in shapes.values():
        outcomes += _batch([g.seed for g in rows], lambda at, rows=rows: call([rows[i] for i in at]))  # type: ignore[misc]
    return outcomes


def _batch(seeds: list[int], call: Callable[[list[int]], Any]) -> list[Outcome]:
    """One call for all rows; where that fails, one for each row, so that the culprit is known."""
    batches: list[Any] = []
    whole = attempt(seeds[0], lambda _: batches.append(call(list(range(len(seeds))))))
    if whole.what != "solved":
        if len(seeds) == 1:
            return [whole]
        return [outcome for i, seed in enumerate(seeds) for outcome in _batch([seed], lambda _, i=i: call([i]))]  # type: ignore[misc]
    batch = batches[0]
    return [attempt(seed, lambda outcome, row=row: _row(batch, row, outcome)) for row, seed in enumerate(seeds)]  # type: ignore[misc]


def _row(batch: Any, row: int, outcome: Outcome) -> None:
    """The claim that a batch makes of one row."""
    if np.isnan(batch.upper[row]):  # the row's error has become a text: have it again
        arms = batch.arms if batch.arms.ndim == 2 else batch.arms[row]
        ao.solve(at_level(arms, batch.gaps[row], float(batch.levels[row])))
        raise SolverFailed(batch.reasons[row])
    # as the batch claims it, and nothing computed anew
    if batch.bandits:
        program = regret(batch.bandits[row])
    else:
        arms = batch.arms if batch.arms.ndim == 2 else batch.arms[row]
        program = at_level(arms, batch.gaps[row], float(batch.levels[row]))
    solution = Solution(
        program, batch.allocation[row].copy(), batch.multipliers[row].copy(), float(batch.lower[row]), float(batch.upper[row]),
        batch.status[row], "interior-point", batch.tol, np.zeros(0, dtype=np.int64), (), {}, batch.assumptions.get(row, ()),
    )  # fmt: skip
    _claim(outcome, solution)


BATCHED: dict[str, Callable[[Family, Sequence[int]], list[Outcome]]] = {
    "solve_many": _many_rows,
    "solve_many, shared arms": _many_shared,
    "solve_many, bandits": _many_bandits,
    "Allocator": _allocator,
}


def travel(family: Family, road: str, seeds: Sequence[int]) -> list[Outcome]:
    """Solve the instances of some seeds of one chunk."""
    if road in BATCHED:
        return BATCHED[road](family, seeds)
    return [
        attempt(seed, lambda outcome, seed=seed: SINGLE[road](family.instance(seed), outcome))  # type: ignore[misc]
        for seed in seeds
    ]
