"""Families of random instances: on the sphere, in clusters, with near ties, on graphs.

Their c is known where the arms happen to be linearly independent (`independent_value`), and computed everywhere else.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from allocopt.actions.graphs import LIMIT, path_arms, spectral_arms
from allocopt.base.errors import InvalidInstance, MethodUnavailable
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, in_range, positive_number, whole_number
from allocopt.insight.instances.exact import MOST_ENTRIES, check_size, generator
from allocopt.model.bandit import LinearBandit

_MOST_NODES: Final = 2000
"""Of a spectral instance: its Laplacian is diagonalised as a dense matrix, in a few seconds."""


@spelled
def random_unit(dim: int, n_arms: int, seed: int = 0) -> LinearBandit:
    """Gaussian unit-norm arms and a unit θ: uniform on the sphere.

    With seed 0 the values of c for (d, k) are: (5,20) 61.409067, (10,50) 57.313610, (10,200) 282.795995,
    (20,200) 198.493814, (20,500) 517.59653. For k <= d arms, c = Σ 2/Δ.

    Examples
    --------
    >>> random_unit(5, 20)
    LinearBandit(n_arms=20, dim=5, optimal_arms=[18], gap_min=0.0753144, gap_max=1.59669, noise_variance=1)
    """
    d = whole_number("dim", dim, InvalidInstance, least=1)
    k = whole_number("n_arms", n_arms, InvalidInstance, least=2)
    check_size("n_arms", k, d)
    rng = generator(seed)
    arms = _unit_rows(rng.normal(size=(k, d)))
    theta = rng.normal(size=d)
    arms.flags.writeable = False  # so that LinearBandit shares it
    return LinearBandit(arms, theta / np.linalg.norm(theta))


@spelled
def clustered(dim: int, n_arms: int, n_clusters: int = 3, radius: float = 0.1, seed: int = 0) -> LinearBandit:
    """Arms in clusters: random unit centres, Gaussian offsets of length about ``radius``, a random unit θ.

    Arms in the cluster of x* have gaps of the order of the radius, the others gaps of order 1. For k <= d arms, c = Σ 2/Δ.

    Examples
    --------
    >>> clustered(4, 12, n_clusters=3, radius=0.05).n_arms
    12
    """
    d = whole_number("dim", dim, InvalidInstance, least=1)
    k = whole_number("n_arms", n_arms, InvalidInstance, least=2)
    check_size("n_arms", k, d)
    m = whole_number("n_clusters", n_clusters, InvalidInstance, least=1)
    spread = positive_number("radius", radius, InvalidInstance)
    if m > k:
        raise InvalidInstance(f"n_clusters: expected at most n_arms = {k}, got {m}")
    rng = generator(seed)
    centres = _unit_rows(rng.normal(size=(m, d)))
    offsets = rng.normal(size=(k, d)) * (spread / math.sqrt(d))
    theta = rng.normal(size=d)
    arms = centres[np.arange(k) % m] + offsets
    if m == 1 and (arms == arms[0]).all():
        raise InvalidInstance(
            f"radius: expected one that tells the arms of a cluster apart, got {spread!r}: all are equal"
        )
    return LinearBandit(arms, theta / np.linalg.norm(theta))


@spelled
def near_ties(dim: int, n_arms: int, gap: float = 1e-3, ties: int = 2, seed: int = 0) -> LinearBandit:
    """``ties`` arms that lose to x* by ``gap``, exactly, among arms that lose by 1.

    x* = (0, u), the near ties are (gap, u), the others (1, u), each with its own random unit u, and θ = −e_1. For k <= d
    arms, c = Σ 2/Δ.

    Examples
    --------
    >>> near_ties(3, 5, gap=1e-9, ties=2).gaps.tolist()
    [0.0, 1e-09, 1e-09, 1.0, 1.0]
    """
    d = whole_number("dim", dim, InvalidInstance, least=2)
    k = whole_number("n_arms", n_arms, InvalidInstance, least=2)
    delta = positive_number("gap", gap, InvalidInstance)
    in_range("gap", np.array([delta]), InvalidInstance)
    check_size("n_arms", k, d)
    m = whole_number("ties", ties, InvalidInstance, least=1)
    if m > k - 1:
        raise InvalidInstance(f"ties: expected at most n_arms - 1 = {k - 1}, got {m}")
    if delta >= 1:
        raise InvalidInstance(f"gap: expected a number in (0, 1), smaller than the ordinary gap, got {delta!r}")
    first = np.where(np.arange(k) <= m, delta, 1.0)
    first[0] = 0.0
    return LinearBandit(
        np.column_stack([first, _unit_rows(generator(seed).normal(size=(k, d - 1)))]),
        -np.eye(d)[0],
        tie_tolerance=0.0,  # the gaps are exact, however small
    )


@spelled
def spectral(n_nodes: int, n_vectors: int, graph: str = "path", seed: int = 0) -> LinearBandit:
    """A spectral bandit: the arms are the nodes of a graph, the means a smooth random signal on it.

    Each node is its row of the ``n_vectors`` smoothest eigenvectors of the Laplacian (`allocopt.graphs.spectral_arms`);
    θ_j is a Gaussian signal's component along the j-th one, divided by 1 + its eigenvalue. ``graph`` is "path", "cycle",
    "grid" (square) or "small-world" (Watts–Strogatz). With all n vectors the arms are orthonormal and c = Σ 2/Δ.

    Examples
    --------
    >>> spectral(16, 4, graph="grid").dim
    4
    """
    n = whole_number("n_nodes", n_nodes, InvalidInstance, least=2)
    wanted = whole_number("n_vectors", n_vectors, InvalidInstance, least=2)  # on the first one, all nodes are equal
    if n > _MOST_NODES:
        raise InvalidInstance(f"n_nodes: expected at most {_MOST_NODES}, got {n}")
    if wanted > n:
        raise InvalidInstance(f"n_vectors: expected at most n_nodes = {n}, got {wanted}")
    rng = generator(seed)
    found = spectral_arms(_graph(graph, n, seed), n)
    eigenvalues: Array = np.array(found.edges, dtype=np.float64)
    if wanted < n and eigenvalues[wanted] - eigenvalues[wanted - 1] < 1e-9 * eigenvalues[-1]:
        # the vectors of a repeated eigenvalue are determined only together: half of them would be no instance
        raise InvalidInstance(
            f"n_vectors: {wanted} cuts through a repeated eigenvalue of this graph; take one more or less"
        )
    noise: Array = np.asarray(rng.normal(size=n))
    signal = found.arms.T @ noise
    smooth = signal[:wanted] / (1.0 + eigenvalues[:wanted])
    return LinearBandit(found.arms[:, :wanted], smooth, labels=tuple(map(str, found.labels)))


@spelled
def grid_paths(rows: int, columns: int, seed: int = 0) -> LinearBandit:
    """Routing: the paths from corner to corner of a grid, right or down; edge costs uniform in [1, 2].

    One column per edge, θ = −costs, labels such as "→↓→". With two rows or two columns the paths are linearly
    independent, and c = Σ 2/Δ.

    Examples
    --------
    >>> grid_paths(2, 3).labels
    ('→→↓', '→↓→', '↓→→')
    """
    height = whole_number("rows", rows, InvalidInstance, least=2)
    length = whole_number("columns", columns, InvalidInstance, least=2)
    rng = generator(seed)
    networkx = _networkx("grid-paths")
    # the smaller side first, so that a huge grid is refused without computing a number of a million digits
    if min(height, length) > 40 or math.comb(height + length - 2, height - 1) > LIMIT:
        raise InvalidInstance(f"rows: a grid of {height} × {length} has more than {LIMIT} paths")
    entries = math.comb(height + length - 2, height - 1) * (2 * height * length - height - length)
    if entries > MOST_ENTRIES:
        raise InvalidInstance(
            f"rows: the paths of a grid of {height} × {length} fill {8e-9 * entries:.1f} GB, more than 1 GB"
        )
    grid = networkx.DiGraph()
    grid.add_nodes_from((r, c) for r in range(height) for c in range(length))  # columns in reading order
    for r in range(height):
        for c in range(length):
            ends = [(r, c + 1)] * (c + 1 < length) + [(r + 1, c)] * (r + 1 < height)
            grid.add_edges_from(((r, c), end) for end in ends)
    found = path_arms(grid, (0, 0), (height - 1, length - 1))
    labels = tuple("".join("→" if end[1] > start[1] else "↓" for start, end in path) for path in found.labels)
    costs: Array = rng.uniform(1.0, 2.0, size=(found.arms.shape[1],))
    return LinearBandit(found.arms, -costs, labels=labels)


def _graph(kind: str, n: int, seed: int) -> Any:
    networkx = _networkx("spectral")
    if kind == "path":
        return networkx.path_graph(n)
    if kind == "cycle":
        return networkx.cycle_graph(n)
    if kind == "grid":
        side = math.isqrt(n)
        if side * side != n:
            raise InvalidInstance(f"n_nodes: expected a square number for graph = 'grid', got {n}")
        return networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(side, side))
    if kind == "small-world":
        if n < 5:
            raise InvalidInstance(f"n_nodes: expected at least 5 for graph = 'small-world', got {n}")
        return networkx.connected_watts_strogatz_graph(n, 4, 0.1, seed=seed)
    raise InvalidInstance(f"graph: expected 'path', 'cycle', 'grid' or 'small-world', got {kind!r}")


def _networkx(family: str) -> Any:
    try:
        return importlib.import_module("networkx")  # untyped, and loaded only here
    except ImportError:
        raise MethodUnavailable(f"the family {family!r} needs networkx: pip install networkx") from None


def independent_value(make: Callable[..., LinearBandit], **parameters: Any) -> float | None:
    """Σ 2/Δ where the arms are linearly independent (finite-armed, in another basis), None where they are not."""
    bandit = make(**parameters)
    if bandit.n_arms > bandit.dim or bandit.rank < bandit.n_arms:
        return None
    return float(np.sum(2.0 / bandit.gaps[bandit.suboptimal_arms]))


def _unit_rows(rows: Array) -> Array:
    lengths: Array = np.linalg.norm(rows, axis=1)
    return rows / lengths[:, None]
