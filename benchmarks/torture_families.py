"""Instances for torture: families of random programs, most of them nasty on purpose, each made from a seed alone."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from torture_exact import independent_value

from allocopt import programs
from allocopt.base.validation import Array
from allocopt.model.bandit import LinearBandit
from allocopt.model.contexts import ContextualBandit
from allocopt.model.program import AllocationProgram

CHUNK = 50
"""Seeds that share the numbers of arms and coordinates, so that their instances fit into one batch."""

Random = np.random.Generator


@dataclass(frozen=True)
class Instance:
    """The numbers that a user would pass."""

    kind: str
    arms: Array
    theta: Array | None = None
    gaps: Array | None = None
    number: float | None = None
    """n for horizon and remaining, the width for optimism, m for top_m, τ for threshold, ε for best_arm."""
    pulls: Array | None = None
    general: dict[str, Any] | None = None
    """What a program that is given by its arrays has beside the features (which are ``arms``)."""
    value: Fraction | None = None
    """The value, where a formula gives it exactly."""
    noise: Array | None = None
    """One variance per arm, where it is not 1."""
    items: Array | None = None
    """Of a transductive program."""
    cuts: tuple[int, ...] = ()
    """Where the next context begins, of a contextual program."""

    def bandit(self) -> LinearBandit:
        """The bandit, for kinds that have one."""
        return LinearBandit(self.arms, self.theta, 1.0 if self.noise is None else self.noise)  # type: ignore[arg-type]

    def program(self) -> AllocationProgram:
        """The program; raises an AllocoptError where the numbers are refused."""
        if self.general is not None:
            return AllocationProgram(self.arms, **self.general)  # type: ignore[arg-type]
        if self.kind == "horizon":
            return programs.horizon(self.arms, self.gaps, self.number or 1000)
        if self.kind == "g_optimal":
            return programs.g_optimal(self.arms)
        if self.kind == "optimism":
            return programs.optimism(self.bandit(), self.number or 1.0)
        if self.kind == "remaining":
            return programs.remaining(self.bandit(), self.pulls, self.number or 1000)
        if self.kind == "contextual":
            contexts = np.split(self.arms, self.cuts)
            noise = 1.0 if self.noise is None else self.noise
            return programs.contextual(ContextualBandit(contexts, self.theta, None, noise))  # type: ignore[arg-type]
        if self.kind == "contextual_budget":
            return programs.contextual(ContextualBandit(np.split(self.arms, self.cuts), self.theta), self.number)  # type: ignore[arg-type]
        if self.kind == "side_observations":
            return programs.side_observations(self.theta, self.arms)
        if self.kind == "semi_bandit":
            return programs.semi_bandit(self.arms, self.theta, self.number or 1.0)
        if self.kind == "transductive":
            return programs.transductive(self.arms, self.items, self.theta, 1.0 if self.noise is None else self.noise)
        if self.kind == "top_m":
            return programs.top_m(self.bandit(), int(self.number or 1))
        if self.kind == "threshold":
            return programs.threshold(self.bandit(), self.number or 0.0)
        if self.kind == "duelling":
            return programs.duelling(self.bandit())
        return (
            programs.best_arm(self.bandit(), self.number or 0.0)
            if self.kind == "best_arm"
            else programs.regret(self.bandit())
        )

    def code(self) -> str:
        """Python that makes the program."""
        noise = "" if self.noise is None else f", {_listed(self.noise)}"
        bandit = f"ao.LinearBandit({_listed(self.arms)}, {_listed(self.theta)}{noise})"
        contexts = [part.tolist() for part in np.split(self.arms, self.cuts)]
        arms = _listed(self.arms)
        made = {
            "horizon": f"ao.programs.horizon({arms}, {_listed(self.gaps)}, {self.number or 1000!r})",
            "g_optimal": f"ao.programs.g_optimal({arms})",
            "optimism": f"ao.programs.optimism({bandit}, {self.number!r})",
            "remaining": f"ao.programs.remaining({bandit}, {_listed(self.pulls)}, {self.number!r})",
            "contextual_budget": f"ao.programs.contextual(ao.ContextualBandit({contexts}, {_listed(self.theta)}), {self.number!r})",
            "side_observations": f"ao.programs.side_observations({_listed(self.theta)}, {arms})",
            "semi_bandit": f"ao.programs.semi_bandit({arms}, {_listed(self.theta)}, {self.number!r})",
            "variances": f"ao.programs.regret({bandit})",
            "best_arm": f"ao.programs.best_arm({bandit}, {self.number or 0.0!r})",
            "top_m": f"ao.programs.top_m({bandit}, {self.number!r})",
            "threshold": f"ao.programs.threshold({bandit}, {self.number!r})",
            "transductive": f"ao.programs.transductive({arms}, {_listed(self.items)}, {_listed(self.theta)}{noise})",
            "contextual": f"ao.programs.contextual(ao.ContextualBandit({contexts}, {_listed(self.theta)}"
            + (f", None{noise}))" if noise else "))"),
        }.get(self.kind, f"ao.programs.{self.kind}({bandit})")
        if self.general is not None:
            more = "".join(f",\n    {name}={_listed(x)}" for name, x in self.general.items())
            made = f"ao.AllocationProgram({arms}{more})"
        return f"import allocopt as ao\nfrom math import inf\nprogram = {made}\nsolution = ao.solve(program)"


def _listed(values: Any) -> str:
    if isinstance(values, tuple):
        return f"({', '.join(map(_listed, values))})"
    return "None" if values is None else repr(values.tolist())


@dataclass(frozen=True)
class Family:
    """A name, how to make an instance, and what is known of all of them."""

    name: str
    make: Callable[[Random, int, int], Instance]
    kind: str
    determined: bool
    """Whether, by construction, the doubles determine the value to 1e-8 (dependences and ties among them are exact)."""

    def instance(self, seed: int) -> Instance:
        """The instance of a seed; seeds of a chunk have equally many arms and coordinates."""
        d, k = self.sizes(seed // CHUNK)
        return self.make(np.random.default_rng([self._mark, seed]), d, k)

    def sizes(self, chunk: int) -> tuple[int, int]:
        """Coordinates and arms (a family may add a few) of the seeds of a chunk."""
        rng = np.random.default_rng([self._mark, chunk])
        if rng.uniform() < 0.06:
            return int(rng.integers(4, 9)), int(rng.integers(10, 41))
        return int(rng.integers(1, 6)), int(rng.integers(2, 11))

    @property
    def _mark(self) -> int:
        return zlib.crc32(self.name.encode())


FAMILIES: dict[str, Family] = {}


def family(
    name: str, kind: str = "regret", determined: bool = False
) -> Callable[[Callable[[Random, int, int], Any]], Callable[[Random, int, int], Any]]:
    """Enter a function (rng, d, k) into the table; for bandits it may return the arms and θ alone."""

    def enter(make: Callable[[Random, int, int], Any]) -> Callable[[Random, int, int], Any]:
        def instance(rng: Random, d: int, k: int) -> Instance:
            made = make(rng, d, k)
            return made if isinstance(made, Instance) else Instance("regret", *made)

        FAMILIES[name] = Family(name, instance, kind, determined)
        return make

    return enter


def two_decimals(rng: Random, *shape: int) -> Array:
    return np.round(rng.uniform(-1.5, 1.5, shape), 1 if rng.uniform() < 0.3 else 2)


def small_integers(rng: Random, *shape: int) -> Array:
    return rng.integers(-2, 3, shape).astype(np.float64)


def plain_arms(rng: Random, k: int, d: int) -> Array:
    """Gaussian, two decimals or integers: what dependent columns are added to."""
    return (rng.normal(size=(k, d)), two_decimals(rng, k, d), small_integers(rng, k, d))[int(rng.integers(3))]


def plain_theta(rng: Random, d: int) -> Array:
    return (rng.normal(size=d), two_decimals(rng, d))[int(rng.integers(2))]


def powers_of_two(rng: Random, size: Any, most: int = 45) -> Array:
    powers: Array = np.ldexp(np.ones(size), rng.integers(-most, most + 1, size))
    return powers


def nudged(rng: Random, row: Array) -> Array:
    """One entry moved to the next double, up or down."""
    row = row.copy()
    c = int(rng.integers(len(row)))
    row[c] = np.nextafter(row[c], rng.choice([-np.inf, np.inf]))
    return row


@family("plain", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    return rng.normal(size=(k, d)), rng.normal(size=d)


@family("two decimals", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    return two_decimals(rng, k, d), two_decimals(rng, d)


@family("integers", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    return small_integers(rng, k, d), small_integers(rng, d)


@family("zeros and ones", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    if rng.uniform() < 0.5:  # one-hot blocks, as categories are coded: columns of a block sum to 1
        first = np.eye(d)[rng.integers(0, d, k)]
        return np.hstack([first, np.eye(2)[rng.integers(0, 2, k)]]), rng.normal(size=d + 2)
    return rng.integers(0, 2, (k, d)).astype(np.float64), plain_theta(rng, d)


def _with_columns(rng: Random, arms: Array, new: Array) -> tuple[Array, Array]:
    """New columns at the end or, as often, all columns in another order; θ is new throughout."""
    wide = np.hstack([arms, new])
    if rng.uniform() < 0.5:
        wide = wide[:, rng.permutation(wide.shape[1])]
    return wide, plain_theta(rng, wide.shape[1])


@family("copied column", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    arms = plain_arms(rng, k, d)
    return _with_columns(rng, arms, arms[:, [int(rng.integers(d))]])


@family("all columns copied", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    arms = plain_arms(rng, k, d)
    return _with_columns(rng, arms, arms)


@family("column times 2, 4, -2", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    arms = plain_arms(rng, k, d)
    return _with_columns(rng, arms, arms[:, [int(rng.integers(d))]] * rng.choice([2.0, 4.0, -2.0]))


@family("column times 3, 0.1")  # Gaussian multiples are rounded: dependent only up to an ulp
def _(rng: Random, d: int, k: int) -> Any:
    arms = plain_arms(rng, k, d)
    return _with_columns(rng, arms, arms[:, [int(rng.integers(d))]] * rng.choice([3.0, 0.1]))


@family("summed columns, rounded")
def _(rng: Random, d: int, k: int) -> Any:
    arms = rng.normal(size=(k, d)) if rng.uniform() < 0.5 else two_decimals(rng, k, d)
    return _with_columns(rng, arms, arms @ rng.choice([-1.0, 1.0], (d, 1)))


@family("summed columns, exact", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    arms = rng.integers(-64, 65, (k, d)) / 32.0
    return _with_columns(rng, arms, arms @ rng.choice([-1.0, 1.0, 2.0], (d, 1)))


@family("zero columns", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    return _with_columns(rng, plain_arms(rng, k, d), np.zeros((k, 2)))


@family("low-rank product")
def _(rng: Random, d: int, k: int) -> Any:
    r = int(rng.integers(1, d + 1))
    return rng.normal(size=(k, r)) @ rng.normal(size=(r, d + 1)), rng.normal(size=d + 1)


@family("columns scaled", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    arms, theta, powers = plain_arms(rng, k, d), plain_theta(rng, d), powers_of_two(rng, d)
    return arms * powers, theta / powers


@family("copied columns scaled", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    arms = plain_arms(rng, k, d)
    arms, theta = _with_columns(rng, arms, arms[:, [int(rng.integers(d))]])
    powers = powers_of_two(rng, d + 1)
    return arms * powers, theta / powers


@family("rows scaled")
def _(rng: Random, d: int, k: int) -> Any:
    return plain_arms(rng, k, d) * powers_of_two(rng, (k, 1)), plain_theta(rng, d)


@family("rows and columns scaled")
def _(rng: Random, d: int, k: int) -> Any:
    powers = powers_of_two(rng, d)
    return plain_arms(rng, k, d) * powers_of_two(rng, (k, 1)) * powers, plain_theta(rng, d) / powers


@family("tiny entries")  # [[1, 0], [0.5, 1e-16]]: a direction that is small beside another one, not zero
def _(rng: Random, d: int, k: int) -> Any:
    arms = two_decimals(rng, k, d + 1)
    arms[:, rng.integers(0, d + 1)] *= 10.0 ** -rng.integers(10, 20)
    if rng.uniform() < 0.5:
        arms[0] = np.eye(d + 1)[0]
    return arms, np.eye(d + 1)[0] if rng.uniform() < 0.5 else plain_theta(rng, d + 1)


@family("near ties")
def _(rng: Random, d: int, k: int) -> Any:
    arms, theta = plain_arms(rng, k, d), rng.normal(size=d)
    best = int(np.argmax(arms @ theta))
    for other in rng.choice(k, int(rng.integers(1, k)), replace=False):
        step = ((arms[best] - arms[other]) @ theta - 10.0 ** rng.uniform(-16, -3)) / (theta @ theta)
        arms[other] = arms[other] + step * theta
    return arms, theta


@family("an ulp below the best")
def _(rng: Random, d: int, k: int) -> Any:
    arms, theta = plain_arms(rng, k, d), plain_theta(rng, d)
    best = int(np.argmax(arms @ theta))
    arms[(best + 1) % k] = nudged(rng, arms[best])
    return arms, theta


@family("nearly parallel arms")
def _(rng: Random, d: int, k: int) -> Any:
    arms, theta = plain_arms(rng, k, d), plain_theta(rng, d)
    best = int(np.argmax(arms @ theta))
    for other in rng.choice(k, int(rng.integers(1, k)), replace=False):
        onto = best if rng.uniform() < 0.5 else int(rng.integers(k))
        row = arms[onto] * rng.choice([0.5, -1.0, 0.3, 0.999])
        arms[other] = (
            nudged(rng, row) if rng.uniform() < 0.5 else row + 10.0 ** rng.uniform(-16, -3) * rng.normal(size=d)
        )
    return arms, theta


@family("exact ties", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    arms, theta = plain_arms(rng, k, d), np.zeros(d)
    theta[0] = 1.0
    arms[: int(rng.integers(2, k + 1)), 0] = 3.0
    return arms, theta


@family("equal arms", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    return plain_arms(rng, k, d)[rng.integers(0, k, k)], plain_theta(rng, d)


@family("best arm twice", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    arms, theta = plain_arms(rng, k, d), plain_theta(rng, d)
    best = int(np.argmax(arms @ theta))
    arms[(best + 1) % k] = arms[best]
    return arms, theta


@family("best arm zero", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    arms, theta = plain_arms(rng, k, d), plain_theta(rng, d)
    arms = np.where((arms @ theta > 0)[:, None], -arms, arms)
    arms[int(rng.integers(k))] = 0.0
    return arms, theta


@family("multiples of the best arm", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    arms, theta = plain_arms(rng, k, d), plain_theta(rng, d)
    best = int(np.argmax(arms @ theta))
    for other in np.flatnonzero((np.arange(k) != best) & (rng.uniform(size=k) < 0.5)):
        arms[other] = arms[best] * rng.choice([0.5, -1.0, 0.25, 0.0, -2.0])
    return arms, theta


@family("orthogonal arms")
def _(rng: Random, d: int, k: int) -> Any:
    theta = plain_theta(rng, d + 1) if rng.uniform() < 0.5 else 1.0 - 10.0 ** rng.uniform(-12, 0, d + 1)
    arms = np.eye(d + 1)[rng.permutation(d + 1)]
    return Instance("regret", arms, theta, value=independent_value(arms, theta))


@family("independent arms, tiny gaps")
def _(rng: Random, d: int, k: int) -> Any:
    arms = rng.normal(size=(d + 1, d + 1))
    means = 1.0 - 10.0 ** rng.uniform(-10, 0, d + 1)
    theta = np.asarray(np.linalg.solve(arms, means), dtype=np.float64)
    return Instance("regret", arms, theta, value=independent_value(arms, theta))
