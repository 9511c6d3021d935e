"""Where arms live: in memory, in a memory-mapped file, or on a Dask cluster.

Large sets of arms are seen through a small protocol only: their shape, some rows by index, and a scan that applies a task
to every block of rows, wherever that block is, and brings back what the tasks return. Nothing here knows what is computed.
"""

from allocopt.model.arms.listed import ListedArms
from allocopt.model.arms.on_dask import DaskArms, dask_npy, on_client
from allocopt.model.arms.opening import open_store
from allocopt.model.arms.store import ArmStore

__all__ = ["ArmStore", "DaskArms", "ListedArms", "dask_npy", "on_client", "open_store"]


def __dir__() -> list[str]:
    return sorted(__all__)
