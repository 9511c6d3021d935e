"""Progress on a terminal's standard error, for what turns out to take longer than two seconds."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.status import Status

from allocopt.insight.instances.files import Instance, read_instance

__all__ = ["SECONDS_BEFORE_PROGRESS", "late", "read_with_progress"]

SECONDS_BEFORE_PROGRESS = 2.0
"""So long a command works before it shows its progress: what is done by then needs no progress line."""


@contextlib.contextmanager
def late(bars: Bars | Status) -> Iterator[None]:
    """Bars that appear, in a timer's thread, when two seconds have passed, whether or not there is any news."""
    lock = threading.Lock()
    over = False

    def appear() -> None:
        with lock:
            if not over:
                bars.start()

    timer = threading.Timer(SECONDS_BEFORE_PROGRESS, appear)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            over = True
            bars.stop()


def read_with_progress(file: Path) -> Instance:
    """The instance of a file; how much of a large one is read is shown meanwhile."""
    console = Console(stderr=True)
    if not console.is_terminal:
        return read_instance(file)
    columns = (TextColumn("reading {task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f} %"))
    bars = Bars(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True)
    name = file.name.encode("utf-8", "backslashreplace").decode("utf-8")  # it may hold bytes that are no text
    task = bars.add_task(escape(name), total=1.0)
    with late(bars):
        return read_instance(file, lambda share: bars.update(task, completed=share))
