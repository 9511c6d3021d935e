"""This code against another checkout of the project, in turns: no figure may be worse by more than noise.

    python benchmarks/before_after.py OTHER [--turns 7] [--only NAME] [--first]

OTHER is a folder with an older state of the project (`git worktree add ../before COMMIT`). Every measurement runs in a process of
its own, first the one code and then the other, so that a busy machine is busy for both; the figure is the least processor time of
all turns. Prints markdown. ``--first`` measures only the first compiled call, each time with an empty cache.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
HEAD = """
import time, warnings, numpy as np
warnings.simplefilter("ignore")
import allocopt as ao
def unit(k, d, seed=0):
    rows = np.random.default_rng(seed).normal(size=(k, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
def clock(what, seconds=1.5, most=2000):
    what()
    times, until = [], time.perf_counter() + seconds
    while time.perf_counter() < until and len(times) < most or not times:
        start = time.process_time(); what(); times.append(time.process_time() - start)
    print(min(times) if len(times) < 20 else sorted(times)[len(times) // 4])
"""
ALLOCATOR = """
A = unit(20, 5)
a = ao.Allocator(A)
g = (A @ np.ones(5)).max() - A @ np.ones(5)
sets = [g * (1 + 0.01 * np.random.default_rng(s).random(20)) for s in range(200)]
"""
MEASURED = {
    "import allocopt": "start = time.process_time(); import allocopt; print(time.process_time() - start)",
    **{
        f"regret_constant ({d}, {k:,})": f"A = unit({k}, {d}); clock(lambda: ao.regret_constant(A, np.ones({d})))"
        for d, k in [
            (2, 3),
            (5, 20),
            (10, 50),
            (20, 200),
            (20, 500),
            (20, 10**4),
            (20, 10**5),
            (20, 10**6),
            (50, 10**5),
        ]
    },
    **{
        f"verify ({d}, {k:,})": f"S = ao.regret_constant(unit({k}, {d}), np.ones({d})); clock(lambda: S.verify())"
        for d, k in [(20, 500), (20, 10**4), (20, 10**6)]
    },
    "(20, 10⁶) float32, mapped": """
import tempfile, pathlib
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "arms.npy"
    np.save(path, unit(10**6, 20).astype(np.float32))
    arms = np.load(path, mmap_mode="r")
    clock(lambda: ao.regret_constant(arms, np.ones(20)), seconds=4)
""",
    "200 × Allocator (5, 20), warm": ALLOCATOR + "for g in sets: a.solve(g)\nclock(lambda: [a.solve(g) for g in sets])",
    "200 × Allocator (5, 20), made and solved": ALLOCATOR + "clock(lambda: [ao.Allocator(A).solve(g) for g in sets])",
    "solve_many (5, 20)": ALLOCATOR + "G = np.array(sets * 10); clock(lambda: ao.solve_many(A, G))",
    "g_optimal (20, 10,000)": "A = unit(10**4, 20); clock(lambda: ao.solve(ao.programs.g_optimal(A)))",
    "optimal_pulls (5, 20)": ALLOCATOR + "clock(lambda: ao.optimal_pulls(A, g, 10**6))",
    "conic (5, 50)": "A = unit(50, 5); clock(lambda: ao.regret_constant(A, np.ones(5), method='conic'))",
    "frank-wolfe (5, 50)": "A = unit(50, 5); clock(lambda: ao.regret_constant(A, np.ones(5), method='frank-wolfe', tol=1e-4))",
    "hardness (5, 50)": "A = unit(50, 5); b = ao.LinearBandit(A, np.ones(5)); clock(lambda: ao.hardness(b))",
    "spanner (20, 10,000)": "A = unit(10**4, 20); clock(lambda: ao.barycentric_spanner(A))",
    **{
        f"simulate {name}, (5, 20), 10⁵": f"""
b = ao.LinearBandit(unit(20, 5), np.ones(5) / 5**.5)
policy = ao.policies.{name}()
clock(lambda: ao.simulate(policy, b, 10**5, 8, rng=0, workers=1))
"""
        for name in ("OptimalTracking", "LinTS", "LinUCB")
    },
}
FIRST = """
a = ao.Allocator(np.eye(3)); start = time.perf_counter(); a.solve(np.array([0., 1., 2.]))
print(time.perf_counter() - start)
"""


def measured(code: str, checkout: Path, cache: str | None) -> float:
    """What a script prints, run with this code."""
    more = {"NUMBA_CACHE_DIR": cache} if cache else {}
    env = {
        **os.environ,
        "PYTHONPATH": str(checkout),
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "",
        **more,
    }
    head = "import time\n" if "import allocopt;" in code else HEAD
    done = subprocess.run(
        [sys.executable, "-c", head + code], env=env, capture_output=True, text=True, cwd=tempfile.gettempdir()
    )
    if done.returncode:
        raise SystemExit(f"{checkout}: {code}\n{done.stderr}")
    return float(done.stdout)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("other", type=Path, help="a folder with the older code")
    asked.add_argument("--turns", type=int, default=5)
    asked.add_argument("--only", default="", help="only what has this in its name")
    asked.add_argument("--first", action="store_true", help="only the first compiled call, with an empty cache")
    options = asked.parse_args()
    checkouts = [options.other.resolve(), HERE]
    what = {"first compiled call, empty cache (elapsed)": FIRST} if options.first else MEASURED
    print("| | before | now | now / before |\n|---|---|---|---|", flush=True)
    for name, code in what.items():
        if options.only not in name:
            continue
        least = [float("inf")] * 2
        for _ in range(options.turns):
            for i, checkout in enumerate(checkouts):
                with tempfile.TemporaryDirectory() as empty:
                    least[i] = min(least[i], measured(code, checkout, empty if options.first else None))
        print(f"| {name} | {seconds(least[0])} | {seconds(least[1])} | {least[1] / least[0]:.2f} |", flush=True)


def seconds(t: float) -> str:
    """A time in a unit that reads well."""
    return f"{1e6 * t:,.0f} µs" if t < 1e-3 else f"{1e3 * t:,.1f} ms" if t < 1 else f"{t:.2f} s"


if __name__ == "__main__":
    main()
