"""Published constants, computed again and proven: what is printed, the proven interval, and a verdict (docs/constants.md).

A row (`Constant`) has the source, the number as it is printed, and the instance as a program. Its proof file ships with the
package, so that `proven` and `check` need no solver. A new row is one more entry of the table in its group's file, and
``make constants``, which writes the proof files and docs/constants.md.
"""

from allocopt.insight.constants.constant import Constant, Finding, Number, Shares, Verdict, finding
from allocopt.insight.constants.shipped import CONSTANTS, Proven, check, named, proof_file, proven

__all__ = ["CONSTANTS", "Constant", "Finding", "Number", "Proven", "Shares", "Verdict", "check", "finding", "named"]
__all__ += ["proof_file", "proven"]


def __dir__() -> list[str]:
    return sorted(__all__)
