"""study(): a declared sweep over a family of instances → one tidy, certified Parquet table; stopped and resumed at will."""

from __future__ import annotations

import collections
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from allocopt.base.atomic_files import file_path
from allocopt.base.errors import Interrupted, InvalidOption
from allocopt.base.long_runs.cluster import check_client
from allocopt.base.machine import available_cores
from allocopt.base.spelling import spelled
from allocopt.base.validation import whole_number
from allocopt.insight.study.spec import StudySpec
from allocopt.insight.study.store import StudyFolder, needs_pyarrow
from allocopt.insight.study.workers import Blocks, Done, environment, on_dask, on_this_machine
from allocopt.model.solution import Status
from allocopt.model.tables import Table, Tabular, drawn

__all__ = ["StudyProgress", "StudyResult", "StudySpec", "study"]


@dataclass(frozen=True)
class StudyProgress:
    """What a callback is told."""

    done: int
    """Instances that are finished and kept, those of earlier starts included."""
    total: int
    failed: int
    """Rows of this start that are FAILED."""
    seconds: float
    """Since this start."""
    seconds_left: float | None
    """At the pace of the last minute; None until two blocks are finished."""


_PACE_SECONDS = 60.0

StudyCallback = Callable[[StudyProgress], object]
"""Called after every finished block, and every two seconds in between; what it raises stops the study, which can be resumed."""


@dataclass(frozen=True, eq=False)
class StudyResult(Tabular):
    """A finished study.

    Attributes
    ----------
    spec : StudySpec
        What was asked for.
    path : Path
        The table: a Parquet file.
    table : pyarrow.Table
        One row per instance and quantity.
    computed : int
        Instances that this start computed; the others were there already.
    seconds : float
        How long this start took.
    damaged : tuple of str
        Ranges of instances whose part was damaged on the disk, and which were computed again.
    """

    spec: StudySpec
    path: Path
    """The table: a Parquet file."""
    table: Any = field(repr=False)
    """The table: a ``pyarrow.Table`` with one row per instance and quantity."""
    computed: int
    """Instances that this start computed; the others were there already."""
    seconds: float
    damaged: tuple[str, ...] = ()
    """Ranges of instances ("0-255") whose part was damaged, and which were computed again."""

    @property
    def counts(self) -> dict[str, int]:
        """How many rows have which status."""
        counted = {row["values"]: row["counts"] for row in self.table["status"].value_counts().to_pylist()}
        return {name: counted[name] for name in sorted(counted)}

    @property
    def certified(self) -> int:
        """Rows whose bounds are within the tolerance, without any assumption."""
        return self.counts.get(Status.CERTIFIED.name, 0)

    @property
    def conditional(self) -> int:
        """Rows whose bounds are within the tolerance under what the column ``assumptions`` says."""
        return self.counts.get(Status.CONDITIONAL.name, 0)

    @property
    def inaccurate(self) -> int:
        """Rows whose bounds hold, but are wider than the tolerance."""
        return self.counts.get(Status.INACCURATE.name, 0)

    @property
    def failed(self) -> int:
        """Rows without a value; their reason says why."""
        return self.counts.get(Status.FAILED.name, 0)

    def rows(self, quantity: str) -> Any:
        """The rows of one quantity, a ``pyarrow.Table`` with one row per instance."""
        import pyarrow.compute

        if quantity not in self.spec.quantities:
            raise InvalidOption(f"quantity: expected one of {', '.join(self.spec.quantities)}, got {quantity!r}")
        return self.table.filter(pyarrow.compute.equal(self.table["quantity"], quantity))

    def summary(self) -> list[dict[str, Any]]:
        """Per quantity: rows, how many of them are what, and the smallest, median and largest value."""
        lines = []
        for quantity in self.spec.quantities:
            rows = self.rows(quantity)
            status = rows["status"].to_pylist()
            values = np.sort(rows["value"].drop_null().to_numpy())
            spread = [values[0], np.median(values), values[-1]] if len(values) else [None] * 3
            lines.append({
                "quantity": quantity, "rows": len(status), "certified": status.count(Status.CERTIFIED.name),
                "conditional": status.count(Status.CONDITIONAL.name),
                "inaccurate": status.count(Status.INACCURATE.name), "failed": status.count(Status.FAILED.name),
                **{name: None if x is None else float(x) for name, x in zip(("min", "median", "max"), spread, strict=True)},
            })  # fmt: skip
        return lines

    def to_frame(self) -> Any:
        """The whole table as a pandas data frame: one row per instance and quantity."""
        return self.table.to_pandas()

    def plot(self, quantity: str | None = None, **options: Any) -> Any:
        """`allocopt.plots.study_chart` of this study: a quantity against what varies. Returns a matplotlib Figure."""
        return drawn("study_chart", self, quantity, **options)

    def _table(self) -> Table:
        lines = self.summary()
        columns = {name: [np.nan if line[name] is None else line[name] for line in lines] for name in lines[0]}
        facts = {"study": self.spec.name, "instances": self.spec.n_instances, "table": str(self.path)}
        return Table("Study", facts, columns)

    def reasons(self) -> dict[str, int]:
        """Why rows are inaccurate or failed, and how many for each reason; the most frequent first."""
        return self._texts("reason")

    def assumptions(self) -> dict[str, int]:
        """What rows assume, and how many assume it; the most frequent first."""
        return self._texts("assumptions")

    def _texts(self, column: str) -> dict[str, int]:
        counted = {row["values"]: row["counts"] for row in self.table[column].value_counts().to_pylist()}
        counted.pop(None, None)
        return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}={n}" for name, n in self.counts.items())
        return f"StudyResult({self.spec.name!r}, instances={self.spec.n_instances}, {counts}, path={str(self.path)!r})"


