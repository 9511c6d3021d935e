"""ContextualBandit: several sets of arms with one θ, of which each round offers one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from allocopt.base.errors import InvalidInstance
from allocopt.base.spelling import spelled_constructor
from allocopt.base.tolerances import TIE
from allocopt.base.validation import Array, ArrayLike, IntArray, frozen, index_array, vector
from allocopt.linear.assumptions import Assumption
from allocopt.linear.span import spanning_coordinates
from allocopt.model.arms.names import by_column_names, checked_labels
from allocopt.model.bandit import LinearBandit, arm_matrix, checked_noise, noise_text
from allocopt.model.tables import Table, Tabular

__all__ = ["ContextualBandit", "checked_contexts"]


@spelled_constructor
@dataclass(frozen=True, eq=False)
class ContextualBandit(Tabular):
    r"""A linear bandit whose arms depend on a context: in context m, playing x in A_m gives ⟨x, θ⟩ plus Gaussian noise.

    Pairs (context, arm) are numbered through, context after context; "arm" below means such a pair. Regret is counted
    within the context: Δ^m_x = max_{z in A_m} ⟨z, θ⟩ − ⟨x, θ⟩.

    Parameters
    ----------
    contexts : sequence of array_like, shapes (k_m, d)
        The arms of each context; at least one context, none without arms.
    theta : array_like, shape (d,)
        The parameter, the same in all contexts.
    weights : array_like, shape (number of contexts,), optional
        How often each context comes, as positive numbers of any common scale; equally often by default. The asymptotic
        program does not depend on them.
    noise_variance : float or array_like, shape (number of pairs,)
        σ² of the reward noise, one number or one per pair (context, arm).
    tie_tolerance : float
        As for `LinearBandit`, within each context.
    optimal_arms : sequence of int, optional
        Take exactly these pairs as optimal (used when a proof is re-checked).
    labels : sequence of str, optional
        A name for each pair; "context 2, arm 0" and so on by default.

    Attributes
    ----------
    arms : array, shape (number of pairs, d)
        All pairs, one row each.
    gaps : array, shape (number of pairs,)
        Δ of every pair within its context; exactly 0 for the optimal ones.
    assumptions : tuple of Assumption
        The pairs that are optimal in their context only up to the tolerance for ties.

    Examples
    --------
    >>> b = ContextualBandit([[[1, 0], [0, 1]], [[0.5, 0], [1, 1], [0, 0.2]]], [1, 0])
    >>> b.n_contexts, b.n_arms, b.optimal_arms
    (2, 5, array([0, 3]))
    >>> b.gaps
    array([0. , 1. , 0.5, 0. , 1. ])
    """

    contexts: tuple[Array, ...]
    theta: Array
    weights: Array = field(default=cast(Array, None))  # filled in below
    noise_variance: float | Array = 1.0
    tie_tolerance: float = TIE
    optimal_arms: IntArray = field(default=cast(IntArray, None))
    labels: tuple[str, ...] = ()
    arms: Array = field(init=False, repr=False)
    gaps: Array = field(init=False, repr=False)
    assumptions: tuple[Assumption, ...] = field(init=False, repr=False, default=())

    if TYPE_CHECKING:  # what may be passed is more than what is kept

        def __init__(
            self,
            contexts: Sequence[ArrayLike],
            theta: ArrayLike,
            weights: ArrayLike | None = None,
            noise_variance: ArrayLike = 1.0,
            tie_tolerance: float = TIE,
            optimal_arms: ArrayLike | None = None,
            labels: Sequence[str] = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        contexts = checked_contexts(self.contexts)
        dim = contexts[0].shape[1]
        theta = vector("theta", _by_names(self.contexts, self.theta), InvalidInstance)
        if len(theta) != dim:
            raise InvalidInstance(f"theta: expected {dim} entries (the arms have {dim} columns), got {len(theta)}")
        starts = np.cumsum([0, *(len(rows) for rows in contexts)])
        pairs = int(starts[-1])
        given = None
        if self.optimal_arms is not None:
            given = index_array("optimal_arms", self.optimal_arms, pairs, InvalidInstance)
        games = [_game(m, rows, theta, self.tie_tolerance, given, int(starts[m])) for m, rows in enumerate(contexts)]
        noise = self.noise_variance
        if isinstance(noise, Sequence) and len(noise) == len(contexts) and all(np.ndim(x) == 1 for x in noise):
            noise = np.concatenate([np.asarray(x) for x in noise])
        named = [f"context {m}, arm {i}" for m, rows in enumerate(contexts) for i in range(len(rows))]
        optimal = np.concatenate([game.optimal_arms + start for game, start in zip(games, starts, strict=False)])
        for name, value in (
            ("contexts", contexts),
            ("theta", games[0].theta),
            ("weights", _checked_weights(self.weights, len(contexts))),
            ("noise_variance", checked_noise(noise, pairs, InvalidInstance)),
            ("tie_tolerance", games[0].tie_tolerance),
            ("optimal_arms", optimal),
            ("labels", checked_labels(named if _unnamed(self.labels) else self.labels, pairs)),
            ("arms", frozen(np.concatenate(contexts))),
            ("gaps", frozen(np.concatenate([game.gaps for game in games]))),
            ("assumptions", tuple(_renumbered(games, starts))),
        ):
            object.__setattr__(self, name, value)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of arms of each context."""
        return tuple(len(rows) for rows in self.contexts)

    @property
    def n_contexts(self) -> int:
        """The number of contexts."""
        return len(self.contexts)

    @property
    def n_arms(self) -> int:
        """The number of pairs (context, arm)."""
        return len(self.arms)

    @property
    def dim(self) -> int:
        """d, the number of columns."""
        return int(self.arms.shape[1])

    @property
    def arms_in_memory(self) -> Array:
        """All pairs, one row each."""
        return self.arms

    @cached_property
    def means(self) -> Array:
        """⟨x, θ⟩ of every pair."""
        return frozen(self.arms @ self.theta)

    @cached_property
    def rank(self) -> int:
        """Dimension of the span of all arms."""
        return len(spanning_coordinates(self.arms))

    @property
    def variances(self) -> Array | None:
        """σ² of every pair, where they differ; None where ``noise_variance`` is one number."""
        return None if isinstance(self.noise_variance, float) else self.noise_variance

    @property
    def variance_of_each(self) -> Array:
        """σ² of every pair, differ they or not."""
        return np.broadcast_to(self.noise_variance, self.n_arms)

    def pair(self, context: int, arm: int) -> int:
        """The number of a pair (context, arm).

        Examples
        --------
        >>> ContextualBandit([[[1, 0], [0, 1]], [[0.5, 0]]], [1, 0]).pair(1, 0)
        2
        """
        return int(sum(self.sizes[:context]) + arm)

    def _table(self) -> Table:
        """One row per pair (context, arm), the best ones first."""
        context = np.repeat(np.arange(self.n_contexts), self.sizes)
        arm = np.concatenate([np.arange(size) for size in self.sizes])
        columns: dict[str, Any] = {
            "pair": np.arange(self.n_arms),
            "context": context,
            "arm": arm,
            "label": list(self.labels),
        }
        columns |= {"mean": self.means, "gap": self.gaps}
        if self.variances is not None:
            columns["σ²"] = self.variances
        facts = {"contexts": self.n_contexts, "pairs": f"{self.n_arms:,} in {self.dim} dimensions"}
        facts["noise variance"] = noise_text(self.noise_variance)
        return Table("Contextual linear bandit", facts, columns, np.argsort(self.gaps, kind="stable")[:100].tolist())

    def __repr__(self) -> str:
        return (
            f"ContextualBandit(n_contexts={self.n_contexts}, n_arms={self.n_arms}, dim={self.dim}, "
            f"noise_variance={noise_text(self.noise_variance)})"
        )


