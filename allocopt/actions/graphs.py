"""Action sets made from networkx graphs: paths, spanning trees, matchings, smooth signals; and subsets.

`path_arms` and the functions like it list the arms, and refuse before they list too many; the oracles (`shortest_path_oracle` …) stand
for arms that cannot be listed. Edge weights are costs, as in networkx, and a bandit maximises: θ is minus the weights, so
the best arm is the shortest path. Columns are the edges in the order of ``G.edges``, those on no arm (self-loops) included.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Any

import numpy as np

from allocopt.actions.labels import label_texts
from allocopt.actions.listing import largest_matchings, paths_in_order, simple_paths, spanning_trees
from allocopt.actions.oracles import (
    Incidence,
    assignment_oracle,
    edge_list,
    list_oracle,
    shortest_path_oracle,
    spanning_tree_oracle,
)
from allocopt.base.errors import InvalidInstance, SlowWarning, warn_caller
from allocopt.base.machine import check_memory, duration_text
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, ArrayLike, frozen, in_range, vector, whole_number
from allocopt.model.bandit import LinearBandit
from allocopt.model.program import AllocationProgram
from allocopt.model.programs import semi_bandit
from allocopt.model.tables import Table, Tabular, drawn

__all__ = ["GraphArms", "assignment_oracle", "list_oracle", "matching_arms", "path_arms", "shortest_path_oracle"]
__all__ += ["spanning_tree_arms", "spanning_tree_oracle", "spectral_arms", "subset_arms"]

LIMIT = 100_000
PATIENCE = 60.0
"""Seconds that listing arms up to the limit may take."""
_LONG = 5.0  # seconds of listing that are announced
_LOOK_AFTER = 1.0  # seconds of listing after which the time of all of it is estimated
_MOST_ENTRIES = 10**9  # of the matrix of arms: 8 GB


@dataclass(frozen=True, eq=False)
class GraphArms(Tabular):
    """Arms with names.

    Attributes
    ----------
    arms : array, shape (k, d)
        One row per arm.
    labels : tuple
        The path, tree, matching (each a tuple of edges), node or subset behind each row.
    edges : tuple
        What each column stands for: an edge, an eigenvalue of the Laplacian, an item.
    theta : array, shape (d,), or None
        Minus the edge weights, or None if the graph has none.
    source : node or None
        Where the paths begin; None for arms that are no paths.
    """

    arms: Array
    labels: tuple[Any, ...]
    edges: tuple[Any, ...]
    theta: Array | None
    source: Hashable = None

    def bandit(self, theta: ArrayLike | None = None, noise_variance: ArrayLike = 1.0) -> LinearBandit:
        """The linear bandit of these arms, with ``theta`` or, by default, minus the edge weights."""
        chosen = self.theta if theta is None else theta
        if chosen is None:
            raise InvalidInstance("theta: the arms come without edge weights, so θ must be given")
        return LinearBandit(self.arms, chosen, noise_variance, labels=label_texts(self.labels, self.source))

    def plot(self, solution: Any = None, **options: Any) -> Any:
        """`allocopt.plots.edge_allocation`: the graph with what a solution's exploration uses (by default that of the regret
        program with the graph's own weights). Returns a matplotlib Figure."""
        return drawn("edge_allocation", self, solution, **options)

    def semi_bandit(self, theta: ArrayLike | None = None, noise_variance: float = 1.0) -> AllocationProgram:
        """`allocopt.programs.semi_bandit` of these arms: playing one shows the reward of each of its edges.

        Examples
        --------
        >>> import networkx as nx, allocopt as ao
        >>> paths = path_arms(nx.DiGraph([("s", "a"), ("a", "t"), ("s", "t")]), "s", "t")
        >>> round(ao.solve(paths.semi_bandit([-1, -3, -1])).value, 6)
        2.0
        """
        chosen = self.bandit(theta).theta
        return semi_bandit(self.arms, chosen, noise_variance, labels=label_texts(self.labels, self.source))

    def _table(self) -> Table:
        columns: dict[str, Any] = {
            "arm": np.arange(len(self.arms)),
            "label": list(label_texts(self.labels, self.source)),
        }
        if self.theta is not None:
            columns["mean"] = self.arms @ self.theta
        facts = {
            "arms": len(self.arms),
            "columns": self.arms.shape[1],
            "weights": "yes" if self.theta is not None else "no",
        }
        return Table("Arms of a graph", facts, columns)

    def __repr__(self) -> str:
        weighted = "" if self.theta is not None else ", without weights"
        return f"GraphArms(n_arms={len(self.arms)}, dim={len(self.edges)}{weighted})"


