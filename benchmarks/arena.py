"""All policies on all instances of the arena, within a budget; writes ARENA.md, arena/results.csv and the pictures.

    python benchmarks/arena.py [--minutes 22] [--workers 2] [--policy LinTS …] [--group paper …] [--longest 1000000]

Stop it whenever you like: the next call goes on where it was stopped (``--folder`` holds what is finished; delete it to begin
anew; each state of allocopt's code has
its own). With ``--scheduler tcp://…`` it plays on a Dask cluster, whose workers must be able to import
`arena`.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy loads

import argparse
import time
from pathlib import Path

from arena.entries import DRAWN, INSTANCES, POLICIES
from arena.figures import Figures
from arena.page import page, power
from arena.playing import HORIZONS, Arena

from allocopt import plots
from allocopt.base.long_runs.own_code import code_digest

HERE = Path(__file__).parent


def main() -> None:
    """Plan, play, write."""
    given = _arguments()
    begun = time.perf_counter()
    entries = tuple(e for e in INSTANCES if not given.group or e.group in given.group)
    names = tuple(p for p in POLICIES if not given.policy or p in given.policy)
    client = None
    if given.scheduler:
        from distributed import Client

        client = Client(given.scheduler)
    arena = Arena(60.0 * given.minutes, given.workers, Path(given.folder), entries, names, given.longest, client, _say)
    longest = power(min(given.longest, max(HORIZONS)))
    _say(
        f"{len(names)} policies on {len(entries)} instances, n = {power(min(HORIZONS))} to {longest}: about {given.minutes:g} minutes "
        f"with {given.workers} workers (less if a part is in {given.folder}), then some seconds to write"
    )
    arena.play()
    figures = Figures(arena.played, entries, names)
    out = Path(given.out)
    (out / "arena").mkdir(parents=True, exist_ok=True)
    pictures = []
    for n in (n for n in figures.horizons() if n in (10**4, 10**5, 10**6)):
        name = f"profile-{n}.png"
        figure = plots.performance_profiles(
            {p: x for p, x in figures.scores(n).items() if p in DRAWN},
            title=f"n = {power(n)}, {len(entries)} instances",
            width=6.0,
        )
        plots.save(figure, out / "arena" / name, overwrite=True)
        pictures.append(name)
    (out / "arena" / "results.csv").write_text(figures.csv(), encoding="utf-8")
    (out / "ARENA.md").write_text(page(arena, figures, pictures), encoding="utf-8")
    _say(f"{out / 'ARENA.md'} after {time.perf_counter() - begun:.0f} s")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=22.0, help="of wall clock, for playing")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--policy", action="append", choices=POLICIES, help="may be repeated; all by default")
    parser.add_argument(
        "--group", action="append", choices=sorted({e.group for e in INSTANCES}), help="may be repeated"
    )
    parser.add_argument("--longest", type=int, default=10**8, help="the longest horizon")
    parser.add_argument("--scheduler", help="the address of a Dask scheduler")
    parser.add_argument(
        "--folder",
        default=str(HERE.parent / "build" / "arena" / str(code_digest())[:12]),
        help="where finished cells are kept",
    )
    parser.add_argument("--out", default=str(HERE), help="where ARENA.md and the folder arena go")
    return parser.parse_args()


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