def _unnamed(labels: Any) -> bool:
    return labels is None or (isinstance(labels, list | tuple) and not labels)


def checked_contexts(contexts: Any) -> tuple[Array, ...]:
    """The arms of each context, all with equally many coordinates, or an error that says what is wrong."""
    found = tuple(_checked_context(m, rows) for m, rows in enumerate(_listed(contexts)))
    widths = sorted({rows.shape[1] for rows in found})
    if len(widths) > 1:
        raise InvalidInstance(
            f"contexts: expected arms with equally many coordinates, got {widths[0]} and {widths[-1]}"
        )
    return found


def _listed(contexts: Any) -> list[Any]:
    """The contexts one by one."""
    if isinstance(contexts, str | bytes | dict) or not hasattr(contexts, "__len__"):
        raise InvalidInstance(f"contexts: expected a list of arrays of arms, got a {type(contexts).__name__}")
    if not len(contexts):
        raise InvalidInstance("contexts: expected at least one context, got none")
    return list(contexts)


def _checked_context(number: int, rows: Any) -> Array:
    """The arms of one context, or an error that says which it is."""
    if hasattr(rows, "__len__") and not len(rows):
        raise InvalidInstance(f"contexts: expected arms in every context, but context {number} has none")
    try:
        return arm_matrix(rows)
    except InvalidInstance as error:
        raise InvalidInstance(f"contexts: context {number}: {error}") from None


def _game(number: int, rows: Array, theta: Any, ties: float, given: IntArray | None, start: int) -> LinearBandit:
    """One context as a bandit of its own: its gaps and its optimal arms."""
    own = None if given is None else given[(given >= start) & (given < start + len(rows))] - start
    try:
        return LinearBandit(rows, theta, 1.0, ties, own)
    except InvalidInstance as error:
        raise InvalidInstance(f"context {number}: {error}") from None


def _checked_weights(weights: Any, n_contexts: int) -> Array:
    """How often each context comes."""
    if weights is None:
        return frozen(np.ones(n_contexts))
    each = vector("weights", weights, InvalidInstance, length=n_contexts)
    if not (each > 0).all():
        i = int(np.flatnonzero(~(each > 0))[0])
        raise InvalidInstance(
            f"weights: expected entries > 0, but entry {i} is {float(each[i])!r}; leave that context out"
        )
    return frozen(each)


def _renumbered(games: list[LinearBandit], starts: IntArray) -> list[Assumption]:
    """What the contexts assume, with their arms numbered through."""
    found = []
    for number, (game, start) in enumerate(zip(games, starts.tolist(), strict=False)):
        for a in game.assumptions:
            arms = tuple(i + start for i in a.arms)
            found.append(Assumption(a.kind, arms, a.size, f"context {number}: {a.text}"))
    return found


def _by_names(contexts: Sequence[Any], theta: Any) -> Any:
    """θ in the order of the columns of the contexts' data frames, which must be one."""
    orders = [by_column_names(rows, theta) for rows in contexts]
    if any(order is not orders[0] and list(order) != list(orders[0]) for order in orders):
        raise InvalidInstance("contexts: expected data frames whose columns are in the same order, but they differ")
    return orders[0]
