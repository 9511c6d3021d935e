"""What `plots.geometry` draws, in numbers: the information of an allocation, and the parameters it cannot rule out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from allocopt.base.errors import InvalidInstance, InvalidOption
from allocopt.base.tolerances import RANK
from allocopt.base.validation import Array, IntArray, vector, whole_number
from allocopt.insight.plots.style import number
from allocopt.model.bandit import LinearBandit
from allocopt.model.programs import regret
from allocopt.model.programs.instead import no_bandit
from allocopt.model.solution import Solution
from allocopt.solving.solve import solve

MOST_NAMED: Final = 7
"""Arms that get their name written beside them."""
_VERY_LONG: Final = 12.0
"""An ellipse so many times as long as wide would look like a line if both axes had one scale."""


@dataclass(frozen=True, eq=False)
class Slice:
    """A plane through θ in which parameters are drawn: θ' = θ + basis·(p − shift)."""

    basis: Array  # d × 2, orthonormal
    shift: Array  # where θ is drawn: at its own coordinates for d = 2, else at 0
    names: tuple[str, str]
    to_scale: bool = True

    def points(self, theta: Array, parameters: Array) -> Array:
        result: Array = (parameters - theta) @ self.basis + self.shift
        return result


@dataclass(frozen=True, eq=False)
class Picture:
    """What is to be drawn, in numbers."""

    bandit: LinearBandit
    solution: Solution
    alternatives: list[tuple[int, Array]]
    level: float  # the set is {v: vᵀHv <= level}
    level_name: str
    information: Array  # H of the arms that are played finitely often
    quotient: Array  # d × r, orthonormal: the directions orthogonal to the arms with α = ∞
    rounds: int | None
    rounds_information: Array | None  # H after so many rounds, in units of `information`
    slice: Slice | None

    @property
    def unbounded(self) -> bool:
        """Whether no play can bound the set: it has no end in directions that the arms do not span."""
        return self.bandit.rank < self.bandit.dim

    @property
    def scale(self) -> float:
        """The length of θ, or 1."""
        return float(np.linalg.norm(self.bandit.theta)) or 1.0

    @property
    def important(self) -> IntArray:
        """The arms that have a part: optimal, played or binding."""
        s = self.solution
        parts = [self.bandit.optimal_arms, s.support, s.optimal_arms]
        if s.program.target_arms is not None:
            parts.append(s.binding)
        return np.unique(np.concatenate(parts))

    @property
    def named(self) -> IntArray:
        """Those to write a name beside: all that have a part, or the ones played most."""
        chosen = self.important
        if len(chosen) <= MOST_NAMED:
            return chosen
        order = np.argsort(-self.solution.allocation[chosen], kind="stable")
        return np.sort(chosen[order[:MOST_NAMED]])


def picture_of(bandit: Any, solution: Any, alternatives: Any, horizon: float | None) -> Picture:
    """Check that the parts fit together, and work out the sets."""
    if not isinstance(bandit, LinearBandit):
        raise no_bandit(bandit, solution, "the bandit first, then the solution")
    if bandit.dim not in (2, 3):
        raise InvalidInstance(
            f"bandit: expected 2 or 3 dimensions to draw, got {bandit.dim}; plots.allocation and plots.gap_information show "
            "any number"
        )
    solution = solve(regret(bandit)) if solution is None else solution
    if not isinstance(solution, Solution):
        raise InvalidOption(f"solution: expected a Solution, got a {type(solution).__name__}")
    program = solution.program
    if program.features.shape != bandit.arms.shape or not (program.features == bandit.arms).all():
        raise InvalidInstance("solution: expected the solution of a program with this bandit's arms, got other arms")
    if program.kind == "general":
        raise InvalidInstance(
            "solution: expected a program made from a bandit, got a general one; try plots.allocation"
        )
    if not np.isfinite(solution.upper):
        raise InvalidInstance("solution: expected a feasible allocation, but the solve failed")
    level, name = _level(bandit, solution)
    finite = np.where(np.isfinite(solution.allocation), solution.allocation, 0.0)
    weights = finite if program.noise_variance is None else finite / program.noise_variance
    information = (bandit.arms * weights[:, None]).T @ bandit.arms
    known, quotient = _split(bandit.arms[solution.optimal_arms])
    plane = _slice(bandit, known, quotient, information)
    if plane is None and bandit.rank < 3:
        raise InvalidInstance(f"bandit: expected arms that span the 3 dimensions, but they span {bandit.rank}")
    rounds, after = None, None
    if plane is not None and len(solution.optimal_arms) and quotient.shape[1] < 2:
        rounds = _rounds(solution, finite, horizon)
        scale = 1.0 if program.kind == "horizon" else math.log(rounds)
        rest = (rounds / scale - finite.sum()) / len(solution.optimal_arms)
        best = bandit.arms[solution.optimal_arms]
        seen = (
            best
            if program.noise_variance is None
            else best / np.sqrt(program.noise_variance[solution.optimal_arms, None])
        )
        after = information + rest * seen.T @ seen
    elif horizon is not None:
        raise InvalidOption("horizon: the set does not depend on it here; it is used for d = 2 with α = ∞ on an arm")
    return Picture(
        bandit, solution, _checked_alternatives(alternatives, bandit), level, name, information, quotient, rounds, after,
        plane,
    )  # fmt: skip


