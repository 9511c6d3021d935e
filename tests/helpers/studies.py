"""Studies that many tests make, and how their tables are read."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
BASIC = {"family": {"name": "counter-example"}, "grid": {"epsilon": [0.2, 0.01]}, "quantities": ["c", "ucb", "ratio"]}
RANDOM = {
    "family": {"name": "random-unit"},
    "grid": {"dim": [2, 4], "n_arms": [5, 8]},
    "repeats": 40,
    "quantities": ["c", "ratio"],
}
FAMILY = """
import sys
import numpy as np
import allocopt as ao

def family(kind, seed):
    arms = np.random.default_rng(seed).normal(size=(5, 2))
    theta = [1.0, 0.5]
    if kind == "raises": raise ValueError("no such\\n  thing")
    if kind == "exits": sys.exit("leaving")
    if kind == "memory": raise MemoryError
    if kind == "text": return "rubbish"
    if kind == "none": return None
    if kind == "nan": return arms * np.nan, theta
    if kind == "shape": return arms, [1.0]
    if kind == "entry": return {"arms": arms, "tehta": theta}
    if kind == "one arm": return arms[:1], theta
    if kind == "ties": return {"arms": np.eye(2), "theta": [1.0, 1.0]}
    if kind == "gaps": return {"arms": arms, "gaps": [0, 1, 2, 1, 1]}
    if kind == "noisy": return ao.LinearBandit(arms, theta, noise_variance=3.0)
    return arms, theta
"""


def as_dicts(result, quantity=None):
    return (result.table if quantity is None else result.rows(quantity)).to_pylist()


def values(result, quantity):
    return result.rows(quantity)["value"].to_numpy()


def toml(path, text):
    path.write_text(text, encoding="utf-8")
    return path
