"""A graph whose edges show how often an allocation uses them."""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from allocopt.actions.graphs import GraphArms
from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled
from allocopt.base.tolerances import SUPPORT
from allocopt.base.validation import Array
from allocopt.insight.plots.canvas import Canvas, Width, canvas
from allocopt.insight.plots.names import Room
from allocopt.insight.plots.style import BLUE, GREY, NOTE, ORANGE, UNITS, drawing, number, text
from allocopt.model.programs import regret
from allocopt.model.solution import Solution
from allocopt.solving.solve import solve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["edge_allocation"]

_THICKEST: Final = 7.0  # points
_MOST_EDGES: Final = 2000
_BOX: Final = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
_MOST_NAMED: Final = 40  # nodes and edges that get their names written


@spelled
def edge_allocation(
    graph_arms: GraphArms,
    solution: Solution | None = None,
    *,
    positions: Any = None,
    ax: Any = None,
    width: Width = None,
) -> Figure:
    """The graph behind `ao.graphs` with Σ α over the arms that use an edge as its width, and the edges of the best arm marked.

    Parameters
    ----------
    graph_arms : GraphArms
        Paths, trees or matchings of a graph, whose columns are edges.
    solution : Solution, optional
        Of a program with these arms; by default their regret program, with the graph's own weights, is solved here.
    positions : mapping, optional
        Node → (x, y); by default the nodes themselves where they are pairs of numbers, else networkx's Kamada-Kawai layout.
    ax : Axes, optional
        Where to draw, instead of on a figure of its own.
    width : float or str
        Inches, "column" (3.4, the default) or "page" (7.0).

    Examples
    --------
    >>> import allocopt as ao, networkx as nx
    >>> graph = nx.DiGraph()
    >>> graph.add_weighted_edges_from([("s", "a", 1.0), ("a", "t", 1.0), ("s", "t", 3.0)])
    >>> paths = ao.graphs.path_arms(graph, "s", "t")
    >>> figure = edge_allocation(paths, ao.solve(ao.programs.regret(paths.bandit())))
    >>> sorted(t.get_text() for t in figure.axes[0].texts)[-3:]
    ['a', 's', 't']
    """
    if not isinstance(graph_arms, GraphArms):
        raise InvalidOption(f"graph_arms: expected a GraphArms of ao.graphs, got a {type(graph_arms).__name__}")
    if solution is None:
        solution = solve(regret(graph_arms.bandit()))
    if not isinstance(solution, Solution):
        raise InvalidOption(f"solution: expected a Solution, got a {type(solution).__name__}")
    edges = _edges(graph_arms)
    if solution.program.n_arms != len(graph_arms.arms):
        raise InvalidOption(
            f"solution: expected one for these {len(graph_arms.arms)} arms, got one for {solution.program.n_arms}"
        )
    places = _places(edges, positions)
    alpha = np.where(np.isfinite(solution.allocation), solution.allocation, 0.0)
    uses = np.abs(graph_arms.arms)
    flow = alpha @ uses
    best = uses[solution.optimal_arms].sum(axis=0) > 0.0
    top = float(flow.max(initial=0.0))
    with drawing():
        board = canvas(ax, width, 0.8)
        axes = board.axes
        for (a, b), amount, optimal in zip(edges, flow.tolist(), best.tolist(), strict=True):
            ends = np.array([places[a], places[b]])
            axes.plot(*ends.T, color=GREY, linewidth=0.6, zorder=1)
            if amount > SUPPORT * top:
                axes.plot(*ends.T, color=BLUE, linewidth=max(0.9, _THICKEST * amount / top), alpha=0.75, zorder=2,
                          solid_capstyle="round")  # fmt: skip
            if optimal:
                axes.plot(*ends.T, color=ORANGE, linewidth=1.4, linestyle=(0, (2.5, 1.2)), zorder=3)
        points = np.array(list(places.values()))
        few = len(places) <= _MOST_NAMED
        longest = max(len(text(_node_name(node), 6)) for node in places)
        size = (7.0 + 4.4 * longest) ** 2 if few else 12.0
        axes.scatter(
            points[:, 0],
            points[:, 1],
            s=size,
            facecolor="white",
            edgecolor="black",
            linewidth=0.7,
            zorder=4,
            clip_on=False,
        )
        if few:
            for node, (x, y) in places.items():
                axes.text(x, y, text(_node_name(node), 6), ha="center", va="center", fontsize=7, zorder=5)
        _key(axes, top, UNITS[solution.program.kind], bool(best.any()))
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_axis_off()
        axes.set_title("what exploration uses: Σ α over the arms with the edge", **NOTE)
        board.legend()
        _make_room(board, math.sqrt(size) / 2)
        if len(edges) <= _MOST_NAMED:
            _write_amounts(axes, edges, flow, places, math.sqrt(size) / 2)
        return board.done()