def _level(bandit: LinearBandit, solution: Solution) -> tuple[float, str]:
    kind = solution.program.kind
    if kind == "g_optimal":
        return 1.0, "1"
    if kind == "horizon":
        level = solution.program.origin.number
        assert level is not None
        return level, f"f_n = {number(level)}"
    variance = 1.0 if solution.program.noise_variance is not None else bandit._one_variance("this picture")
    return 2.0 * variance, "2" if variance == 1 else f"2σ² = {number(2 * variance)}"


def _split(free: Array) -> tuple[Array, Array]:
    """Orthonormal bases (as columns) of the span of these rows and of its complement."""
    dim = free.shape[1]
    if not free.any():
        return np.zeros((dim, 0)), np.eye(dim)
    _, values, rows = np.linalg.svd(free)
    rank = int((values > RANK * values[0]).sum())
    return rows[:rank].T, rows[rank:].T


def _slice(bandit: LinearBandit, known: Array, quotient: Array, information: Array) -> Slice | None:
    to_scale = True
    if bandit.dim == 2:
        return Slice(np.eye(2), bandit.theta, ("θ′₁", "θ′₂"))
    if quotient.shape[1] == 3:
        return None
    if quotient.shape[1] == 2:
        values, vectors = np.linalg.eigh(quotient.T @ information @ quotient)
        # a very long ellipse is drawn along its axes, each to its own scale, or it would look like a line
        to_scale = bool(bandit.rank < bandit.dim or values[-1] <= _VERY_LONG**2 * values[0])
        basis = _upright(quotient) if to_scale else quotient @ vectors
    else:  # θ lies in the plane of its projection on the known directions and what is left
        towards = known @ (known.T @ bandit.theta)
        first = towards / np.linalg.norm(towards) if np.linalg.norm(towards) > 0 else known[:, 0]
        second = quotient[:, 0] if quotient.shape[1] else known @ _across(known.T @ first)
        basis = np.column_stack([first, second])
    names = [f"θ′ − θ along ({', '.join(number(round(v, 2) + 0.0) for v in column)})" for column in basis.T]
    return Slice(basis, np.zeros(2), (names[0], names[1]), to_scale)


def _across(direction: Array) -> Array:
    """A unit vector orthogonal to this one."""
    return _split(direction[None, :])[1][:, 0]


def _upright(plane: Array) -> Array:
    """The same plane with axes as near as may be to the coordinate axes, so that the picture can be read."""
    weights = plane @ plane.T
    first = weights[:, int(np.argmax(np.diag(weights)))]
    first = first / np.linalg.norm(first)
    rest = plane - np.outer(first, first @ plane)
    second = rest[:, int(np.argmax((rest**2).sum(axis=0)))]
    second = second / np.linalg.norm(second)
    return np.column_stack([first, second * np.sign(second[np.argmax(np.abs(second))])])


