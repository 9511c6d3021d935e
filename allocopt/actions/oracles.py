"""Linear optimisation over sets of arms too large to list: paths, spanning trees, matchings.

An oracle has ``dim`` and returns, for a direction, an arm that *minimises* ⟨x, direction⟩, with its label. To maximise,
negate the direction. Graphs are networkx graphs; their columns are the edges in the order of ``G.edges``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np

from allocopt.base.errors import InvalidInstance, MethodUnavailable
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, matrix, vector

__all__ = ["Oracle", "assignment_oracle", "list_oracle", "shortest_path_oracle", "spanning_tree_oracle"]

Edge = tuple[Any, ...]
Arc = tuple[int, int, int]  # tail, head, column

_CYCLE_ROUNDING = 1e-12
"""Shortening a path by less than this share of the weights is rounding: a cycle of length zero must not look negative."""

_LARGEST_ENTRY = 1e150

_NEGATIVE = (
    "direction: the graph has a cycle of negative length under it, where shortest simple paths are NP-hard; "
    "use an acyclic graph, or list the paths with path_arms"
)


@runtime_checkable
class Oracle(Protocol):
    """Anything with ``dim`` that maps a direction to (arm minimising ⟨arm, direction⟩, label)."""

    @property
    def dim(self) -> int: ...

    def __call__(self, direction: Any, /) -> tuple[Array, Any]:
        """An arm that minimises ⟨x, direction⟩, and what it is called."""


def _direction(direction: Any, dim: int) -> Array:
    """A direction whose sums over arms stay inside the range of doubles."""
    checked = vector("direction", direction, InvalidInstance, length=dim)
    if np.abs(checked).max(initial=0.0) > _LARGEST_ENTRY:
        raise InvalidInstance(f"direction: expected entries up to {_LARGEST_ENTRY:g}, got {np.abs(checked).max():g}")
    return checked


def edge_list(G: Any, undirected: str = "") -> tuple[Edge, ...]:
    """The edges in column order: (u, v), or (u, v, key) in a multigraph; ``undirected`` names what needs such a graph."""
    for name in ("nodes", "edges", "is_directed", "is_multigraph"):
        if not hasattr(G, name):
            raise InvalidInstance(f"G: expected a networkx graph, got a {type(G).__name__}")
    if undirected and G.is_directed():
        raise InvalidInstance(f"G: {undirected} need an undirected graph, got a directed one (see G.to_undirected())")
    return tuple(G.edges(keys=True) if G.is_multigraph() else G.edges())


@dataclass(frozen=True, eq=False)
class Incidence:
    """0/1 arms, one column per edge, none of which contains another."""

    edges: tuple[Edge, ...]

    @property
    def dim(self) -> int:
        """The number of edges of the graph."""
        return len(self.edges)

    def arm(self, columns: Iterable[int]) -> tuple[Array, tuple[Edge, ...]]:
        """The 0/1 vector of a set of edges, and the edges in the order given."""
        chosen, x = list(columns), np.zeros(self.dim)
        x[chosen] = 1.0
        return x, tuple(self.edges[i] for i in chosen)


@dataclass(frozen=True, eq=False)
class Paths(Incidence):
    """Oracle of the simple paths from source to target; made by `shortest_path_oracle`."""

    source: int
    target: int
    n_nodes: int
    arcs: tuple[Arc, ...] = field(repr=False)
    """The arcs that can lie on a path, tails in topological order where the graph is acyclic."""
    acyclic: bool

    def __call__(self, direction: Any, /) -> tuple[Array, tuple[Edge, ...]]:
        """The shortest path under these edge lengths, as its 0/1 vector and its edges in order."""
        lengths = _direction(direction, self.dim)
        found = self.shortest(self.arcs, lengths.tolist(), self.source)
        assert found is not None
        return self.arm(arc[2] for arc in found)

    def count(self) -> int:
        """The number of paths of an acyclic graph, without listing any."""
        ways = [0] * self.n_nodes
        ways[self.source] = 1
        for tail, head, _ in self.arcs:
            ways[head] += ways[tail]
        return ways[self.target]

    def shortest(self, arcs: Sequence[Arc], lengths: Sequence[float], start: int) -> tuple[Arc, ...] | None:
        """The shortest path from ``start`` to the target along ``arcs``, or None; one pass where there is no cycle."""
        distance = [math.inf] * self.n_nodes
        distance[start] = 0.0
        last: list[Arc | None] = [None] * self.n_nodes
        # without negative lengths no cycle is negative, and no rounding has to be tolerated
        tolerant = not self.acyclic and min(lengths, default=0.0) < 0
        margin = _CYCLE_ROUNDING * max(map(abs, lengths), default=0.0) if tolerant else 0.0
        for sweep in range(1 if self.acyclic else self.n_nodes + 1):
            if sweep == self.n_nodes:
                raise MethodUnavailable(_NEGATIVE)
            changed = False
            for arc in arcs:
                through = distance[arc[0]] + lengths[arc[2]]
                if through < distance[arc[1]] - margin:
                    distance[arc[1]], last[arc[1]], changed = through, arc, True
            if not changed:
                break
        path: list[Arc] = []
        while (node := path[-1][0] if path else self.target) != start:
            arc_in = last[node]
            if arc_in is None:
                return None
            path.append(arc_in)
        return tuple(reversed(path))


@spelled
def shortest_path_oracle(G: Any, source: Hashable, target: Hashable) -> Paths:
    """Oracle of the simple paths from ``source`` to ``target``: one column per edge, in the order of ``G.edges``.

    Exact for every direction where the part of G between source and target has no directed cycle. Otherwise (undirected
    graphs too) exact for directions under which no cycle is negative, and `MethodUnavailable` for the others, since the
    shortest simple path is then NP-hard. Self-loops lie on no simple path; parallel edges are arms of their own.

    Examples
    --------
    >>> import networkx as nx
    >>> oracle = shortest_path_oracle(nx.DiGraph([("s", "a"), ("a", "t"), ("s", "t")]), "s", "t")
    >>> oracle([1, 2, -1])
    (array([1., 0., 1.]), (('s', 'a'), ('a', 't')))
    """
    edges = edge_list(G)
    nodes = {node: i for i, node in enumerate(G.nodes)}
    for name, node in (("source", source), ("target", target)):
        if node not in G:
            raise InvalidInstance(f"{name}: {node!r} is not a node of the graph")
    if source == target:
        raise InvalidInstance(f"target: {target!r} is the source too, and the only simple path has no edges")
    s, t = nodes[source], nodes[target]
    arcs = [(nodes[e[0]], nodes[e[1]], i) for i, e in enumerate(edges) if e[0] != e[1]]
    if not G.is_directed():
        arcs += [(head, tail, i) for tail, head, i in arcs]
    arcs = [arc for arc in arcs if arc[1] != s and arc[0] != t]  # a simple path neither returns nor goes on
    near = reachable(s, [(a[0], a[1]) for a in arcs])
    far = reachable(t, [(a[1], a[0]) for a in arcs])
    arcs = [arc for arc in arcs if arc[0] in near and arc[1] in far]
    if t not in near:
        raise InvalidInstance(f"target: there is no path from {source!r} to {target!r}")
    before: dict[int, set[int]] = {}
    for tail, head, _ in arcs:
        before.setdefault(head, set()).add(tail)
    try:
        rank = {node: i for i, node in enumerate(TopologicalSorter(before).static_order())}
    except CycleError:
        return Paths(edges, s, t, len(nodes), tuple(arcs), False)
    return Paths(edges, s, t, len(nodes), tuple(sorted(arcs, key=lambda arc: rank[arc[0]])), True)


def reachable(start: int, pairs: Sequence[tuple[int, int]]) -> set[int]:
    """Nodes that can be reached from ``start`` along (tail, head) pairs."""
    after: dict[int, list[int]] = {}
    for tail, head in pairs:
        after.setdefault(tail, []).append(head)
    seen, stack = {start}, [start]
    while stack:
        for head in after.get(stack.pop(), ()):
            if head not in seen:
                seen.add(head)
                stack.append(head)
    return seen


def find(parent: list[int], node: int) -> int:
    """Root of the component of ``node`` (union-find with path halving)."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@dataclass(frozen=True, eq=False)
