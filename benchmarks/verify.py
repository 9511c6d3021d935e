"""How long a proof takes beside the solve that it is of: `make proofs`, in one run, as ratios."""

from __future__ import annotations

import time

import numpy as np

import allocopt as ao

SIZES = ((20, 500), (20, 10_000), (20, 100_000), (50, 100_000), (20, 1_000_000))


def main() -> None:
    """Print a table."""
    rng = np.random.default_rng(0)
    print("| (d,k) | solve | verify() | ratio | gap claimed | gap proven |\n|---|--:|--:|--:|--:|--:|")
    for d, k in SIZES:
        program = ao.programs.regret(ao.LinearBandit(rng.normal(size=(k, d)), rng.normal(size=d)))
        solving, proving = [], []
        for _ in range(3):
            start = time.perf_counter()
            solution = ao.solve(program)
            middle = time.perf_counter()
            proof = solution.verify()
            solving.append(middle - start)
            proving.append(time.perf_counter() - middle)
        ratio = min(proving) / min(solving)
        print(
            f"| ({d},{k}) | {min(solving) * 1e3:.0f} ms | {min(proving) * 1e3:.0f} ms | {ratio:.2f} | "
            f"{solution.gap:.1e} | {proof.gap:.1e} |"
        )


if __name__ == "__main__":
    main()
