"""The sets that a graph makes, one after the other: simple paths, the shortest of them first, spanning trees, matchings.

Each is a list of columns. No branch is followed from which nothing comes: sets keep coming, however few of all combinations they are.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence

import numpy as np

from allocopt.actions.oracles import Arc, Assignments, Paths, Trees, find, reachable

__all__ = ["largest_matchings", "paths_in_order", "simple_paths", "spanning_trees"]


def simple_paths(paths: Paths) -> Iterator[list[int]]:
    """Every simple path once. A step is taken only if the target stays in reach, so paths keep coming."""
    leaving: dict[int, list[Arc]] = {}
    for arc in paths.arcs:
        leaving.setdefault(arc[0], []).append(arc)
    stack: list[tuple[Arc, ...]] = [()]
    while stack:
        path = stack.pop()
        node = path[-1][1] if path else paths.source
        if node == paths.target:
            yield [arc[2] for arc in path]
            continue
        steps = leaving[node]
        if not paths.acyclic:
            passed = {paths.source, *(arc[1] for arc in path)}
            near = reachable(paths.target, [(a[1], a[0]) for a in paths.arcs if not {a[0], a[1]} & passed])
            steps = [arc for arc in steps if arc[1] in near]
        stack.extend((*path, arc) for arc in reversed(steps))


def paths_in_order(paths: Paths, lengths: Sequence[float]) -> Iterator[list[int]]:
    """Simple paths, shortest first (Yen's algorithm with Lawler's partition)."""
    best = paths.shortest(paths.arcs, lengths, paths.source)
    assert best is not None
    # length, tie-breaker, path, how many of its arcs are fixed, arcs barred after those
    heap: list[tuple[float, int, tuple[Arc, ...], int, frozenset[Arc]]] = [(0.0, 0, best, 0, frozenset())]
    made = 1
    while heap:
        _, _, path, fixed, barred = heapq.heappop(heap)
        yield [arc[2] for arc in path]
        for i in range(fixed, len(path)):
            bar = (barred if i == fixed else frozenset[Arc]()) | {path[i]}
            passed = {paths.source, *(arc[1] for arc in path[:i])}
            spur = paths.shortest([a for a in paths.arcs if a[1] not in passed and a not in bar], lengths, path[i][0])
            if spur is not None:
                whole = path[:i] + spur
                heapq.heappush(heap, (math.fsum(lengths[a[2]] for a in whole), made, whole, i, bar))
                made += 1


def spanning_trees(trees: Trees) -> Iterator[list[int]]:
    """Take or leave edge after edge, leaving one only if the rest still connects the graph."""
    stack: list[tuple[int, list[int], list[int]]] = [(0, list(range(trees.n_nodes)), [])]
    while stack:
        i, parent, chosen = stack.pop()
        if len(chosen) == trees.n_nodes - 1:
            yield chosen
            continue
        a, b = (find(parent, end) for end in trees.ends[i])
        rest = [(find(parent, u), find(parent, v)) for u, v in trees.ends[i + 1 :]]
        roots = {find(parent, node) for node in range(trees.n_nodes)}
        if len(reachable(a, rest + [(v, u) for u, v in rest])) == len(roots):
            stack.append((i + 1, parent, chosen))
        if a != b:
            joined = parent.copy()
            joined[a] = b
            stack.append((i + 1, joined, [*chosen, i]))


def largest_matchings(family: Assignments) -> Iterator[list[int]]:
    """Take or leave edge after edge, as long as a matching of the largest size can still come of it."""
    # here: only matchings need it, and every command would start 25 ms later
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    def largest(edges: Sequence[int]) -> int:
        rows, columns = [family.ends[i][0] for i in edges], [family.ends[i][1] for i in edges]
        graph = csr_array((np.ones(len(edges)), (rows, columns)), shape=family.shape)
        return int((maximum_bipartite_matching(graph) >= 0).sum())

    stack: list[tuple[list[int], list[int]]] = [([], list(range(family.dim)))]
    size = largest(range(family.dim))
    while stack:
        chosen, left = stack.pop()
        if len(chosen) == size:
            yield chosen
            continue
        first, rest = left[0], left[1:]
        if len(chosen) + largest(rest) == size:
            stack.append((chosen, rest))
        row, column = family.ends[first]
        apart = [i for i in rest if family.ends[i][0] != row and family.ends[i][1] != column]
        if len(chosen) + 1 + largest(apart) == size:
            stack.append(([*chosen, first], apart))
