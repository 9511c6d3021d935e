"""The picture of README, and its halves for the first page: ``.venv/bin/python docs/site/picture.py`` draws them (half a minute)."""

from pathlib import Path

import matplotlib

import allocopt as ao

matplotlib.use("Agg")
from matplotlib import pyplot as plt

POLICIES = {"LinUCB:a=2": "LinUCB", "LinTS": "Thompson sampling", "OptimalTracking": "optimal allocation,\ntracked"}
COLOURS = {"LinUCB:a=2": "#009E73", "LinTS": "#D55E00", "OptimalTracking": "#0072B2"}


def main():
    bandit = ao.instances.counter_example(0.05)  # {e1, e2, (0.95, 0.1)}, θ = e1
    solution = ao.solve(ao.programs.regret(bandit))
    results = {policy: ao.simulate(policy, bandit, 10**6, 100, rng=0) for policy in POLICIES}
    figure, (arms, regret) = plt.subplots(1, 2, figsize=(9, 3.4), width_ratios=[2, 3], layout="constrained")
    draw_arms(arms, bandit, solution)
    draw_regret(regret, results)
    save(figure, "three-arms")
    figure, axes = plt.subplots(figsize=(4.5, 3.4), layout="constrained")
    draw_arms(axes, bandit, solution)
    save(figure, "arms")
    figure, axes = plt.subplots(figsize=(4.8, 3.4), layout="constrained")
    draw_regret(axes, results)
    save(figure, "regret")


def save(figure, name):
    path = Path(__file__).parent / "static" / f"{name}.png"
    figure.savefig(path, dpi=150, bbox_inches="tight", metadata={"Software": None})


def draw_arms(axes, bandit, solution):
    names = ["best arm\nα = ∞", f"α = {solution.allocation[1]:.0f}: all exploration\nis here", "binds, is never played"]
    for (x, y), name, place in zip(bandit.arms, names, [(0.97, -0.14), (0.12, 0.96), (0.93, 0.16)], strict=True):
        axes.annotate(name, (x, y), place, fontsize=9, ha="left" if x < 0.5 else "right", va="center")
    axes.scatter(*bandit.arms[0], marker="*", s=160, color="#D55E00", zorder=3)
    axes.scatter(*bandit.arms[1], s=500, color="#56B4E9", zorder=2)
    axes.scatter(*bandit.arms[1:].T, s=14, color="black", zorder=3)
    axes.scatter(*bandit.arms[2], s=110, facecolor="none", edgecolor="#CC79A7", linewidth=1.8, zorder=2)
    axes.set(xlim=(-0.15, 1.2), ylim=(-0.28, 1.2), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    axes.set_title("three arms, θ = (1, 0):  c = 8, proven", fontsize=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)


def draw_regret(axes, results):
    for policy, result in results.items():
        name = POLICIES[policy]
        later = result.times >= 100
        axes.plot(result.times[later], result.mean[later], color=COLOURS[policy], linewidth=1.8)
        axes.annotate(name, (result.times[-1], result.mean[-1]), (6, 0), textcoords="offset points", fontsize=9,
                      color=COLOURS[policy], va="center", annotation_clip=False)  # fmt: skip
    axes.set(xscale="log", xlim=(100, 10**6), ylim=(0, None), xlabel="rounds n")
    axes.set_title("mean regret of 100 runs", fontsize=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