@spelled
def path_arms(
    G: Any, source: Hashable, target: Hashable, *, k_best: int | None = None, weight: str = "weight", limit: int = LIMIT
) -> GraphArms:
    """The simple paths from ``source`` to ``target``, all of them or the ``k_best`` shortest, as 0/1 vectors of edges.

    Directed, undirected and multigraphs. Lengths are the edges' ``weight``, or 1 each if no edge has one. More than
    ``limit`` paths raise `InvalidInstance`: at once in acyclic graphs, where they are counted first, else when the
    enumeration, which has no dead ends, reaches the limit. With negative cycles the shortest paths cannot be found.

    Examples
    --------
    >>> import networkx as nx
    >>> a = path_arms(nx.DiGraph([("s", "a"), ("a", "t"), ("s", "t")]), "s", "t")
    >>> a.arms.tolist(), a.labels[1]
    ([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]], (('s', 't'),))
    >>> a.edges
    (('s', 'a'), ('s', 't'), ('a', 't'))
    """
    paths, most = shortest_path_oracle(G, source, target), whole_number("limit", limit, least=1)
    theta = _theta(G, paths.edges, weight)
    if k_best is not None:
        wanted = whole_number("k_best", k_best, least=1)
        if wanted > most:
            raise InvalidInstance(f"k_best: {wanted} paths are more than limit = {most}")
        lengths = [1.0] * paths.dim if theta is None else (-theta).tolist()
        return replace(
            _incidence(paths, islice(paths_in_order(paths, lengths), wanted), theta, wanted, "paths", "k_best"),
            source=source,
        )
    if paths.acyclic:
        if paths.count() > most:
            raise _too_many(f"{_count_text(paths.count())} paths", most)
        most = paths.count()
    return replace(_incidence(paths, simple_paths(paths), theta, most, "paths"), source=source)


@spelled
def spanning_tree_arms(G: Any, *, weight: str = "weight", limit: int = LIMIT) -> GraphArms:
    """The spanning trees of a connected undirected graph; counted by Kirchhoff's theorem before any is listed.

    Examples
    --------
    >>> import networkx as nx
    >>> spanning_tree_arms(nx.cycle_graph(3)).arms.tolist()
    [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    """
    trees, most = spanning_tree_oracle(G), whole_number("limit", limit, least=1)
    laplacian = _laplacian(trees.n_nodes, trees.ends, np.ones(trees.dim))
    logarithm = float(np.linalg.slogdet(laplacian[1:, 1:])[1])
    if logarithm > math.log(most + 0.5) + 1e-6:
        magnitude = logarithm / math.log(10)
        count = f"{10**magnitude:.4g}" if magnitude < 15 else f"10^{magnitude:.0f}"
        raise _too_many(f"about {count} spanning trees", most)
    return _incidence(trees, spanning_trees(trees), _theta(G, trees.edges, weight), most, "spanning trees")


@spelled
def matching_arms(G: Any, *, weight: str = "weight", limit: int = LIMIT) -> GraphArms:
    """The matchings with the most edges (the perfect ones, where there are any) of a bipartite graph.

    Examples
    --------
    >>> import networkx as nx
    >>> matching_arms(nx.path_graph(3)).labels
    (((0, 1),), ((1, 2),))
    """
    matchings, most = assignment_oracle(G), whole_number("limit", limit, least=1)
    if matchings.at_most() < most:
        most = math.ceil(matchings.at_most())
    return _incidence(matchings, largest_matchings(matchings), _theta(G, matchings.edges, weight), most, "matchings")


@spelled
def spectral_arms(G: Any, n_vectors: int, *, weight: str = "weight") -> GraphArms:
    """One arm per node: its entries in the ``n_vectors`` smoothest eigenvectors of the Laplacian (spectral bandits).

    ``⟨x, θ⟩`` is then a signal that varies slowly along the edges. Weights (1 if there are none) are conductances. Where
    eigenvalues coincide the vectors are determined up to a rotation, which changes no regret constant if all are taken.

    Examples
    --------
    >>> import networkx as nx
    >>> a = spectral_arms(nx.path_graph(4), 2)
    >>> a.arms.round(3).tolist(), a.labels
    ([[0.5, 0.653], [0.5, 0.271], [0.5, -0.271], [0.5, -0.653]], (0, 1, 2, 3))
    """
    edges, nodes = edge_list(G, "Laplacian eigenvectors"), {node: i for i, node in enumerate(G.nodes)}
    wanted = whole_number("n_vectors", n_vectors, least=1)
    if wanted > len(nodes):
        raise InvalidInstance(f"n_vectors: expected at most {len(nodes)} (the number of nodes), got {wanted}")
    theta = _theta(G, edges, weight)
    conductances = np.ones(len(edges)) if theta is None else -theta
    ends = [(nodes[e[0]], nodes[e[1]]) for e in edges]
    if (conductances < 0).any():
        raise InvalidInstance(
            f"G: conductances must not be negative, but {weight!r} is {conductances.min():g} somewhere"
        )
    values, vectors = np.linalg.eigh(_laplacian(len(nodes), ends, conductances))
    vectors = vectors[:, :wanted]
    # the sign is free: make the first large entry positive, so that results repeat
    first = np.argmax(np.abs(vectors) > 0.5 * np.abs(vectors).max(axis=0), axis=0)
    vectors = vectors * np.sign(vectors[first, np.arange(wanted)])
    return GraphArms(frozen(vectors), tuple(G.nodes), tuple(values[:wanted].tolist()), None)


