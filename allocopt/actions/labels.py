"""The arms of a graph in words: paths by their nodes, other sets by their edges, no two alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any

__all__ = ["label_text", "label_texts"]


def label_texts(labels: Sequence[Any], source: Hashable = None) -> tuple[str, ...]:
    """All labels in a few words, no two alike: of parallel edges the key is said, where the nodes do not tell them apart.

    Paths begin at ``source``, whichever way round the graph has their edges.
    """
    if source is not None:
        labels = [_walk(label, source) for label in labels]
    texts = [label_text(label) for label in labels]
    counts = Counter(texts)
    return tuple(
        text if counts[text] == 1 else label_text(label, keys=True) for text, label in zip(texts, labels, strict=True)
    )


def label_text(label: Any, *, keys: bool = False) -> str:
    """A label in a few words: the nodes of a path, the edges of anything else; with their ``keys`` where they have them."""
    edges = (
        label if isinstance(label, tuple) and label and all(isinstance(e, tuple) and len(e) >= 2 for e in label) else ()
    )
    if not edges:
        return str(label)
    if all(one[1] == other[0] for one, other in pairwise(edges)):
        return "→".join([str(edges[0][0]), *(f"{edge[1]}{_key(edge, keys)}" for edge in edges)])
    return ", ".join(f"{edge[0]}-{edge[1]}{_key(edge, keys)}" for edge in edges)


def _walk(edges: Sequence[tuple[Any, ...]], source: Hashable) -> tuple[tuple[Any, ...], ...]:
    """The edges of a path from ``source``, in this order, each from where the last one ended."""
    walked: list[tuple[Any, ...]] = []
    for tail, head, *key in edges:
        here = walked[-1][1] if walked else source
        walked.append((tail, head, *key) if tail == here else (head, tail, *key))
    return tuple(walked)


def _key(edge: tuple[Any, ...], said: bool) -> str:
    return f"[{edge[2]}]" if said and len(edge) > 2 else ""
