"""A referee for proof files of finite-time bounds: the theorem of docs/finite-time.md, the standard library, no code of allocopt.

Rationals throughout; logarithms are bounded by rationals on both sides.
"""

import json
from fractions import Fraction

TERMS = 40  # of the series of the logarithm: its rest is below 3^-80


def log_between(x):
    """Rationals below and above log x: x = 2^k m with 2/3 <= m <= 4/3, log m = 2 artanh((m − 1)/(m + 1))."""
    k = 0
    while x > Fraction(4, 3):
        x, k = x / 2, k + 1
    while x < Fraction(2, 3):
        x, k = x * 2, k - 1
    low, high = _log_near_one(x)
    two_low, two_high = LOG_TWO
    return low + (k * two_low if k > 0 else k * two_high), high + (k * two_high if k > 0 else k * two_low)


def _log_near_one(m):
    z = (m - 1) / (m + 1)
    z = Fraction(round(z * 2**400), 2**400) if z.denominator.bit_length() > 400 else z  # short numbers are fast numbers
    total = sum((2 * z ** (2 * i + 1) / (2 * i + 1) for i in range(TERMS)), Fraction(0))
    rest = Fraction(1, 3**60)
    return total - rest, total + rest


_HALVES = [_log_near_one(Fraction(3, 4)), _log_near_one(Fraction(2, 3))]  # log 2 = −log 3/4 − log 2/3
LOG_TWO = -sum(high for _, high in _HALVES), -sum(low for low, _ in _HALVES)


def judge(path):
    """Whether the file proves what it claims."""
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    instance, n = document["instance"], document["n"]
    arms = [[Fraction(x) for x in row] for row in instance["arms"]]
    theta = [Fraction(x) for x in instance["theta"]]
    variance = Fraction(instance["noise_variance"])
    value = Fraction(document["claim"]["value"])
    means = [dot(x, theta) for x in arms]
    gaps = [max(means) - m for m in means]
    gained, paid = Fraction(0), [-gap for gap in gaps]
    for alternative in document["alternatives"]:
        there = [Fraction(x) for x in alternative["theta"]]
        weight = Fraction(alternative["weight"])
        moved = [dot(x, there) for x in arms]
        gaps_there = [max(moved) - m for m in moved]
        g = min(t for t, gap in zip(gaps_there, gaps, strict=True) if gap == 0)
        paid = [p + weight * (a - b) ** 2 / (2 * variance) for p, a, b in zip(paid, moved, means, strict=True)]
        if g == 0 or alternative["regret"] == "inf":
            continue
        cost = min(gap / (1 - t / g) for gap, t in zip(gaps, gaps_there, strict=True) if t < g)
        allowed = max(Fraction(alternative["regret"]), Fraction(1, 2**1000))
        gained += weight * least_entropy(1 - value / (n * cost), allowed / (n * g))
    return gained - n * max(0, *paid) >= value


def least_entropy(p, q):
    """A rational below kl(p, q); 0 where p <= q."""
    if p <= q:
        return Fraction(0)
    low = p * log_between(p / q)[0]
    return low + (1 - p) * log_between((1 - p) / (1 - q))[0] if p < 1 else low


def dot(x, y):
    return sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0))
