r"""Large sets of arms: time in units of a pricing pass, the same arms again, memory, files, a cluster, growth, conditioning.

    python benchmarks/scale.py                  everything; writes benchmarks/SCALE.md and benchmarks/growth.png
    python benchmarks/scale.py --only memory    one section, which replaces its old text in SCALE.md
    python benchmarks/scale.py --quick          small sizes, printed only

Arms are those of `random_unit`: `default_rng(0)`, Gaussian unit-norm arms, then a unit θ. Whatever is measured for memory runs in
a process of its own, on a file that yet another process made. Temporary files (up to 1.1 GB) are removed at the end.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy loads; our own threads take the other cores

import argparse
import datetime
import importlib.metadata
import json
import platform
import shutil
import tempfile
import time
from pathlib import Path

from scaling.bounded import section_bounded, section_large_dims
from scaling.common import HERE, ROOM, say
from scaling.conditioning import section_conditioning
from scaling.designs import section_designs
from scaling.growth import section_growth
from scaling.passes import section_again, section_passes
from scaling.processes import TASKS
from scaling.storage import section_mapped, section_memory

from allocopt.base.machine import available_cores

SECTIONS = {
    "passes": section_passes,
    "again": section_again,
    "memory": section_memory,
    "mapped": section_mapped,
    "growth": section_growth,
    "conditioning": section_conditioning,
    "bounded": section_bounded,
    "designs": section_designs,
    "large-dims": section_large_dims,
}


def mark(name: str) -> str:
    """The line of SCALE.md before a section."""
    return f"<!-- {name}: python benchmarks/scale.py --only {name} -->"


def written(found: dict[str, str], old: str, seconds: float) -> str:
    """SCALE.md with the sections found; those that were not measured keep their old text."""
    parts = {}
    for name in SECTIONS:
        if name in found:
            parts[name] = found[name]
        elif mark(name) in old:
            rest = old.partition(mark(name))[2]
            ends = [rest.index(mark(other)) for other in SECTIONS if mark(other) in rest]
            parts[name] = rest[: min(ends, default=len(rest))].strip() + "\n"
    packages = " · ".join(
        f"{p} {importlib.metadata.version(p)}" for p in ("numpy", "scipy", "dask", "distributed", "allocopt")
    )
    head = f"""# Large sets of arms

Written by `python benchmarks/scale.py` (or one section at a time by `--only {"|".join(SECTIONS)}`), last in {seconds:.0f} s on
{datetime.date.today()}: {available_cores()} cores, python {platform.python_version()} · {packages}.
Times depend on what else the machine does; ratios within a table were measured in one run.
"""
    body = "\n".join(f"{mark(name)}\n\n{text}" for name, text in parts.items())
    return f"{head}\n{body}"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="small sizes; nothing is written")
    parser.add_argument("--only", choices=list(SECTIONS), help="one section; the others keep their text in SCALE.md")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        name, *arguments = json.loads(options.task)
        print(json.dumps(TASKS[name](*arguments)))
        return
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="allocopt-scale-") as folder:
        free = shutil.disk_usage(folder).free
        if free < ROOM:
            parser.error(f"{folder}: {free / 1e9:.1f} GB of disk are free, {ROOM / 1e9:g} are needed; set TMPDIR")
        found = {}
        for name, section in SECTIONS.items():
            if options.only in (None, name):
                say(name)
                found[name] = section(options.quick, Path(folder))
    target = HERE / "SCALE.md"
    old = target.read_text(encoding="utf-8") if target.exists() else ""
    text = written(found, "" if options.quick else old, time.perf_counter() - began)
    print(text)
    if not options.quick:
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