@spelled
def study(
    spec: StudySpec | Mapping[str, Any] | str | PathLike[str],
    folder: str | PathLike[str],
    *,
    workers: int | None = None,
    client: Any = None,
    callback: StudyCallback | None = None,
) -> StudyResult:
    """Compute the quantities of every instance of a family, with certified bounds, as one Parquet table.

    Parameters
    ----------
    spec : StudySpec, mapping or path of a TOML file
        The family, the design of its parameters and the quantities; docs/study.md has all keys.
    folder : path
        Where the study is kept: made if it does not exist, resumed if it holds this very study, refused if anything else.
        Whenever the process is killed, the next call goes on; what is finished is not computed again.
    workers : int, optional
        Processes; as many as there are cores by default. The table does not depend on it. With 0, everything is computed in this
        process, and a function of yours that crashes or never ends takes it along.
    client : dask.distributed.Client or str, optional
        A Dask cluster to use instead, or the address of its scheduler.
    callback : callable, optional
        Called with a `StudyProgress` after every finished block, and every two seconds in between.

    Returns
    -------
    StudyResult
        Instances that cannot be made or solved are rows with status FAILED, null values and their reason.

    Examples
    --------
    >>> import tempfile
    >>> spec = {"family": {"name": "counter-example"}, "grid": {"epsilon": [0.2, 0.01]}, "quantities": ["c", "ratio"]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = study(spec, folder)
    >>> result.counts
    {'CERTIFIED': 4}
    >>> [round(x, 6) for x in result.rows("ratio")["value"].to_pylist()]
    [1.5, 25.25]
    """
    if isinstance(spec, str | PathLike):
        spec = StudySpec.from_toml(spec)
    elif not isinstance(spec, StudySpec):
        spec = StudySpec.from_dict(spec)
    if workers is not None:
        workers = whole_number("workers", workers)
        if client is not None:
            raise InvalidOption("workers: a Dask cluster brings its own workers; give workers or client, not both")
    if client is not None and not isinstance(client, str):
        check_client(client)
    if callback is not None and not callable(callback):
        raise InvalidOption(f"callback: expected a function, got a {type(callback).__name__}")
    if not isinstance(folder, str | PathLike):
        raise InvalidOption(f"folder: expected a path, got a {type(folder).__name__}")
    needs_pyarrow()
    started = time.perf_counter()
    identity = {**spec.canonical(), "with": environment()}
    with StudyFolder.open(
        file_path(folder, "folder"), identity, spec.parameters, len(spec.quantities), spec.n_instances
    ) as store:
        missing = store.missing()
        before = spec.n_instances - sum(len(part) for part in missing)
        blocks = Blocks(spec, missing)
        computed = failed = 0
        pace = _Pace()
        try:
            with _finished_blocks(
                blocks, bool(missing), available_cores() if workers is None else workers, client
            ) as finished:
                for done in finished:
                    if done is not None:
                        blocks.learn(done)
                        store.add(done.first, _columns(spec, done))
                        computed += len(done.points)
                        failed += sum(answer.status == Status.FAILED.name for row in done.answers for answer in row)
                    now = time.perf_counter()
                    left = pace.seconds_left(now, computed, spec.n_instances - before - computed)
                    if callback is not None:
                        callback(StudyProgress(before + computed, spec.n_instances, failed, now - started, left))
        except KeyboardInterrupt:
            kept = f"{before + computed} of {spec.n_instances} instances are kept in {store.run.folder}"
            raise Interrupted(None, f"interrupted; {kept}, and the next start goes on from there") from None
        table = store.assemble()
        seconds = time.perf_counter() - started
        return StudyResult(spec, store.table_path, table, computed, seconds, tuple(store.damaged))


class _Pace:
    """How long the rest takes, by what was finished in the last minute: rows that turn slow, or fast, are noticed."""

    def __init__(self) -> None:
        self._seen: collections.deque[tuple[float, int]] = collections.deque()

    def seconds_left(self, now: float, computed: int, todo: int) -> float | None:
        """None until two blocks are finished: the first one loads and compiles."""
        if computed and (not self._seen or computed > self._seen[-1][1]):
            self._seen.append((now, computed))
        while len(self._seen) > 2 and now - self._seen[1][0] > _PACE_SECONDS:
            self._seen.popleft()
        if len(self._seen) < 2:
            return None
        since, counted = self._seen[0]
        return (now - since) / (computed - counted) * todo


@contextlib.contextmanager
def _finished_blocks(blocks: Blocks, any_left: bool, workers: int, client: Any) -> Iterator[Iterator[Done | None]]:
    """The blocks as they get finished; the workers are stopped at the end, also when an error ends it."""
    if not any_left:
        yield iter(())
        return
    found = on_this_machine(blocks, workers) if client is None else on_dask(blocks, client)
    with contextlib.closing(found) as finished:
        yield finished


def _columns(spec: StudySpec, done: Done) -> dict[str, list[Any]]:
    """A block's answers as columns of the table: instance by instance, quantities in the order of the spec."""
    each = len(spec.quantities)
    count = len(done.points)
    columns: dict[str, list[Any]] = {
        "instance": [i for i in range(done.first, done.first + count) for _ in range(each)]
    }
    for name in spec.parameters:
        columns[name] = [point[name] for point in done.points for _ in range(each)]
    columns["quantity"] = list(spec.quantities) * count
    for name in ("value", "lower", "upper", "status", "reason", "assumptions"):
        columns[name] = [getattr(answer, name) for row in done.answers for answer in row]
    return columns
