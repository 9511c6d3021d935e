"""Bandits with gaps that are exact in doubles, and their programs with bounds."""

import numpy as np

import allocopt as ao


def arms_of(seed, count=40):
    """Short arms around 0, the best one somewhere among them, everything a multiple of 1/64; gaps are exact in doubles."""
    rng = np.random.default_rng(seed)
    arms = rng.integers(-32, 33, size=(count, 3)) / 64.0
    arms[int(rng.integers(count))] = [1.0, 0.0, 0.0]
    arms[:, 1:][~arms[:, 1:].any(axis=1) & (arms[:, 0] < 1.0)] = 0.125
    return arms, np.array([1.0, 0.0, 0.0])


def program_of(kind, arms, theta, seed, **more):
    bandit = ao.LinearBandit(arms, theta, **more)
    if kind == "optimism":
        return ao.programs.optimism(bandit, 0.75)
    pulls = np.random.default_rng(seed).integers(0, 40, len(arms)) * (1.0 if kind == "remaining" else 1e5)
    return ao.programs.remaining(bandit, pulls, 1000)
