"""OptimalTracking's rule from its definition, with numpy, one rival at a time."""

import math

import numpy as np


def counted_rivals(away, inverse, leader_row, means, leader, noise):
    """(rival, ν) in the order in which they are taken, as the first lines of `directions` say."""
    squares = np.einsum("ij,jk,ik->i", away, inverse, away)
    gaps = means[leader] - means
    width = leader_row @ inverse @ leader_row
    pull = inverse @ leader_row
    metric = inverse - 0.99 * np.outer(pull, pull) / width if width > 0 else inverse
    z2 = np.full(len(gaps), np.inf)
    some = squares > 0
    z2[some] = gaps[some] ** 2 / (noise * squares[some])
    whole = np.einsum("ij,jk,ik->i", away, metric, away)
    worth = np.zeros(len(gaps))
    near = some & (z2 <= z2.min() + 2 * math.log(1e6)) & (whole > 0)
    worth[near] = np.sqrt(noise * squares[near]) * np.exp(-z2[near] / 2) * (1 + z2[near] / 2) / math.sqrt(2 * math.pi)
    rest, length = away.copy(), whole.copy()
    taken, counted, found = worth <= 0, 0.0, []
    while not taken.all():
        value = np.where(taken, -1.0, worth * length / np.where(whole > 0, whole, 1.0))
        x = int(value.argmax())
        if value[x] <= 1e-2 * counted:
            break
        counted += value[x]
        taken[x] = True
        found.append((x, length[x] / whole[x]))
        unit = rest[x] / math.sqrt(length[x])
        for y in np.flatnonzero(~taken):
            along = rest[y] @ metric @ unit
            if along > 0:
                q = math.log(squares[y] / squares[x]) / 1.5
                same = 1.0 if abs(q) < 0.1 else math.exp(-(q**4)) if abs(q) < 2 else 0.0
                length[y] -= same * along**2
                rest[y] = rest[y] - along * (1 - math.sqrt(1 - same)) * unit
            if worth[y] * length[y] <= 1e-2 * counted * whole[y] or length[y] <= 1e-12 * whole[y]:
                taken[y] = True
    return found


def reference_values(bandit, coordinates, pulls, sums, rounds, prudence, patience):
    """Estimated gaps, savings b(y), the leader's expected regret and the leader, as the module's first lines say."""
    inverse = np.linalg.inv(coordinates.T @ (pulls[:, None] * coordinates))
    means = coordinates @ inverse @ (coordinates.T @ sums)
    leader = int(means.argmax())
    away = coordinates - coordinates[leader]
    variance = bandit.noise_variance * np.einsum("ij,jk,ik->i", away, inverse, away)
    told_by = 1 + np.einsum("ij,jk,ik->i", coordinates, inverse, coordinates)
    saving, expected = np.zeros(len(pulls)), 0.0
    for x, new in counted_rivals(away, inverse, coordinates[leader], means, leader, bandit.noise_variance):
        s = math.sqrt(variance[x])
        z = (means[leader] - means[x]) / s
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        expected += new * s * max(density - z * math.erfc(z / math.sqrt(2)) / 2, 0.0)
        weight = new * prudence * rounds * bandit.noise_variance * density * (1 + z * z / 2) / (2 * s)
        told = (coordinates @ inverse @ away[x]) ** 2 / told_by
        known = max(bandit.noise_variance * away[x] @ away[x] / variance[x], 1.0)
        odds = patience * math.sqrt(known) * math.exp(-0.5 * z * z * (1 - 1 / known))
        told_by_spanner = (inverse @ away[x]) ** 2 / (1 + np.diag(inverse))  # its arms are the unit vectors
        if odds > 1e-3 and told_by_spanner.max() > 0:
            weight *= 1 - odds / (1 + odds) * math.exp(-1000 * told[x] / max(told_by_spanner.max(), told[x]))
        saving += weight * told
    return means[leader] - means, saving, expected, leader
