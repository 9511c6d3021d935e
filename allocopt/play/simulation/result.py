"""SimulationResult: regret and pulls of many runs of a policy, and its .parquet and .json files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from allocopt.base.atomic_files import file_path, whole_file
from allocopt.base.errors import AllocoptError, InvalidFile, InvalidOption, MethodUnavailable
from allocopt.base.json_data import read_json
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, IntArray, vector, whole_number
from allocopt.model.bandit import LinearBandit
from allocopt.model.contexts import ContextualBandit
from allocopt.model.tables import Table, Tabular, drawn
from allocopt.policies.phase import Phase

__all__ = ["SimulationCallback", "SimulationResult", "load_simulation", "phase_rows", "phases_from_rows"]

FORMAT = "allocopt-simulation"
VERSION = 1

SimulationCallback = Callable[[int, int, float], object]
"""Called with (runs done, runs in all, seconds) whenever a chunk of runs is finished; what it raises stops the simulation."""


@dataclass(frozen=True, eq=False)
class SimulationResult(Tabular):
    """Many independent runs of one policy on one bandit.

    Attributes
    ----------
    policy : str
        Its name, with parameters that are not the default.
    parameters : mapping
        All its parameters.
    bandit : LinearBandit or ContextualBandit
        With contexts, "arm" below means a pair (context, arm), as the bandit numbers them.
    horizon : int
        n: the rounds of every run.
    seed : mapping
        ``entropy`` and ``spawn_key`` of the numpy SeedSequence: the same seed gives the same result again.
    times : array, shape (m,)
        Rounds after which the regret was taken; the last one is the horizon.
    regret : array, shape (runs, m)
        Pseudo-regret Σ_{s<=t} Δ_{A_s}, exact (pulls times gaps).
    pulls : array, shape (runs, k)
        Pulls of every arm in all rounds.
    phases : tuple
        For each run its `Phase` records, where the policy has phases.
    notes : tuple of str
        What to know before believing the numbers.
    pulls_at_times : array, shape (runs, m, k), or None
        Pulls of every arm at each of the times, where they were kept; `pulls_at` reads them.
    conditions : mapping
        What differed from Gaussian noise of the bandit's variance, told at once: ``noise``, ``assumed_noise_variance``, ``delay``,
        ``batch``, ``blockwise`` as `simulate` was given them.
    """

    policy: str
    parameters: Mapping[str, Any]
    bandit: LinearBandit | ContextualBandit
    horizon: int
    seed: Mapping[str, Any]
    times: IntArray
    regret: Array
    pulls: IntArray
    phases: tuple[tuple[Phase, ...], ...] = ()
    notes: tuple[str, ...] = ()
    pulls_at_times: IntArray | None = None
    conditions: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for array in (self.times, self.regret, self.pulls, self.pulls_at_times):
            if array is not None:
                array.flags.writeable = False

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return len(self.regret)

    @property
    def final_regret(self) -> Array:
        """Pseudo-regret of each run after the last round."""
        last: Array = self.regret[:, -1]
        return last

    @property
    def mean(self) -> Array:
        """Mean regret at each of the times."""
        mean: Array = self.regret.mean(axis=0)
        return mean

    @property
    def standard_error(self) -> Array:
        """Standard error of ``mean``; inf with a single run, which says nothing about it."""
        if self.runs == 1:
            return np.full(len(self.times), np.inf)
        error: Array = self.regret.std(axis=0, ddof=1) / np.sqrt(self.runs)
        return error

    def quantiles(self, q: float | Sequence[float]) -> Array:
        """Quantiles of the regret over runs at each of the times, one row per level in [0, 1]."""
        levels = vector("q", [q] if isinstance(q, Real) else q, InvalidOption)
        if ((levels < 0) | (levels > 1)).any():
            raise InvalidOption(f"q: expected levels between 0 and 1, got {levels.tolist()}")
        found: Array = np.quantile(self.regret, levels, axis=0)
        return found

    def pulls_at(self, t: Any) -> IntArray:
        """Pulls of every arm after round t, one of ``times``: shape (runs, k); (runs, len(t), k) for several.

        `allocopt.audit` takes it as it is: ``audit(r.bandit, r.pulls_at([100, 1000]), [100, 1000])``.

        Examples
        --------
        >>> import allocopt as ao
        >>> bandit = ao.LinearBandit([[1, 0], [0, 1]], [1, 0])
        >>> r = ao.simulate("LinTS", bandit, horizon=1000, runs=3, rng=0)
        >>> r.pulls_at(100).sum(axis=1), ao.audit(bandit, r.pulls_at([100, 1000]), [100, 1000]).n
        (array([100, 100, 100]), array([ 100, 1000]))
        """
        if self.pulls_at_times is None:
            raise InvalidOption("t: the pulls were kept at the end only; simulate with keep_pulls=True, or fewer times")
        asked = [whole_number("t", x) for x in (list(t) if np.ndim(t) else [t])]
        known = {time: i for i, time in enumerate(self.times.tolist())}
        for x in asked:
            if x not in known:
                raise InvalidOption(f"t: expected one of the recorded times {_few(self.times.tolist())}, got {x}")
        found: IntArray = self.pulls_at_times[:, [known[x] for x in asked]]
        return found if np.ndim(t) else found[:, 0]

    def plot(self, **options: Any) -> Any:
        """`allocopt.plots.regret_curves` of this policy; options as there. Returns a matplotlib Figure."""
        return drawn("regret_curves", {self.policy: self}, **options)

    def _table(self) -> Table:
        low, middle, high = self.quantiles([0.1, 0.5, 0.9])
        columns = {
            "round": self.times, "mean regret": self.mean, "standard error": self.standard_error, "10 %": low, "median": middle,
            "90 %": high,
        }  # fmt: skip
        facts = {"policy": self.policy, "runs": self.runs, "rounds": self.horizon, **dict.fromkeys(self.notes, "")}
        return Table("Regret", facts, columns, range(len(self.times))[::-1])

    def phase_at(self, run: int, t: int) -> Phase:
        """The phase that round t of a run belonged to."""
        if not self.phases:
            raise InvalidOption(f"policy {self.policy} has no phases")
        if not 0 <= whole_number("run", run) < self.runs:
            raise InvalidOption(f"run: expected a number from 0 to {self.runs - 1}, got {run!r}")
        now = whole_number("t", t)
        for phase in self.phases[run]:
            if phase.start <= now < phase.start + phase.length:
                return phase
        raise InvalidOption(f"t: expected a round from 1 to {self.horizon}, got {t!r}")

    def phase_lengths(self, name: str) -> IntArray:
        """Rounds that each run spent in the phases whose name begins with ``name``; 0 where it had none."""
        return np.array([sum(p.length for p in of_run if p.name.startswith(name)) for of_run in self.phases], np.int64)

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write a .parquet (one row per run) or .json file, complete or not at all."""
        target = file_path(path)
        writers: dict[str, Callable[[SimulationResult], bytes]] = {".parquet": _parquet, ".json": _json}
        writer = writers.get(target.suffix.lower())
        if writer is None:
            raise InvalidFile(f"{target}: expected a name that ends in .parquet or .json")
        with whole_file(target, overwrite=overwrite, what="the result") as out:
            out.write(writer(self))

    def __repr__(self) -> str:
        final = f"{self.mean[-1]:.6g} ± {self.standard_error[-1]:.2g}"
        return f"SimulationResult({self.policy!r}, horizon={self.horizon}, runs={self.runs}, final regret {final})"