class Trees(Incidence):
    """Oracle of the spanning trees; made by `spanning_tree_oracle`."""

    ends: tuple[tuple[int, int], ...] = field(repr=False)
    n_nodes: int

    def __call__(self, direction: Any, /) -> tuple[Array, tuple[Edge, ...]]:
        """A minimum spanning tree (Kruskal), exact for every direction."""
        weights = _direction(direction, self.dim)
        parent, tree = list(range(self.n_nodes)), []
        for i in np.argsort(weights, kind="stable").tolist():
            a, b = find(parent, self.ends[i][0]), find(parent, self.ends[i][1])
            if a != b:
                parent[a] = b
                tree.append(i)
        return self.arm(sorted(tree))


@spelled
def spanning_tree_oracle(G: Any) -> Trees:
    """Oracle of the spanning trees of a connected undirected graph; exact for every direction.

    Examples
    --------
    >>> import networkx as nx
    >>> spanning_tree_oracle(nx.cycle_graph(3))([1, 5, 2])
    (array([1., 0., 1.]), ((0, 1), (1, 2)))
    """
    edges = edge_list(G, "spanning trees")
    nodes = {node: i for i, node in enumerate(G.nodes)}
    if len(nodes) < 2:
        raise InvalidInstance(f"G: expected at least two nodes, got {len(nodes)}: the only spanning tree has no edges")
    ends = tuple((nodes[e[0]], nodes[e[1]]) for e in edges)
    oracle = Trees(edges, ends, len(nodes))
    if len(oracle(np.zeros(len(edges)))[1]) < len(nodes) - 1:
        raise InvalidInstance("G: the graph is not connected, so it has no spanning tree")
    return oracle


