"""The arena: its list is what it says, its budget is kept, its intervals are exact, and it goes on where it was stopped."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from allocopt import policies

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from arena.entries import CLAIM_OPTIMALITY, INSTANCES, POLICIES
from arena.figures import Figures, clopper_pearson
from arena.page import page
from arena.playing import LEAST_RUNS, Arena, Cell, pour


def test_the_list_has_named_groups_with_both_halves_and_every_policy_plays():
    assert len(INSTANCES) >= 40
    for group in {e.group for e in INSTANCES} - {"others"}:
        assert {e.held_out for e in INSTANCES if e.group == group} == {False, True}, group
    assert abs(sum(e.held_out for e in INSTANCES) - len(INSTANCES) / 2) <= 5
    assert {policies.parse(name).name.partition(":")[0] for name in POLICIES} == set(policies.NAMES)
    assert set(CLAIM_OPTIMALITY) <= set(POLICIES)
    folders = {Cell(p, e.name, n).folder for p in POLICIES for e in INSTANCES for n in (1000, 10_000)}
    assert len(folders) == 2 * len(POLICIES) * len(INSTANCES)


def test_a_budget_is_poured_until_it_is_used_up():
    cells = [Cell("UCB", str(i), 1000) for i in range(4)]
    costs = dict(zip(cells, (0.01, 0.1, 1.0, 100.0), strict=True))
    runs = pour(costs, 20.0, 100)
    assert runs[cells[0]] == 100
    assert cells[3] not in runs
    assert sum(costs[c] * r for c, r in runs.items()) <= 20.0
    assert all(r >= LEAST_RUNS for r in runs.values())
    assert runs[cells[1]] > runs[cells[2]]


@pytest.mark.parametrize(("found", "total"), [(0, 30), (1, 30), (7, 40), (30, 30)])
def test_intervals_have_their_confidence(found, total):
    low, high = clopper_pearson(found, total)
    assert low <= found / total <= high
    if found > 0:
        assert binom.sf(found - 1, total, low) == pytest.approx(0.025)
    if found < total:
        assert binom.cdf(found, total, high) == pytest.approx(0.025)


def test_a_short_arena_is_played_written_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("arena.playing.HORIZONS", {10**3: (0.5, 20), 10**4: (0.5, 8)})
    entries = tuple(e for e in INSTANCES if e.name in ("example ε=.2", "two best of four", "random (2, 5)"))
    names = ("LinTS", "UCB", "PhasedElimination")
    arenas = []
    for _ in range(2):
        said = []
        arena = Arena(120.0, 1, tmp_path / "kept", entries, names, 10**4, None, said.append)
        arena.play()
        arenas.append(arena)
    one, two = arenas
    assert len(one.played) == 2 * 3 * 3
    assert one.seconds == two.seconds
    for cell, found in one.played.items():
        np.testing.assert_array_equal(found.regret, two.played[cell].regret)
        assert len(found.regret) >= LEAST_RUNS
        assert found.seconds == two.played[cell].seconds  # of the first time, not of reading
    figures = Figures(two.played, entries, names)
    text = page(two, figures, [])
    assert "| LinTS |" in text
    assert "nan" not in text
    assert len(figures.csv().splitlines()) == 1 + 18
    row = figures.rows[Cell("UCB", "example ε=.2", 1000)]
    assert row.c_log_n == pytest.approx(8 * math.log(1000), rel=1e-6)
    assert row.median <= row.quantile_99 <= row.worst