def _few(times: list[int]) -> str:
    listed = [str(t) for t in times]
    return ", ".join(listed if len(listed) <= 8 else [*listed[:3], "…", *listed[-3:]])


def phase_rows(phases: tuple[tuple[Phase, ...], ...]) -> list[list[dict[str, Any]]]:
    """Phases as plain data."""
    return [[{"name": p.name, "start": p.start, "length": p.length, "ended": p.ended} for p in run] for run in phases]


def phases_from_rows(rows: Any) -> tuple[tuple[Phase, ...], ...]:
    """The inverse of `phase_rows`."""
    return tuple(
        tuple(Phase(str(p["name"]), int(p["start"]), int(p["length"]), str(p["ended"])) for p in run) for run in rows
    )


def _heading(result: SimulationResult) -> dict[str, Any]:
    """All but what there is one of per run."""
    bandit = result.bandit
    return {
        "format": FORMAT,
        "version": VERSION,
        "policy": result.policy,
        "parameters": dict(result.parameters),
        "horizon": result.horizon,
        "seed": dict(result.seed),
        "times": result.times.tolist(),
        "notes": list(result.notes),
        "conditions": dict(result.conditions),
        "bandit": {
            "arms": bandit.arms.tolist(),
            "theta": bandit.theta.tolist(),
            "noise_variance": np.asarray(bandit.noise_variance).tolist(),
            "tie_tolerance": bandit.tie_tolerance,
            "optimal_arms": bandit.optimal_arms.tolist(),
            "labels": None if bandit.labels is None else list(bandit.labels),
            **(
                {"sizes": list(bandit.sizes), "weights": bandit.weights.tolist()}
                if isinstance(bandit, ContextualBandit)
                else {}
            ),
        },
    }


def _json(result: SimulationResult) -> bytes:
    document = {
        **_heading(result),
        "regret": result.regret.tolist(),
        "pulls": result.pulls.tolist(),
        "phases": phase_rows(result.phases),
    }
    if result.pulls_at_times is not None:
        document["pulls_at_times"] = result.pulls_at_times.tolist()
    return (json.dumps(document, allow_nan=False) + "\n").encode()


