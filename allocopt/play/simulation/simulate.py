r"""simulate(): many independent runs of a policy on a bandit, with exact pseudo-regret.

Run i has two random streams of its own, (seed, i, 0) for the noise and (seed, i, 1) for the policy. So a result depends on
neither the number of workers nor the order of the runs, and policies that are given the same seed meet the same noise
in the same rounds.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
import time
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from allocopt.base.atomic_files import file_path
from allocopt.base.compiling import say_before
from allocopt.base.conversion import NotAnArray, as_array
from allocopt.base.errors import Interrupted, InvalidOption
from allocopt.base.long_runs.children import Limits
from allocopt.base.long_runs.own_code import check_unchanged
from allocopt.base.machine import available_cores
from allocopt.base.spelling import parameters_that_do_not_fit, spelled
from allocopt.base.validation import IntArray, positive_number, whole_number
from allocopt.model.bandit import LinearBandit
from allocopt.model.contexts import ContextualBandit
from allocopt.model.programs.instead import no_bandit
from allocopt.play.simulation.conditions import Conditions
from allocopt.play.simulation.duration import warn_if_long
from allocopt.play.simulation.identity import identity
from allocopt.play.simulation.result import SimulationCallback, SimulationResult
from allocopt.play.simulation.runs import Environment, Experiment, played
from allocopt.play.simulation.store import Chunk, Store
from allocopt.policies.base import COMPILED, LEAST_HORIZON, Policy
from allocopt.policies.parsing import parse
from allocopt.policies.schedule.rounding import LONGEST

__all__ = ["default_times", "simulate"]

_TIMES_PER_DECADE = 10
_MANY_ROUNDS = 10**8  # from here on starting other processes (a second or two) pays
_CHUNK_ROUNDS = {
    True: 2 * 10**7,
    False: 2 * 10**5,
}  # a chunk takes a few seconds, compiled or not: little is lost by a kill
_BLOCK_ROUNDS = 10**5  # what a run played block by block costs, whatever its horizon, in rounds
_MOST_NUMBERS = 10**9  # in a result (8 GB): beyond, a simulation would end in a lack of memory, perhaps after days
_MANY_PULLS = 5 * 10**7  # pull counts (0.4 GB) that are kept without being asked for
_LEAST_CHUNKS = 16  # where there are as many runs: so that workers stay busy and progress is seen


@spelled
def simulate(
    policy: Any,
    bandit: LinearBandit | ContextualBandit,
    horizon: int,
    runs: int,
    *,
    rng: int | np.random.Generator | np.random.SeedSequence | None = None,
    times: Any = None,
    environment: Environment | None = None,
    noise: str = "gaussian",
    assumed_noise_variance: Any = None,
    delay: int = 0,
    batch: int = 1,
    blockwise: bool = False,
    keep_pulls: bool | None = None,
    workers: int | None = None,
    client: Any = None,
    run_seconds: float | None = None,
    run_gigabytes: float | None = None,
    checkpoint: str | PathLike[str] | None = None,
    callback: SimulationCallback | None = None,
) -> SimulationResult:
    r"""Play a policy many times and report its exact pseudo-regret Σ_t Δ_{A_t}.

    Parameters
    ----------
    policy : Policy, str or object with ``start``
        One of `allocopt.policies`, its name as on the command line ("LinUCB:a=2"), or your own (docs/policies.md).
    bandit : LinearBandit or ContextualBandit
        Rewards are ⟨x, θ⟩ plus Gaussian noise of its variance. Several optimal arms are fine: none of them costs anything. With
        contexts each round draws one by its weight, and regret is against the best arm of that context (LinUCB, LinTS, OAM).
    horizon : int
        n, at least 3.
    runs : int
        How many independent runs.
    rng : int, Generator or SeedSequence, optional
        Where randomness comes from. A Generator is asked for a new stream, so the next call with it differs; None takes
        fresh entropy, or with a ``checkpoint`` that was begun before, the seed found there. ``result.seed`` has it.
    times : array_like of int, optional
        Rounds after which to take the regret; by default ten per factor of ten. The horizon is always added.
    environment : callable, optional
        ``environment(arm, t, rng)`` gives the rewards instead; the regret is still that of ``bandit``. Interpreted.
    noise : {"gaussian", "bernoulli", "student-t:ν"}
        The law of the rewards: normal; 1 with probability ⟨x, θ⟩, which must be in [0, 1], else 0; or Student's t with ν > 2
        degrees of freedom, scaled to the bandit's variance (heavy tails).
    assumed_noise_variance : float or array_like, optional
        σ² that the policy is told instead of the bandit's, to see what a wrong belief costs.
    delay, batch : int
        The reward of round t is told after round t + delay, and only after rounds that are multiples of ``batch``. Until it has
        the rewards of its first rounds (one per spanner arm, say) a policy plays their arms in turn.
    blockwise : bool
        Draw the rewards of all rounds in which the policy does not look as one sum: the same law (not the same numbers), and
        10⁹ rounds in the time of the decisions. For policies that look seldom: `OptimalTracking`, `PhasedElimination`.
    keep_pulls : bool, optional
        Whether to keep the pulls at all ``times``, for `SimulationResult.pulls_at`; by default if they are at most 5·10⁷ numbers.
    workers : int, optional
        Processes. By default 1 for less than 10⁸ rounds in all, else one per core.
    client : dask.distributed.Client or str, optional
        Plays the runs on a Dask cluster instead: a client, or the address of a scheduler.
    run_seconds, run_gigabytes : float, optional
        What a run may take, in time (on average over its chunk) and memory. With either, all runs are played in other processes, also
        with one worker: a policy or environment of yours that loops for ever, fills the memory, exits or crashes ends the
        simulation with an error that names the runs, not this process. (A run cannot be left out: the mean would be biased.)
    checkpoint : path, optional
        A folder that keeps every finished chunk of runs. The same call with the same folder goes on where it was stopped, by
        Ctrl-C, kill -9 or a power cut; a folder of another experiment is refused.
    callback : callable, optional
        Called with (runs done, runs, seconds) after every chunk.

    Returns
    -------
    SimulationResult

    Examples
    --------
    >>> import allocopt as ao
    >>> bandit = ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.2]], [1, 0])
    >>> r = simulate("LinTS", bandit, horizon=1000, runs=20, rng=0)
    >>> r.times[-3:], r.regret.shape == (20, len(r.times)), r.pulls.sum(axis=1)[:3]
    (array([ 631,  794, 1000]), True, array([1000, 1000, 1000]))
    """
    started = time.perf_counter()
    if not isinstance(bandit, LinearBandit | ContextualBandit):
        order = "simulate(policy, bandit, horizon, runs)"
        raise no_bandit(bandit, policy, order, wanted="a LinearBandit or a ContextualBandit")
    checked = _checked_policy(policy)
    horizon = _checked_horizon(horizon)
    grid = default_times(horizon) if times is None else _checked_times(times, horizon)
    keep = _checked_keep(keep_pulls, runs, len(grid) * bandit.n_arms)
    runs = _checked_runs(runs, len(grid) + bandit.n_arms * (len(grid) if keep else 1))
    if environment is not None and not callable(environment):
        raise InvalidOption(f"environment: expected a function of (arm, t, rng), got a {type(environment).__name__}")
    if environment is not None and (parameters := parameters_that_do_not_fit(environment, 3)) is not None:
        raise InvalidOption(f"environment: expected a function of (arm, t, rng), got one of {parameters}")
    if callback is not None and not callable(callback):
        raise InvalidOption(f"callback: expected a function of (done, runs, seconds), got a {type(callback).__name__}")
    if checkpoint is not None and not isinstance(checkpoint, str | PathLike):
        raise InvalidOption(f"checkpoint: expected the path of a folder, got a {type(checkpoint).__name__}")
    limits = _checked_limits(run_seconds, run_gigabytes)
    folder = None if checkpoint is None else file_path(checkpoint, "checkpoint")
    with Store.open(folder) as store:
        entropy, spawn_key = _seed(rng, None if store is None else store.seed)
        conditions = Conditions.checked(bandit, noise, assumed_noise_variance, delay, batch, blockwise)
        experiment = Experiment(checked, bandit, horizon, grid, entropy, spawn_key, environment, conditions, keep)
        contexts = isinstance(bandit, ContextualBandit)
        conditions.check_policy(checked, experiment.policy_name, environment is not None, contexts)
        notes = _notes(experiment)
        if experiment.compiled:
            loop = checked.run_contexts if contexts else checked.run_blocks if blockwise else checked.run
            say_before(f"simulate, {experiment.policy_name},", loop)
        size = _chunk_size(experiment, runs)
        chunks: dict[int, Chunk] = {}
        missing = [range(runs)]
        if store is not None:
            store.run.begin(identity(experiment, runs))
            chunks = {chunk.first: chunk for chunk in store.chunks()}
            missing = store.run.missing(runs)
        todo = [(rows[i], min(rows[i] + size, rows.stop)) for rows in missing for i in range(0, len(rows), size)]
        done = sum(len(c.regret) for c in chunks.values())
        processes = _checked_workers(workers, client, horizon * (runs - done))
        warn_if_long(experiment, runs - done, min(processes, len(todo)) if client is None else 1)
        under_way = played(experiment, todo, processes, client, limits)
        with _interruptible(lambda: done, runs, folder), contextlib.closing(under_way):
            for chunk in under_way:
                if store is not None:
                    check_unchanged()
                    store.save(chunk)
                chunks[chunk.first] = chunk
                done += len(chunk.regret)
                if callback is not None:
                    callback(done, runs, time.perf_counter() - started)
    ordered = [chunks[first] for first in sorted(chunks)]
    phases = tuple(of_run for chunk in ordered for of_run in chunk.phases)
    pulls = np.concatenate([c.pulls for c in ordered]).reshape(runs, -1, bandit.n_arms)
    return SimulationResult(
        experiment.policy_name,
        _parameters(checked),
        bandit,
        horizon,
        {"entropy": entropy, "spawn_key": list(spawn_key)},
        grid,
        np.concatenate([c.regret for c in ordered]),
        np.ascontiguousarray(pulls[:, -1]),
        phases if any(phases) else (),
        notes,
        pulls if keep else None,
        conditions.as_json(),
    )


@contextlib.contextmanager
def _interruptible(done: Callable[[], int], runs: int, folder: Path | None) -> Iterator[None]:
    """Ctrl-C says what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        kept = (
            "nothing is kept without a checkpoint"
            if folder is None
            else f"{done()} of {runs} runs are kept in {folder}"
        )
        raise Interrupted(None, f"interrupted; {kept}") from None


