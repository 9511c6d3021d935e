"""compare(): pairs where there are pairs, bands that hold what they say, ranks that do not feel a few bad runs."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, ttest_rel, wilcoxon
from simulating import BANDIT

import allocopt as ao
from allocopt.base.errors import AllocoptError
from allocopt.play.simulation.compare import compare
from allocopt.play.simulation.simulate import simulate


def like(result, regret):
    return dataclasses.replace(result, regret=np.asarray(regret, dtype=float))


@pytest.fixture(scope="module")
def base():
    return simulate("LinTS", BANDIT, 1000, 40, rng=0, times=[10, 100])


def test_pairs_are_the_runs_of_one_seed_and_their_means_are_those_of_a_paired_test(base):
    other = simulate("UCB", BANDIT, 1000, 60, rng=0, times=[100, 500])
    c = compare(base, other)
    assert c.paired
    assert c.runs == (40, 40)
    np.testing.assert_array_equal(c.times, [100, 1000])
    d = base.final_regret - other.final_regret[:40]
    assert c.difference[-1] == pytest.approx(d.mean())
    assert c.p_value == pytest.approx(wilcoxon(d, method="approx").pvalue)
    t = ttest_rel(base.final_regret, other.final_regret[:40])
    assert c.difference[-1] / c.standard_error[-1] == pytest.approx(t.statistic)
    assert c.wins == (d < 0).mean() + 0.5 * (d == 0).mean()
    narrow = t.confidence_interval(0.95)
    assert c.lower[-1] <= narrow.low
    assert c.upper[-1] >= narrow.high


def test_other_seeds_and_blocks_are_not_pairs(base):
    other = simulate("LinTS", BANDIT, 1000, 30, rng=1, times=[10, 100])
    c = compare(base, other)
    assert not c.paired
    assert c.runs == (40, 30)
    assert c.p_value == pytest.approx(mannwhitneyu(base.final_regret, other.final_regret, method="asymptotic").pvalue)
    blocks = simulate("OptimalTracking", BANDIT, 1000, 30, rng=0, times=[10, 100], blockwise=True)
    assert not compare(base, blocks).paired
    student = simulate("LinTS", BANDIT, 1000, 30, rng=0, times=[10, 100], noise="student-t:5")
    assert not compare(base, student).paired


def test_the_band_holds_a_whole_curve_as_often_as_it_says(base):
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(200):
        walk = rng.standard_normal((40, 3)).cumsum(axis=1)  # expectation 0 at all times
        c = compare(like(base, walk), like(base, np.zeros((40, 3))), confidence=0.8)
        held += bool(((c.lower <= 0) & (c.upper >= 0)).all())
    assert 140 <= held <= 180  # 160 ± 3.5 standard deviations


def test_a_few_terrible_runs_do_not_change_the_ranks(base):
    noise = np.random.default_rng(0).random((40, 3))
    better, worse = noise, noise + 0.5
    better[:2] += 1e4
    c = compare(like(base, better), like(base, worse))
    assert c.difference[-1] > 0
    assert c.wins == 0.95
    assert c.p_value < 1e-5
    assert c.median_difference < 0
    assert "by ranks" in c.verdict


def test_the_same_result_is_no_difference(base):
    c = compare(base, base)
    assert (c.difference == 0).all()
    assert (c.lower == 0).all()
    assert c.wins == 0.5
    assert c.p_value == 1.0
    assert c.verdict == "no difference between LinTS and LinTS is seen after 1000 rounds"


@pytest.mark.parametrize(
    ("second", "options", "words"),
    [
        ("LinTS", {}, "second: expected a SimulationResult, got a str"),
        (simulate("LinTS", BANDIT, 1000, 1, rng=0), {}, "second: expected at least 2 runs, got 1"),
        (simulate("LinTS", ao.LinearBandit([[1.0], [0.5]], [1.0]), 1000, 2, rng=0), {}, "second: expected a simulation of the same"),
        (simulate("LinTS", BANDIT, 900, 2, rng=0, times=[11]), {}, "second: expected times in common with the first"),
        (simulate("LinTS", BANDIT, 1000, 2, rng=0), {"confidence": 1}, "confidence: expected a number between 0 and 1, got 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_named(base, second, options, words):
    with pytest.raises(AllocoptError) as caught:
        compare(base, second, **options)
    assert words in str(caught.value)