def _pyarrow(target: str | Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MethodUnavailable(f"{target}: Parquet needs pyarrow: pip install 'allocopt[files]'") from None
    return pyarrow


def _parquet(result: SimulationResult) -> bytes:
    pa = _pyarrow("a .parquet file")
    phase = pa.struct([("name", pa.string()), ("start", pa.int64()), ("length", pa.int64()), ("ended", pa.string())])
    columns = {
        "run": pa.array(np.arange(result.runs)),
        "final_regret": pa.array(result.final_regret),
        "regret": pa.array(result.regret.tolist(), type=pa.list_(pa.float64())),
        "pulls": pa.array(result.pulls.tolist(), type=pa.list_(pa.int64())),
    }
    if result.pulls_at_times is not None:
        flat = result.pulls_at_times.reshape(result.runs, -1)
        columns["pulls_at_times"] = pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])
    if result.phases:
        columns["phases"] = pa.array(phase_rows(result.phases), type=pa.list_(phase))
    table = pa.table(columns).replace_schema_metadata({"allocopt": json.dumps(_heading(result), allow_nan=False)})
    out = pa.BufferOutputStream()
    pa.parquet.write_table(table, out)
    content: bytes = out.getvalue().to_pybytes()
    return content


@spelled
def load_simulation(path: str | PathLike[str]) -> SimulationResult:
    """Read what `SimulationResult.save` wrote."""
    source = file_path(path)
    readers: dict[str, Callable[[Path], dict[str, Any]]] = {".parquet": _read_parquet, ".json": _read_json}
    reader = readers.get(source.suffix.lower())
    if reader is None:
        raise InvalidFile(f"{source}: expected a .parquet or .json file, got {source.suffix or 'no extension'!r}")
    if not source.is_file():
        raise InvalidFile(
            f"{source}: {'expected a file, but it is a directory' if source.is_dir() else 'no such file'}"
        )
    try:
        content = reader(source)
        if content["format"] != FORMAT or content["version"] != VERSION:
            raise ValueError
        return _from_content(content)
    except OSError as error:
        raise InvalidFile(f"{source}: cannot be read: {error.strerror or error}") from None
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, InvalidFile | MethodUnavailable):
            raise
        detail = f" ({error})" if isinstance(error, AllocoptError) else ""
        raise InvalidFile(
            f"{source}: expected a saved simulation, but it is damaged or something else{detail}"
        ) from None


def _from_content(content: dict[str, Any]) -> SimulationResult:
    data = content["bandit"]
    given = data["noise_variance"], data["tie_tolerance"], data["optimal_arms"], data["labels"]
    bandit: LinearBandit | ContextualBandit
    if "sizes" in data:
        contexts = np.split(np.array(data["arms"], dtype=np.float64), np.cumsum(data["sizes"])[:-1])
        bandit = ContextualBandit(tuple(contexts), data["theta"], data["weights"], *given)
    else:
        bandit = LinearBandit(data["arms"], data["theta"], *given)
    times = np.array(content["times"], dtype=np.int64)
    regret = np.array(content["regret"], dtype=np.float64)
    pulls = np.array(content["pulls"], dtype=np.int64)
    if regret.ndim != 2 or regret.shape[1] != len(times) or pulls.shape != (len(regret), bandit.n_arms):
        raise ValueError
    kept = content.get("pulls_at_times")  # not in files of version 1 that are older
    at_times = None if kept is None else np.array(kept, np.int64).reshape(len(regret), len(times), bandit.n_arms)
    phases = phases_from_rows(content["phases"])
    if phases and len(phases) != len(regret):
        raise ValueError
    return SimulationResult(
        str(content["policy"]), dict(content["parameters"]), bandit, int(content["horizon"]), dict(content["seed"]),
        times, regret, pulls, phases, tuple(content["notes"]), at_times, dict(content.get("conditions", {})),
    )  # fmt: skip


def _read_json(source: Path) -> dict[str, Any]:
    return dict(read_json(source))


def _read_parquet(source: Path) -> dict[str, Any]:
    pa = _pyarrow(source)
    try:
        table = pa.parquet.read_table(source)
    except pa.ArrowException:
        raise InvalidFile(f"{source}: expected a Parquet file, but it is damaged or something else") from None
    heading = json.loads(table.schema.metadata[b"allocopt"])
    phases = table.column("phases").to_pylist() if "phases" in table.column_names else []
    return {
        **heading,
        "regret": table.column("regret").to_pylist(),
        "pulls": table.column("pulls").to_pylist(),
        "phases": phases,
        "pulls_at_times": _flat_pulls(table),
    }


def _flat_pulls(table: Any) -> Any:
    if "pulls_at_times" not in table.column_names:
        return None
    return table.column("pulls_at_times").combine_chunks().flatten().to_numpy()
