"""What a checkpoint folder costs a simulation: the same one with and without, in turns, in processor time.

python benchmarks/store_cost.py
"""

from __future__ import annotations

import statistics
import tempfile
import time

import allocopt as ao
from allocopt import instances

TURNS = 5
CASES = (("LinTS", 10**6, 4), ("LinTS", 10**6, 16))


def seconds(policy: str, horizon: int, runs: int, folder: str | None) -> float:
    """Of processor time, of one simulation in this process."""
    begun = time.process_time()
    ao.simulate(policy, instances.counter_example(0.05), horizon, runs, rng=0, workers=1, checkpoint=folder)
    return time.process_time() - begun


def main() -> None:
    """Median, least and largest of the ratios."""
    for policy, horizon, runs in CASES:
        with tempfile.TemporaryDirectory() as place:
            seconds(policy, horizon, runs, f"{place}/first")  # loads and compiles
            ratios, plain = [], []
            for turn in range(TURNS):
                found = {}
                for folder in (None, f"{place}/{turn}") if turn % 2 else (f"{place}/{turn}", None):
                    found[folder is None] = seconds(policy, horizon, runs, folder)
                ratios.append(found[False] / found[True])
                plain.append(found[True])
        print(
            f"{policy}, {runs} runs of {horizon:.0e} rounds: {statistics.median(plain):.2f} s, with a folder "
            f"{statistics.median(ratios):.3f} times that ({min(ratios):.3f} to {max(ratios):.3f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
