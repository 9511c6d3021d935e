"""How long a proof takes beside the solve that it is of, in one run, as ratios.

    python benchmarks/verify.py [--quick]

Prints markdown; `make bench` appends it to RESULTS.md.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import allocopt as ao

TARGETS = {(20, 500): 2, (20, 10**4): 2, (20, 10**5): 4, (50, 10**5): 4, (20, 10**6): 4}
"""(d, k) → how many times as long as the solve a proof may take."""
WIDER = 2  # how many times as wide as the claimed gap the proven one may be
REPEATS = 3


def measured(dim: int, arms: int) -> tuple[float, float, float, float, str]:
    """Seconds of a solve and of its proof (the fastest of each, in turns), the gaps of both, and the status."""
    rng = np.random.default_rng(0)
    program = ao.programs.regret(ao.LinearBandit(rng.normal(size=(arms, dim)), rng.normal(size=dim)))
    solving, proving = [], []
    for _ in range(REPEATS):
        start = time.perf_counter()
        solution = ao.solve(program)
        middle = time.perf_counter()
        proof = solution.verify()
        proving.append(time.perf_counter() - middle)
        solving.append(middle - start)
    return min(solving), min(proving), solution.gap, proof.gap, solution.status.name


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What a proof costs beside its solve, in markdown.")
    parser.add_argument("--quick", action="store_true", help="the two smallest sizes only")
    sizes = list(TARGETS)[:2] if parser.parse_args().quick else list(TARGETS)
    print(
        f"`solution.verify()` beside the solve that it proves, certified 1e-8: the fastest of {REPEATS} each, in turns. The gap\n"
        f"is that of the bounds, claimed by the solve and proven anew from the doubles; at most {WIDER}x as wide is asked.\n"
    )
    print("| (d,k) | solve | verify() | ratio | at most | gap claimed | gap proven | |")
    print("|---|--:|--:|--:|--:|--:|--:|---|")
    for d, k in sizes:
        solve, verify, claimed, proven, status = measured(d, k)
        ratio, target = verify / solve, TARGETS[d, k]
        met = ratio <= target and proven <= WIDER * claimed and status == "CERTIFIED"
        print(
            f"| ({d},{k}) | {solve * 1e3:.0f} ms | {verify * 1e3:.0f} ms | {ratio:.2f}x | {target}x | {claimed:.1e} | {proven:.1e} | "
            f"{'met' if met else '**missed**'} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