def _rounds(solution: Solution, finite: Array, horizon: float | None) -> int:
    given = solution.program.origin.horizon
    per_log = solution.program.kind != "horizon"
    if horizon is None and given is None:
        n = 10
        while per_log and finite.sum() * math.log(n) > 0.1 * n:
            n *= 10
        return n
    n = whole_number("horizon", given if horizon is None else horizon, least=3)
    if n > 1e300:
        raise InvalidOption(f"horizon: expected at most 1e300 rounds, got a number of {len(str(n))} digits")
    if given is not None and n != given:
        raise InvalidOption(f"horizon: the solution is for n = {given}, got {n}")
    spent = finite.sum() * (math.log(n) if per_log else 1.0)
    if spent > n:
        raise InvalidOption(f"horizon: exploration takes {spent:.0f} rounds, more than n = {n}")
    return n


def _checked_alternatives(alternatives: Any, bandit: LinearBandit) -> list[tuple[int, Array]]:
    result = []
    for entry in () if alternatives is None else alternatives:
        arm, theta = getattr(entry, "arm", None), getattr(entry, "theta", None)
        if arm is None or theta is None:
            raise InvalidOption(f"alternatives: expected objects with arm and theta, got a {type(entry).__name__}")
        index = whole_number("alternatives: arm", arm)
        if index >= bandit.n_arms:
            raise InvalidOption(f"alternatives: expected arms from 0 to {bandit.n_arms - 1}, got {index}")
        result.append((index, vector("alternatives: theta", theta, InvalidOption, length=bandit.dim)))
    return result


def half_axes(matrix: Array, picture: Picture) -> tuple[Array, Array]:
    """Half-lengths and directions (columns) of {v: vᵀ·matrix·v <= level}; those without an end reach far out of the picture."""
    values, vectors = np.linalg.eigh(matrix)
    ends = values > (RANK * values[-1] if picture.unbounded else 0.0)
    half = np.sqrt(picture.level / np.where(ends, values, 1.0))
    far = 1e3 * max(picture.scale, float(half[ends].max(initial=0.0)))
    return np.where(ends, half, far), vectors


def ellipse(matrix: Array, picture: Picture, steps: int = 241) -> Array:
    """The boundary of {v: vᵀ·matrix·v <= level} in a plane."""
    half, vectors = half_axes(matrix, picture)
    turn = np.linspace(0.0, 2 * np.pi, steps)
    result: Array = (np.column_stack([np.cos(turn), np.sin(turn)]) * half) @ vectors.T
    return result


def set_points(picture: Picture, plane: Slice) -> Array:
    """The set that optimal play cannot rule out, relative to θ: an ellipse, a segment or a point of the plane."""
    free = picture.quotient
    if free.shape[1] == 0:
        return np.zeros((2, 2))
    if free.shape[1] == 1:
        half, _ = half_axes(free.T @ picture.information @ free, picture)
        far = half if not picture.unbounded else np.array([1e3 * picture.scale])
        return np.linspace(-far, far, 81) * (free[:, 0] @ plane.basis)
    return ellipse(plane.basis.T @ picture.information @ plane.basis, picture)


def off_plane(plane: Slice, theta: Array, other: Array) -> bool:
    """Whether a parameter lies outside the plane, by more than rounding."""
    step = other - theta
    away = step - plane.basis @ (plane.basis.T @ step)
    return bool(np.linalg.norm(away) > 1e-6 * np.linalg.norm(step))


def clip(polygon: Array, normal: Array, offset: float) -> Array:
    """The part of a convex polygon in {p: ⟨normal, p⟩ <= offset}."""
    kept: list[Array] = []
    heights = polygon @ normal - offset
    for i in range(len(polygon)):
        j = (i + 1) % len(polygon)
        if heights[i] <= 0:
            kept.append(polygon[i])
        if heights[i] * heights[j] < 0:
            kept.append(polygon[i] + heights[i] / (heights[i] - heights[j]) * (polygon[j] - polygon[i]))
    return np.array(kept).reshape(-1, 2)
