"""Blocks a part at a time: what is merged as it comes, and images that are made a few at a time, say the same as all at once."""

import dataclasses

import numpy as np
import pytest
from blocks import in_blocks
from bounded import arms_of, program_of

import allocopt as ao
from allocopt.certify.by_block import fixed, pricing
from allocopt.certify.by_block.pricing import merge_prices, merged_prices
from allocopt.certify.by_block.problem import StreamedProblem
from allocopt.certify.frame import frame_of


def test_reports_that_are_merged_as_they_come_are_those_that_are_merged_together():
    rng = np.random.default_rng(0)
    with in_blocks(keep=100):
        problem = StreamedProblem(program_of("optimism", *arms_of(2), 2))
        pool = problem.playable(np.arange(8))
        one = problem.scan_bounded(frame_of(problem.part(pool), np.ones(len(pool)), np.ones(len(pool))), 0.5, 0.01, 50)
    reports = []
    for n in range(12):
        targets, features = (rng.choice(100, size, replace=False) + 100 * n for size in rng.integers(0, 9, 2))
        g, p = (rng.integers(1, 5, len(places)).astype(float) for places in (targets, features))  # with ties
        reports.append(dataclasses.replace(
            one, targets=targets, constraints=g, features=features, prices=p, alive=n, mask=rng.random(7) < 0.5,
            constraint=float(g.max(initial=0.0)), price=float(p.max(initial=0.0)), rest_constraint=0.25 * n, rest_price=0.5,
        ))  # fmt: skip
    for keep in (1, 2, 3, 5, 200):
        together, as_they_come = merge_prices(reports, keep), merged_prices(iter(reports), keep)
        for field in dataclasses.fields(one):
            first, second = getattr(together, field.name), getattr(as_they_come, field.name)
            assert np.array_equal(first, second), field.name
    assert merged_prices(iter([*reports, dataclasses.replace(reports[0], mask=None)]), 3).mask is None


def test_what_is_computed_in_parts_is_what_is_computed_at_once(monkeypatch):
    """Images, accurate prices and fixed sums of a block do not depend on how many of its arms are looked at together."""
    rng = np.random.default_rng(3)
    arms = np.column_stack([rng.uniform(-1, 0.9, 300), rng.normal(size=(300, 4))])
    arms[0] = [1, 0, 0, 0, 0]
    found = []
    for few in (False, True):
        if few:
            monkeypatch.setattr(pricing, "_IMAGE_ENTRIES", 1)
            monkeypatch.setattr(pricing, "_LEAST_ROWS", 3)
            monkeypatch.setattr(pricing, "_AT_A_TIME", 5)
            monkeypatch.setattr(fixed, "_AT_A_TIME", 4)
            monkeypatch.setattr("allocopt.linear.quotient_map._AT_A_TIME", 6)
        with in_blocks(rows=None, keep=100):
            bandit = ao.LinearBandit(arms, [1, 0, 0, 0, 0])
            problem = StreamedProblem(ao.programs.remaining(bandit, np.arange(300) % 4, 1000))
            pool = problem.playable(np.arange(20))
            frame = frame_of(problem.part(pool), np.ones(len(pool)), np.ones(len(pool)))
            report = problem.scan_bounded(frame, 0.0, 0.0, 300)
            found.append((report, problem.fixed))
    (one, whole), (other, parts) = found
    assert len(one.targets) == 299 and np.array_equal(one.targets, other.targets)
    for name in ("constraint", "price", "constraints", "prices"):
        assert np.allclose(getattr(one, name), getattr(other, name), rtol=1e-13, atol=0)
    assert parts.cost == pytest.approx(whole.cost, rel=1e-14) and parts.error.size == pytest.approx(
        whole.error.size, rel=0.5
    )
    assert np.allclose(parts.rows.T @ parts.rows, whole.rows.T @ whole.rows, rtol=1e-13, atol=1e-13)
