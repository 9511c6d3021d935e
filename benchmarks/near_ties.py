"""What it costs to decide a near tie that only an expensive arm can decide, and what it costs not to: NEAR_TIES.md and a picture.

python benchmarks/near_ties.py           # 4 minutes of processor time; goes on where it was stopped
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy loads

import argparse
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from tracking import soare

from allocopt import instances
from allocopt.base.long_runs.own_code import code_digest
from allocopt.model.bandit import LinearBandit
from allocopt.play.simulation.simulate import simulate

HERE = Path(__file__).parent
HORIZON, SEED = 10**6, 2026
PATIENCES = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
WORTHLESS, MIRRORED = "θ = 2e₁, d = 2", "θ = (2, ½)"

SEEN: dict[str, LinearBandit] = {
    WORTHLESS: instances.soare(2, 0.01),
    "θ = 2e₁, d = 4": instances.soare(4, 0.01),
    MIRRORED: soare([2, 0.5]),
    "θ = (2, .2)": soare([2, 0.2]),
    "θ = (2, 1)": soare([2, 1.0]),
    "θ = (2, −.3)": soare([2, -0.3]),
    "θ = 2e₁, ω = .03": instances.soare(2, 0.03),
}
HELD_OUT: dict[str, LinearBandit] = {
    "θ = 2e₁, ω = .02": instances.soare(2, 0.02),
    "θ = 2e₁, ω = .005": instances.soare(2, 0.005),
    "θ = 2e₁, d = 3": instances.soare(3, 0.01),
    "θ = (2, .1)": soare([2, 0.1]),
    "θ = (2, .35)": soare([2, 0.35]),
    "θ = (2, −.1)": soare([2, -0.1]),
    "θ = (2, ½, 0, 0), d = 4": soare([2, 0.5], dim=4),
}
Cell = tuple[float, float]  # mean regret and its standard error


def column(patience: float | None) -> str:
    """The policy's name."""
    return "LinTS" if patience is None else f"OptimalTracking:patience={patience:g}"


