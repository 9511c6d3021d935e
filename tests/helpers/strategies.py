"""Instances for property tests, nasty ones on purpose: near ties, tiny gaps, duplicated and collinear arms, rank
deficiency, k = d, x* = 0, scales from 1e-6 to 1e6."""

import networkx as nx
import numpy as np
from hypothesis import strategies as st

import allocopt as ao
from allocopt import LinearBandit
from allocopt.base.errors import AllocoptError
from allocopt.model.programs import regret

NASTY = (
    "plain",
    "integers",
    "near tie",
    "tiny gap",
    "duplicates",
    "collinear",
    "rank-deficient",
    "as many arms as dimensions",
    "zero is optimal",
    "arm scales",
    "coordinate scales",
    "exact ties",
    "cluster",
)


def _well_posed(arms, theta):
    try:
        regret(LinearBandit(arms, theta))
    except AllocoptError:
        return False
    return True


@st.composite
def bandits(draw, kinds=NASTY, max_dim=5, max_arms=12):
    """A LinearBandit with at least one suboptimal arm."""
    kind = draw(st.sampled_from(kinds))
    d = draw(st.integers(2, max_dim))
    k = draw(st.integers(d, max_arms))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arms = rng.normal(size=(k, d))
    theta = rng.normal(size=d)
    best = int(np.argmax(arms @ theta))
    if kind == "integers":
        arms, theta = rng.integers(-3, 4, (k, d)).astype(float), rng.integers(-2, 3, d).astype(float)
    elif kind == "near tie":
        other = (best + 1) % k
        arms[other] -= theta * ((arms[other] - arms[best]) @ theta) / (theta @ theta)
        arms[other] -= theta * 10.0 ** rng.uniform(-9, -3)
    elif kind == "tiny gap":
        arms[(best + 1) % k] = arms[best] - theta * 10.0 ** rng.uniform(-7, -2)
    elif kind == "duplicates":
        arms = arms[rng.integers(0, k, k)]
    elif kind == "collinear":
        arms[rng.integers(0, k)] = arms[best] * rng.uniform(-1, 0.9)
        i, j = rng.integers(0, k, 2)
        arms[i] = arms[j] * rng.uniform(0.1, 2)
    elif kind == "rank-deficient":
        r = int(rng.integers(1, d))
        arms = rng.normal(size=(k, r)) @ rng.normal(size=(r, d))
    elif kind == "as many arms as dimensions":
        arms = arms[:d]
    elif kind == "zero is optimal":
        arms = np.where((arms @ theta > 0)[:, None], -arms, arms)
        arms[0] = 0.0
    elif kind == "arm scales":
        arms = arms * 10.0 ** rng.uniform(-6, 6, (k, 1))
    elif kind == "coordinate scales":
        scale = 10.0 ** rng.uniform(-6, 6, d)
        arms, theta = arms * scale, theta / scale
    elif kind == "exact ties":
        theta = np.zeros(d)
        theta[0] = 1.0
        arms[: max(2, k // 3), 0] = 3.0
    elif kind == "cluster":
        arms[1:] = arms[0] + 1e-3 * arms[1:]
    if not _well_posed(arms, theta):  # e.g. all arms equal by chance
        arms, theta = np.eye(d), -np.arange(d, dtype=float)
    return LinearBandit(arms, theta)


def answered(solution):
    """Whether the value is proven to the tolerance: without any assumption, or under assumptions that are listed."""
    if solution.status is ao.Status.CONDITIONAL:
        return len(solution.assumptions) > 0 and all(a.at_rounding_level for a in solution.assumptions)
    return solution.status is ao.Status.CERTIFIED and solution.assumptions == ()


def grid(k: int, rng: np.random.Generator | None = None) -> nx.DiGraph:
    """k × k nodes, edges to the right and down."""
    steps = [((i, j), (i + a, j + b)) for i in range(k) for j in range(k) for a, b in ((0, 1), (1, 0))]
    G = nx.DiGraph([(u, v) for u, v in steps if max(v) < k])
    for edge in G.edges:
        G.edges[edge]["weight"] = 1.0 if rng is None else float(rng.uniform(0.5, 1.5))
    return G