@spelled
def subset_arms(n: int, m: int, *, theta: ArrayLike | None = None, limit: int = LIMIT) -> GraphArms:
    """The subsets of m out of n items as 0/1 vectors.

    Examples
    --------
    >>> subset_arms(3, 2).labels
    ((0, 1), (0, 2), (1, 2))
    """
    size, chosen, most = (whole_number(name, v, least=1) for name, v in (("n", n), ("m", m), ("limit", limit)))
    if chosen > size:
        raise InvalidInstance(f"m: expected at most n = {size}, got {chosen}")
    magnitude = (math.lgamma(size + 1) - math.lgamma(chosen + 1) - math.lgamma(size - chosen + 1)) / math.log(10)
    if magnitude > 15:  # the number itself could take hours
        raise _too_many(f"about 10^{magnitude:.0f} subsets", most)
    if math.comb(size, chosen) > most:
        raise _too_many(f"{math.comb(size, chosen)} subsets", most)
    if math.comb(size, chosen) * size > _MOST_ENTRIES:
        raise InvalidInstance(f"n: {math.comb(size, chosen)} arms of {size} entries each are too much for memory")
    labels = tuple(combinations(range(size), chosen))
    arms = np.zeros((len(labels), size))
    arms[np.arange(len(labels))[:, None], np.array(labels)] = 1.0
    values = None if theta is None else vector("theta", theta, InvalidInstance, length=size)
    return GraphArms(frozen(arms), labels, tuple(range(size)), values)


def _count_text(count: int) -> str:
    """A number in full, or its order of magnitude where that would fill the screen."""
    return str(count) if count < 10**15 else f"about 10^{int(count.bit_length() * math.log10(2))}"


def _too_many(what: str, limit: int) -> InvalidInstance:
    return InvalidInstance(
        f"limit: there are {what}, more than limit = {limit}; raise the limit, ask for the k best, or use an oracle"
    )


def _theta(G: Any, edges: Sequence[tuple[Any, ...]], weight: str) -> Array | None:
    """Minus the edge weights; None if no edge has one."""
    data = [G.edges[edge].get(weight) for edge in edges]
    if all(value is None for value in data):
        return None
    missing = [edge for edge, value in zip(edges, data, strict=True) if value is None]
    if missing:
        raise InvalidInstance(f"G: some edges have a {weight!r}, but edge {missing[0]!r} has none")
    values = vector(f"G: the edges' {weight!r}", data, InvalidInstance)
    in_range(f"G: the edges' {weight!r}", values, InvalidInstance)
    return frozen(-values)


def _incidence(
    family: Incidence, sets: Iterable[list[int]], theta: Array | None, limit: int, what: str, argument: str = "limit"
) -> GraphArms:
    listed = list(_patiently(islice(sets, limit + 1), limit, what, argument))
    if len(listed) > limit:
        raise _too_many(f"more than {limit} {what}", limit)
    check_memory(3 * 8 * len(listed) * family.dim, f"G: {len(listed)} arms of {family.dim} entries", InvalidInstance)
    rows = [family.arm(columns) for columns in listed]
    return GraphArms(frozen(np.array([x for x, _ in rows])), tuple(label for _, label in rows), family.edges, theta)


def _patiently(sets: Iterable[list[int]], limit: int, what: str, argument: str) -> Iterator[list[int]]:
    """The same; after a second, the time for as many as the limit allows is said, or refused if it is more than `PATIENCE`."""
    started, judged = time.perf_counter(), False
    for count, found in enumerate(sets, 1):
        yield found
        seconds = time.perf_counter() - started
        if judged or seconds < _LOOK_AFTER:
            continue
        judged = True
        whole = seconds * limit / count
        speed = f"about {duration_text(whole)} ({count / seconds:.3g} a second)"
        if whole > PATIENCE:
            able = max(1, int(PATIENCE * count / seconds))
            instead = (
                f"set a limit of at most {able}, ask for the k best," if argument == "limit" else f"ask for {able}"
            )
            raise InvalidInstance(
                f"{argument}: listing up to {limit} {what} of this graph would take {speed}; {instead} or use an oracle"
            )
        if whole > _LONG:
            warn_caller(f"{argument}: listing up to {limit} {what} of this graph takes up to {speed}", SlowWarning)


def _laplacian(n: int, ends: Sequence[tuple[int, int]], weights: Array) -> Array:
    """Σ w (e_u − e_v)(e_u − e_v)ᵀ over the edges, parallel ones added up; self-loops cancel."""
    u, v = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    differences = np.eye(n)[u] - np.eye(n)[v]
    result: Array = differences.T @ (weights[:, None] * differences)
    return result


def __dir__() -> list[str]:
    return sorted(__all__)
