"""Published constants, computed again: writes the proof files that ship with the package, and docs/constants.md.

python benchmarks/constants.py
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from allocopt.insight.constants import CONSTANTS, check, proven
from allocopt.insight.constants.page import page
from allocopt.insight.constants.shipped import write_proofs

ROOT = Path(__file__).parent.parent


def main() -> int:
    """Solve, write, prove again; ends with 1 if a row is not certified or a proof does not hold."""
    folder = ROOT / "allocopt" / "insight" / "constants" / "proofs"
    shutil.rmtree(folder, ignore_errors=True)
    wrong = [f"{name}: not certified" for name in write_proofs(folder)]
    for constant in CONSTANTS:
        wrong += [f"{constant.name}: {problem}" for problem in check(constant)]
    rows = [proven(constant) for constant in CONSTANTS]
    (ROOT / "docs" / "constants.md").write_text(page(rows), encoding="utf-8")
    for row in rows:
        print(f"{row.constant.name}: {row.finding.verdict.value}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
