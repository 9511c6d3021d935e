"""Published regret constants: numbers that multiply log n."""

from __future__ import annotations

from functools import partial

import numpy as np

from allocopt.insight import instances
from allocopt.insight.constants.constant import Constant, Number
from allocopt.model import programs
from allocopt.model.bandit import LinearBandit
from allocopt.model.contexts import ContextualBandit
from allocopt.model.program import AllocationProgram

__all__ = ["REGRET"]

_GROUP = "regret"
_PAPER = "Lattimore & Szepesvári, The End of Optimism? (AISTATS 2017)"


def example_4(epsilon: float, a: float, dim: int = 2, informative: bool = True) -> AllocationProgram:
    """e_1, …, e_d and (1 − ε)e_1 + aε e_i, θ = e_1."""
    return programs.regret(instances.counter_example(epsilon, a, dim, informative=informative))


def finitely_many(gaps: tuple[float, ...], noise_variance: float = 1.0) -> AllocationProgram:
    """Orthogonal arms with these gaps."""
    bandit = instances.finite_armed(gaps)
    return programs.regret(LinearBandit(bandit.arms, bandit.theta, noise_variance))


def equal_gaps() -> AllocationProgram:
    """Twelve arms in R⁵ with one gap, in general position."""
    return programs.regret(instances.equal_gaps(5, 12, gap=0.25))


def spanning_contexts() -> AllocationProgram:
    """Two contexts whose optimal arms span R²."""
    contexts = [[[1.0, 0.0], [0.9, 0.2]], [[0.0, 1.0], [0.1, 0.8]]]
    return programs.contextual(ContextualBandit(contexts, np.array([1.0, 1.0])))


_LINE = (
    "Modulo x* = e1 (which is free) only the second coordinate is left. The arm x needs h >= 2a² there, and of the two arms e2 is the "
    "one that gives more per unit of regret (1 against a²ε < 1): 2a² plays of e2, at 1 each."
)

REGRET = (
    Constant(
        name="end-of-optimism-example", group=_GROUP, source=_PAPER, place="Example 4",
        quantity="c(A,θ), regret/log n", printed=Number("8", exact=True), wording="2α² (8 for α = 2)",
        instance="{e1, e2, (1 − ε, αε)}, θ = e1, α = 2, ε = 0.01",
        program=partial(example_4, 0.01, 2.0), remark=_LINE,
    ),
    Constant(
        name="end-of-optimism-in-r5", group=_GROUP, source=_PAPER,
        place="Example 4, repeated in each of the coordinates 2, …, 5",
        quantity="c(A,θ), regret/log n", printed=Number("72", exact=True), wording="2α²(d − 1) (72 for α = 3, d = 5)",
        instance="{e1, …, e5, (1 − ε)e1 + αε e_i for i >= 2}, θ = e1, α = 3, ε = 0.01",
        program=partial(example_4, 0.01, 3.0, 5),
        remark="Modulo e1 the coordinates do not help each other: each costs what Example 4 costs.",
    ),
    Constant(
        name="end-of-optimism-alone", group=_GROUP, source=_PAPER, place="Example 4, last sentence",
        quantity="c(A,θ) without the arm e2", printed=Number("200", exact=True), wording="2/ε (200 for ε = 0.01)",
        instance="{e1, (1 − ε, αε)}, θ = e1, α = 2, ε = 0.01",
        program=partial(example_4, 0.01, 2.0, 2, False),
        remark="The arm x is left to tell of itself: 2/Δ² plays at Δ = ε each.",
    ),
    Constant(
        name="end-of-optimism-section", group=_GROUP, source=_PAPER, place="the section on optimism",
        quantity="c(A,θ), regret/log n", printed=Number("128", exact=True), wording="128α² (128 for α = 1)",
        instance="{e1, e2, (1 − ε, 8αε)}, θ = e1, α = 1, ε = 0.001",
        program=partial(example_4, 0.001, 8.0), remark="Example 4 with 8α in place of α: 2(8α)².",
    ),
    Constant(
        name="lai-robbins-gaussian", group=_GROUP,
        source="Lai & Robbins, Asymptotically efficient adaptive allocation rules (1985); Example 3 of The End of Optimism?",
        place="the lower bound for Gaussian arms", quantity="Σ 2/Δ", printed=Number("22", exact=True),
        wording="Σ 2/Δ (22 for gaps 1/2, 1/4, 1/5)",
        instance="four orthogonal arms with gaps 0, 0.5, 0.25, 0.2", program=partial(finitely_many, (0.0, 0.5, 0.25, 0.2)),
        remark="Orthogonal arms tell only of themselves: 2/Δ² plays at Δ each.",
    ),
    Constant(
        name="equal-gaps", group=_GROUP,
        source="Kiefer & Wolfowitz, The equivalence of two extremum problems (1960)", place="the equivalence theorem",
        quantity="c(A,θ) where all gaps are Δ", printed=Number("32", exact=True),
        wording="2(d − 1)/Δ (32 for d = 5, Δ = 1/4)",
        instance="twelve arms in R⁵, x* = e2 and eleven (1, z) with Gaussian z (seed 0), all with the gap 0.25",
        program=equal_gaps,
        remark="With one gap the program is G-optimal design modulo x*, in dimension d − 1: whatever the geometry.",
    ),
    Constant(
        name="ao-ids-counter-example", group=_GROUP,
        source="Kirschner, Lattimore, Vernade & Szepesvári, Asymptotically Optimal Information-Directed Sampling (COLT 2021)",
        place="the text on the end-of-optimism example, arms (1 − ε, 2ε)", quantity="c(A,θ), regret/log n",
        printed=Number("64", exact=True), instance="{e1, e2, (1 − ε, 2ε)}, θ = e1, ε = 0.01, σ² = 1",
        program=partial(example_4, 0.01, 2.0),
        remark="The value is 8 = 2·2² for every ε <= 1/4. " + _LINE + " With a = 2 that is 8; 64 would need a² = 32.",
    ),
    Constant(
        name="spanning-optimal-arms", group=_GROUP,
        source="Hao, Lattimore & Szepesvári, Adaptive Exploration in Linear Contextual Bandit (AISTATS 2020)",
        place="the case of sub-logarithmic regret", quantity="regret/log n with contexts", printed=Number("0", exact=True),
        instance="contexts {(1, 0), (0.9, 0.2)} and {(0, 1), (0.1, 0.8)}, θ = (1, 1); (0.9, 0.2) and (0, 1) are optimal",
        program=spanning_contexts,
        remark="The optimal arms of the two contexts are free, and they span R²: nothing has to be explored.",
    ),
)  # fmt: skip
"""The rows about regret."""