def _edges(graph_arms: GraphArms) -> list[tuple[Any, Any]]:
    """The pairs of nodes of the columns."""
    edges = [tuple(edge)[:2] if isinstance(edge, tuple | list) else () for edge in graph_arms.edges]
    if not edges or any(len(edge) != 2 for edge in edges):
        raise InvalidOption("graph_arms: expected arms whose columns are edges (paths, trees, matchings), got others")
    if len(edges) > _MOST_EDGES:
        raise InvalidOption(
            f"graph_arms: expected at most {_MOST_EDGES} edges, which can still be seen, got {len(edges)}"
        )
    return [(edge[0], edge[1]) for edge in edges]


def _places(edges: list[tuple[Any, Any]], positions: Any) -> dict[Any, tuple[float, float]]:
    nodes = list(dict.fromkeys(node for edge in edges for node in edge))
    if positions is not None:
        missing = next((node for node in nodes if node not in positions), None)
        if missing is not None:
            raise InvalidOption(f"positions: expected a place for every node, but there is none for {missing!r}")
        return {node: (float(positions[node][0]), float(positions[node][1])) for node in nodes}
    if all(isinstance(n, tuple) and len(n) == 2 and all(isinstance(x, int | float) for x in n) for n in nodes):
        return {node: (float(node[1]), -float(node[0])) for node in nodes}  # a grid: rows downwards
    networkx: Any = importlib.import_module("networkx")
    graph = networkx.Graph(edges)
    found = networkx.kamada_kawai_layout(graph) if len(nodes) <= 200 else networkx.spring_layout(graph, seed=0)
    return {node: (float(found[node][0]), float(found[node][1])) for node in nodes}


def _node_name(node: Any) -> str:
    return ",".join(map(str, node)) if isinstance(node, tuple) else str(node)


def _write_amounts(
    axes: Any, edges: list[tuple[Any, Any]], flow: Array, places: dict[Any, tuple[float, float]], radius: float
) -> None:
    """The amounts on their edges, the largest first; one that would cover a node or another amount is left out."""
    room = Room(axes)
    for place in places.values():
        room.take_disc(place, radius)
    for i in np.argsort(-flow, kind="stable").tolist():
        a, b = edges[i]
        amount = float(flow[i])
        if amount > SUPPORT * float(flow.max()):
            middle = (np.array(places[a]) + np.array(places[b])) / 2
            if room.take(middle, number(amount)):
                axes.text(*middle, number(amount), fontsize=7, ha="center", va="center", bbox=_BOX, zorder=6)


def _make_room(board: Canvas, radius: float) -> None:
    """Margins that hold circles of this radius, in points, whole: their size does not follow the scale of the axes."""
    if board.own:
        board.figure.draw_without_rendering()  # how large the axes are is known once the legend has its place
    box = board.axes.get_window_extent()
    needed = radius + 1.0
    points = [72.0 * length / board.figure.dpi for length in (box.width, box.height)]
    x, y = (max(0.12, needed / max(length - 2.0 * needed, needed)) for length in points)
    board.axes.margins(x=x, y=y)


def _key(axes: Any, top: float, unit: str, optimal: bool) -> None:
    if top > 0:
        axes.plot([], [], color=BLUE, alpha=0.75, linewidth=4, label=f"explored, most {number(top)} {unit}")
    if optimal:
        axes.plot([], [], color=ORANGE, linewidth=1.4, linestyle=(0, (2.5, 1.2)), label="edge of a best arm")
    axes.plot([], [], color=GREY, linewidth=0.6, label="edge")