def play(folder: Path, runs: int, runs_of_lints: int) -> dict[str, dict[str, Cell]]:
    """Mean regret of every policy on every instance; what is there already is not played again."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Cell]] = {}
    for title, bandit in {**SEEN, **HELD_OUT}.items():
        for patience in (*PATIENCES, None):
            name = column(patience)
            count = runs_of_lints if patience is None else runs
            file = folder / f"{title} {name} {count}.json"
            if not file.exists():
                blocks = patience is not None
                r = simulate(name, bandit, HORIZON, count, rng=SEED, times=[HORIZON], workers=1, blockwise=blocks)
                file.write_text(json.dumps([float(r.mean[-1]), float(r.standard_error[-1])]), encoding="utf-8")
                print(f"{title}: {r!r}", flush=True)
            mean, error = json.loads(file.read_text(encoding="utf-8"))
            found.setdefault(title, {})[name] = (mean, error)
    return found


def table(titles: list[str], found: dict[str, dict[str, Cell]]) -> str:
    """One row an instance."""
    lines = [
        "| instance | " + " | ".join(f"patience {p:g}" for p in PATIENCES) + " | LinTS |",
        "|---|" + "---|" * (len(PATIENCES) + 1),
    ]
    for title in titles:
        cells = [found[title][column(p)] for p in (*PATIENCES, None)]
        reference = cells[-1][0]
        text = [f"{mean:.0f} ± {error:.0f} ({mean / reference:.2f})" for mean, error in cells[:-1]]
        lines.append(f"| {title} | " + " | ".join(text) + f" | {reference:.0f} ± {cells[-1][1]:.0f} |")
    return "\n".join(lines)


def summary(titles: list[str], found: dict[str, dict[str, Cell]]) -> str:
    """Over some instances, for every patience: the sum, the geometric mean of the ratios to LinTS, and the worst of them."""
    lines = [
        "| patience | sum of mean regrets | geometric mean of the ratios to LinTS | worst ratio |",
        "|---|---|---|---|",
    ]
    for p in PATIENCES:
        means = np.array([found[title][column(p)][0] for title in titles])
        ratios = means / np.array([found[title][column(None)][0] for title in titles])
        lines.append(f"| {p:g} | {means.sum():.0f} | {np.exp(np.log(ratios).mean()):.2f} | {ratios.max():.2f} |")
    return "\n".join(lines)


def picture(found: dict[str, dict[str, Cell]], path: Path) -> None:
    """Regret where the tie is worth nothing against regret where it is not: one curve an instance, one point a patience."""
    others = [MIRRORED, "θ = (2, .2)", "θ = (2, .1)", "θ = (2, .35)", "θ = (2, 1)"]
    figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    across = np.array([found[WORTHLESS][column(p)] for p in PATIENCES])
    for title, marker in zip(others, "os^Dv", strict=True):
        up = np.array([found[title][column(p)] for p in PATIENCES])
        axes.errorbar(
            across[:, 0],
            up[:, 0],
            xerr=across[:, 1],
            yerr=up[:, 1],
            marker=marker,
            markersize=4,
            linewidth=1,
            label=title,
        )
    for p, (x, _), (y, _) in zip(PATIENCES, across, [found["θ = (2, .2)"][column(p)] for p in PATIENCES], strict=True):
        axes.annotate(f"{p:g}", (x, y), textcoords="offset points", xytext=(5, 6), fontsize=8)
    lints = found[WORTHLESS][column(None)][0]
    axes.axvline(2 * lints, color="0.5", linestyle=":", linewidth=1)
    axes.axhline(150, color="0.5", linestyle=":", linewidth=1)
    axes.text(2.03 * lints, 21, "2 × LinTS", fontsize=8, color="0.35", va="bottom", rotation=90)
    axes.text(across[-1, 0], 150, "150", fontsize=8, color="0.35", va="bottom", ha="center")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="regret on θ = 2e₁ (the tie is worth nothing)",
        ylabel="regret on θ = (2, θ₂)",
    )
    axes.set_xticks([80, 100, 120, 150, 200], ["80", "100", "120", "150", "200"])
    axes.minorticks_off()
    axes.set_yticks([20, 50, 100, 200, 500], ["20", "50", "100", "200", "500"])
    axes.set_ylim(20, 700)
    axes.set_title("n = 10⁶, ω = .01; the numbers at the points are `patience`", fontsize=9, loc="left")
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--runs-of-lints", type=int, default=100)
    parser.add_argument("--folder", default=str(HERE.parent / "build" / "near_ties" / str(code_digest())[:12]))
    parser.add_argument("--out", default=str(HERE))
    arguments = parser.parse_args()
    found = play(Path(arguments.folder), arguments.runs, arguments.runs_of_lints)
    out = Path(arguments.out)
    picture(found, out / "near-ties.png")
    text = f"""# Near ties that only an expensive arm can decide

Made by `python benchmarks/near_ties.py`. Soare's arms {{e₁, e₂, (cos ω, sin ω)}} (in more dimensions, all e_i), ω = .01 unless
it is named: e₁ and the third arm are a near tie that only e₂ decides, at a cost of about 2 a pull. σ² = 1; mean regret at
n = 10⁶ ± standard error, in brackets the ratio to LinTS; {arguments.runs} runs of `OptimalTracking` block by block,
{arguments.runs_of_lints} of LinTS round by round.

![regret where the tie is worth nothing against regret where it is worth something](near-ties.png)

## Seen while the rule was made

{table(list(SEEN), found)}

{summary(list(SEEN), found)}

## Held out

Named before this form of `patience` was played on them (0, and an earlier form of the option, had been).

{table(list(HELD_OUT), found)}

{summary(list(HELD_OUT), found)}
"""
    (out / "NEAR_TIES.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