def default_times(horizon: int) -> IntArray:
    """Ten times per factor of ten, from 1 to the horizon.

    Examples
    --------
    >>> default_times(20)
    array([ 1,  2,  3,  4,  5,  6,  8, 10, 13, 16, 20])
    """
    steps = int(_TIMES_PER_DECADE * math.log10(horizon)) + 1
    grid = np.rint(10.0 ** (np.arange(steps) / _TIMES_PER_DECADE)).astype(np.int64)
    return np.union1d(grid[grid < horizon], [horizon])


# What was asked for


def _checked_policy(policy: Any) -> Any:
    if isinstance(policy, str):
        return parse(policy)
    if isinstance(policy, type):
        raise InvalidOption(f"policy: expected a policy such as {policy.__name__}(), got the class {policy.__name__}")
    if isinstance(policy, Policy) or callable(getattr(policy, "start", None)):
        return policy
    raise InvalidOption(
        f"policy: expected one of allocopt.policies, its name, or an object with start(), got a {type(policy).__name__}"
    )


def _checked_horizon(horizon: Any) -> int:
    n = whole_number("horizon", horizon, InvalidOption, least=LEAST_HORIZON)
    if n > LONGEST:
        raise InvalidOption(f"horizon: expected at most {LONGEST}, got {n}")
    return n