@dataclass(frozen=True, eq=False)
class Assignments(Incidence):
    """Oracle of the maximum matchings of a bipartite graph; made by `assignment_oracle`."""

    ends: tuple[tuple[int, int], ...] = field(repr=False)
    """Row (left node) and column (right node) of each edge in the cost matrix."""
    shape: tuple[int, int]

    def __call__(self, direction: Any, /) -> tuple[Array, tuple[Edge, ...]]:
        """A cheapest matching among those with the most edges."""
        from scipy.optimize import linear_sum_assignment  # here: it takes a fifth of a second to load

        weights = _direction(direction, self.dim)
        # an absent edge costs more than all others together, so that as few as possible are taken
        absent = 2.0 * float(np.abs(weights).sum()) + 1.0
        costs, which = np.full(self.shape, absent), np.full(self.shape, -1)
        for i, (row, column) in enumerate(self.ends):
            if which[row, column] < 0 or weights[i] < costs[row, column]:  # of parallel edges, the cheapest
                costs[row, column], which[row, column] = weights[i], i
        return self.arm(sorted(int(i) for i in which[linear_sum_assignment(costs)] if i >= 0))

    def at_most(self) -> float:
        """A bound on the number of matchings (Brègman's theorem), which is that number in complete graphs; inf with parallel edges.

        A matching that leaves r rows and c columns out is a perfect one with r more columns and c more rows, in r! c! ways.
        """
        if len(set(self.ends)) < self.dim:
            return math.inf
        size = len(self(np.zeros(self.dim))[1])
        out = [nodes - size for nodes in self.shape]
        degrees = np.bincount([row for row, _ in self.ends], minlength=self.shape[0]) + out[0]
        each = [math.lgamma(n + 1) / n for n in (*degrees.tolist(), *[self.shape[1]] * out[1])]
        logarithm = sum(each) - sum(math.lgamma(n + 1) for n in out)
        return math.exp(min(logarithm, 700.0))  # beyond that it leaves the range of doubles, and no list is that long


@spelled
def assignment_oracle(G: Any) -> Assignments:
    """Oracle of the maximum matchings (perfect ones where there are any) of a bipartite graph; always exact.

    Examples
    --------
    >>> import networkx as nx
    >>> assignment_oracle(nx.Graph([("a", 1), ("a", 2), ("b", 1), ("b", 2)]))([1, 5, 2, 3])
    (array([1., 0., 0., 1.]), (('a', 1), (2, 'b')))
    """
    edges = edge_list(G, "matchings")
    if not edges:
        raise InvalidInstance("G: expected at least one edge, got none: the only matching is empty")
    networkx = import_module("networkx")
    try:
        side = networkx.bipartite.color(G)
    except networkx.NetworkXError:
        raise InvalidInstance("G: matchings need a bipartite graph, and this one has an odd cycle") from None
    place = [{node: i for i, node in enumerate(n for n in G.nodes if side[n] == s)} for s in (0, 1)]
    ends = tuple((place[0][u], place[1][v]) if side[u] == 0 else (place[0][v], place[1][u]) for u, v, *_ in edges)
    return Assignments(edges, ends, (len(place[0]), len(place[1])))


@dataclass(frozen=True, eq=False)
class ListOracle:
    """Oracle of arms in memory; made by `list_oracle`."""

    arms: Array

    @property
    def dim(self) -> int:
        """The number of columns of the arms."""
        return int(self.arms.shape[1])

    def __call__(self, direction: Any, /) -> tuple[Array, int]:
        """The first arm that minimises the inner product, and its row."""
        row = int(np.argmin(self.arms @ _direction(direction, self.dim)))
        return self.arms[row], row


@spelled
def list_oracle(arms: Any) -> ListOracle:
    """Oracle of a list of arms: for comparison with the others, and for tests.

    Examples
    --------
    >>> list_oracle([[1, 0], [0, 1]])([2, 1])
    (array([0., 1.]), 1)
    """
    points = matrix("arms", arms, InvalidInstance)
    if not points.size:
        raise InvalidInstance(f"arms: expected at least one arm and one column, got shape {points.shape}")
    return ListOracle(points)
