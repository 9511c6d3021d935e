"""Published characteristic times and optimal shares of pure exploration: numbers that multiply log(1/δ)."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from allocopt.insight.constants.constant import Constant, Number, Shares
from allocopt.model import programs
from allocopt.model.bandit import LinearBandit
from allocopt.model.program import AllocationProgram

__all__ = ["IDENTIFICATION"]

_GROUP = "identification"
_FWS = "Wang, Tzeng & Proutiere, Fast Pure Exploration via Frank-Wolfe (NeurIPS 2021)"
_TTEI = "Qin, Klabjan & Russo, Improving the Expected Improvement Algorithm (NeurIPS 2017)"
_TENSORZERO = "TensorZero (github.com/tensorzero/tensorzero), estimate_optimal_probabilities.rs"


def rotated(omega: float, length: float) -> LinearBandit:
    """e_1, …, e_6 and (cos ω, sin ω, 0, …), θ = ``length`` · e_1."""
    arms = np.vstack([np.eye(6), [math.cos(omega), math.sin(omega), 0, 0, 0, 0]])
    return LinearBandit(arms, length * np.eye(6)[0])


def soare(length: float) -> AllocationProgram:
    """Best arm of ``rotated`` by ω = 0.1."""
    return programs.best_arm(rotated(0.1, length))


def linear_threshold() -> AllocationProgram:
    """Which means are above 0.9, ω = 0.01."""
    return programs.threshold(rotated(0.01, 1.0), 0.9)


def orthogonal(means: tuple[float, ...], variances: tuple[float, ...] = (), epsilon: float = 0.0) -> AllocationProgram:
    """Best arm of finitely many unrelated ones."""
    noise = np.array(variances) if variances else 1.0
    return programs.best_arm(LinearBandit(np.eye(len(means)), np.array(means), noise), epsilon)


def with_floors() -> AllocationProgram:
    """The ε-best of three arms, means 0.5, 0.51 and 0.3, σ² = 0.1, ε = 0.01, each played in at least a hundredth of the rounds."""
    arms = np.eye(3)
    floors = 0.01 * np.ones((3, 3)) - arms
    return AllocationProgram(
        arms, np.ones(3), [arms[1] - arms[0], arms[1] - arms[2]], [0.02**2 / 2, 0.22**2 / 2], noise_variance=np.full(3, 0.1),
        constraints=(floors, np.zeros(3)),
    )  # fmt: skip


_BELOW = (
    "It is even below what the last arm x alone forces. For y = (−1, 1, 0, …) every arm has |⟨x, y⟩| <= 1, and ⟨x − e1, y⟩ = "
    "1 − cos ω + sin ω = 0.104829; so T* >= 2·0.104829²/Δ² with Δ = {gap}: T* >= {least}."
)

IDENTIFICATION = (
    Constant(
        name="fws-linear-code", group=_GROUP, source=_FWS,
        place="preprint, Table 1: the lower bounds at all four δ, divided by kl(δ, 1 − δ); the instance of linear/experiment_bai.jl",
        quantity="T*, characteristic time", printed=Number("204.27"),
        instance="{e1, …, e6, (cos ω, sin ω, 0, …)}, ω = 0.1, θ = 2e1 (the repository)", program=partial(soare, 2.0),
        remark=_BELOW.format(gap="2(1 − cos ω) = 0.00999167", least="220.15"),
    ),
    Constant(
        name="fws-linear-text", group=_GROUP, source=_FWS,
        place="the same table; the instance of the paper's text", quantity="T*, characteristic time", printed=Number("204.27"),
        instance="{e1, …, e6, (cos ω, sin ω, 0, …)}, ω = 0.1, θ = e1 (the text)", program=partial(soare, 1.0),
        remark="Half the θ is half the gaps and four times the time. " + _BELOW.format(gap="1 − cos ω = 0.00499583", least="880.6"),
    ),
    Constant(
        name="fws-linear-threshold", group=_GROUP, source=_FWS,
        place="linear/experiment_threshold.jl; the paper shows stopping times only",
        quantity="T*, characteristic time", printed=None,
        instance="{e1, …, e6, (cos ω, sin ω, 0, …)}, ω = 0.01, θ = e1, threshold 0.9", program=linear_threshold,
        remark="e1 has the distance 0.1 from the threshold: 2/0.1² = 200 of it are plays of e1 that tell of e1 itself.",
    ),
    *(
        Constant(
            name=f"ttei-share-{k}", group=_GROUP, source=_TTEI, place="the experiments, on the choice of β: the optimal β*",
            quantity="share of the best arm in the optimal allocation", printed=Shares({0: share}, partial=True),
            wording=share, instance=f"five unrelated arms with means {means}, σ² = 1", program=partial(orthogonal, means),
            remark="What is proven is the cost of the allocation; its first share is compared.",
        )
        for k, (means, share) in enumerate(
            [((5.0, 4.0, 1.0, 1.0, 1.0), "0.48"), ((5.0, 4.0, 3.0, 2.0, 1.0), "0.45"), ((2.0, 0.8, 0.6, 0.4, 0.2), "0.35")], 1
        )
    ),
    Constant(
        name="two-gaussian-arms", group=_GROUP,
        source="Kaufmann, Cappé & Garivier, On the Complexity of Best-Arm Identification in Multi-Armed Bandit Models (JMLR 2016)",
        place="two Gaussian arms with known variances", quantity="T*, characteristic time", printed=Number("12.5", exact=True),
        wording="2(σ₁ + σ₂)²/Δ² (12.5 for σ = 1, 1/4 and Δ = 1/2)", instance="two unrelated arms, means 0.5 and 0, σ² = 1 and 1/16",
        program=partial(orthogonal, (0.5, 0.0), (1.0, 0.0625)),
        remark="Minimise σ₁²/w + σ₂²/(1 − w): w = σ₁/(σ₁ + σ₂) = 0.8.",
    ),
    Constant(
        name="tensorzero-asymmetric", group=_GROUP, source=_TENSORZERO, place="test_asymmetric_high_variance_cvxpy",
        quantity="optimal shares, ε-best arm", printed=Shares({0: "0.182752086850448", 1: "0.817247913149552"}),
        wording="0.182752086850448, 0.817247913149552",
        instance="two unrelated arms, means 100 and 105, σ² = 1 and 20, ε = 2, no regularisation",
        program=partial(orthogonal, (100.0, 105.0), (1.0, 20.0), 2.0),
        remark=(
            "The shares are σ₀/(σ₀ + σ₁) = 1/(1 + √20) = 0.182744 and 0.817256. A solver that meets its tolerance of 1e-8 in the "
            "objective is right about the shares to its root only: of the fifteen printed digits four are right."
        ),
    ),
    Constant(
        name="tensorzero-close", group=_GROUP, source=_TENSORZERO, place="test_close_competition_cvxpy",
        quantity="optimal shares, ε-best arm, with floors",
        printed=Shares({0: "0.494996029290799", 1: "0.495003970556052", 2: "0.010000000211085"}),
        wording="0.494996029290799, 0.495003970556052, 0.010000000211085",
        instance="three unrelated arms, means 0.5, 0.51, 0.3, σ² = 0.1, ε = 0.01, shares of at least 0.01, no regularisation",
        program=with_floors,
        remark=(
            "The third arm is far away and gets its floor, the two others are alike and share the rest: (0.495, 0.495, 0.01), at "
            "T = 2·0.1·(2/0.495)/0.02² = 2020.2020. As in the row above, the printed shares are right to the root of a tolerance."
        ),
    ),
)  # fmt: skip
"""The rows about best arms and thresholds."""