def _checked_runs(runs: Any, numbers: int) -> int:
    checked = whole_number("runs", runs, InvalidOption, least=1)
    most = max(1, _MOST_NUMBERS // numbers)
    if checked > most:
        raise InvalidOption(
            f"runs: expected at most {most} ({numbers} numbers are kept of each, for its times and arms), got {checked}"
        )
    return checked


def _checked_keep(keep: Any, runs: Any, numbers: int) -> bool:
    if keep is None:
        return whole_number("runs", runs, InvalidOption, least=1) * numbers <= _MANY_PULLS
    if not isinstance(keep, bool | np.bool_):
        raise InvalidOption(f"keep_pulls: expected True, False or None, got {keep!r}")
    return bool(keep)


def _checked_times(times: Any, horizon: int) -> IntArray:
    try:
        raw = as_array(times)
    except NotAnArray:
        raw = np.empty(0)
    if raw.ndim != 1 or raw.dtype.kind not in "iuf" or not raw.size or not (raw == np.floor(raw)).all():
        raise InvalidOption("times: expected a list of whole numbers, got something else")
    if raw.min() < 1 or raw.max() > horizon:
        bad = raw.min() if raw.min() < 1 else raw.max()
        raise InvalidOption(f"times: expected rounds from 1 to the horizon {horizon}, got {bad:g}")
    return np.union1d(raw.astype(np.int64), [horizon])


def _checked_workers(workers: int | None, client: Any, rounds: int) -> int:
    if client is not None:
        if workers is not None:
            raise InvalidOption("workers: expected nothing beside a client (the cluster has its own), got both")
        return -1
    if workers is None:
        return 1 if rounds < _MANY_ROUNDS else available_cores()
    return whole_number("workers", workers, InvalidOption, least=1)


def _checked_limits(seconds: Any, gigabytes: Any) -> Limits:
    return Limits.of(
        None if seconds is None else positive_number("run_seconds", seconds),
        None if gigabytes is None else positive_number("run_gigabytes", gigabytes),
    )


def _seed(rng: Any, known: dict[str, Any] | None) -> tuple[Any, tuple[int, ...]]:
    """Entropy and spawn key of the simulation's own SeedSequence; without rng, those of the checkpoint's ``known`` seed."""
    if rng is None:
        if known is not None:
            return known["entropy"], tuple(known["spawn_key"])
        sequence = np.random.SeedSequence()
    elif isinstance(rng, np.random.SeedSequence):
        sequence = rng
    elif isinstance(rng, np.random.Generator):
        source = rng.bit_generator.seed_seq
        if not isinstance(source, np.random.SeedSequence):
            raise InvalidOption(
                "rng: expected a Generator that was made from a SeedSequence (numpy.random.default_rng)"
            )
        sequence = source.spawn(1)[0]
    else:
        sequence = np.random.SeedSequence(whole_number("rng", rng, InvalidOption, least=0))
    entropy: Any = sequence.entropy
    if not isinstance(entropy, int):
        entropy = [int(x) for x in np.ravel(np.asarray(entropy))]
    return entropy, tuple(int(x) for x in sequence.spawn_key)


def _parameters(policy: Any) -> dict[str, Any]:
    """Parameters as JSON data; of a user's policy, whatever its attributes are."""
    own = getattr(policy, "parameters", None)
    if not isinstance(own, dict):
        slots = {k: getattr(policy, k) for kind in type(policy).__mro__ for k in _slots(kind) if hasattr(policy, k)}
        own = {k: v for k, v in {**slots, **getattr(policy, "__dict__", {})}.items() if not k.startswith("_")}
    return {str(k): _parameter_as_json(v) for k, v in own.items()}


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _parameter_as_json(value: Any) -> Any:
    """A parameter as JSON data that is the same in the next process, and differs where the parameter does."""
    if isinstance(value, int | float | str | bool | None.__class__):
        return value if not isinstance(value, float) or math.isfinite(value) else repr(value)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:  # repr() rounds, and leaves the middle out
        return f"array of shape {value.shape}, {value.dtype}, sha256 {hashlib.sha256(value.tobytes()).hexdigest()[:16]}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))  # where an object lies in memory says nothing


def _notes(experiment: Experiment) -> tuple[str, ...]:
    bandit, found = experiment.bandit, []
    best = len(bandit.optimal_arms)
    if best == bandit.n_arms:
        found.append("every arm is optimal: the regret is zero whatever is played")
    elif best > getattr(bandit, "n_contexts", 1):
        found.append(
            f"{best} {'arms' if isinstance(bandit, LinearBandit) else 'pairs (context, arm)'} are optimal: none of them costs "
            "anything; the paper's guarantee for its policy assumes a single one"
        )
    if isinstance(experiment.policy, Policy):
        found.extend(experiment.policy.notes(experiment.setting))
        if bandit.variances is not None and not experiment.policy.uses_variances:
            found.append(
                f"the policy knows one σ²: it takes the largest of the arms' variances, {bandit.variances.max():g}, for that of all"
            )
        if not COMPILED:
            found.append("numba is not installed: everything was interpreted, hundreds of times slower")
    return tuple(found)


def _chunk_size(experiment: Experiment, runs: int) -> int:
    """Runs per chunk. It depends on nothing but the experiment, or a checkpoint would not fit the next call."""
    rounds = min(experiment.horizon, _BLOCK_ROUNDS) if experiment.conditions.blockwise else experiment.horizon
    return max(1, min(_CHUNK_ROUNDS[experiment.compiled] // rounds, -(-runs // _LEAST_CHUNKS)))
