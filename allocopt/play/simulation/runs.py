"""Playing the runs of a simulation: in this process, in processes of its own, or on a Dask cluster; the results are the same."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from allocopt.base.errors import InvalidInstance, InvalidOption, SolverFailed
from allocopt.base.long_runs.children import Limits, Trouble, in_child
from allocopt.base.long_runs.cluster import cluster_outcomes, connected, shared
from allocopt.base.long_runs.identity import check_same, versions
from allocopt.base.long_runs.own_code import check_unchanged
from allocopt.base.long_runs.processes import finished_results, results_of
from allocopt.base.spelling import parameters_that_do_not_fit
from allocopt.base.validation import IntArray
from allocopt.model.bandit import LinearBandit
from allocopt.model.contexts import ContextualBandit
from allocopt.play.simulation.conditions import Conditions
from allocopt.play.simulation.store import Chunk
from allocopt.policies.base import (
    Ledger,
    Policy,
    Setting,
    checked_arm,
    checked_reward,
    copy_state,
    note_pull,
    play_rounds,
)
from allocopt.policies.phase import Phase
from allocopt.policies.rounds import Offers

__all__ = ["NO_LIMITS", "Environment", "Experiment", "play_chunk", "played"]

Environment = Callable[[int, int, np.random.Generator], float]
"""Rewards of your own: called with the arm, the round (from 1) and a Generator; returns a finite reward."""

NO_LIMITS = Limits()

_BLOCK_WORK = 2 * 10**8  # operations in a compiled block: well under a second, after which Ctrl-C is heard


@dataclass(frozen=True, eq=False)
class Experiment:
    """All that a chunk of runs needs; it travels to the workers."""

    policy: Any
    bandit: LinearBandit | ContextualBandit
    horizon: int
    times: IntArray
    entropy: Any
    spawn_key: tuple[int, ...]
    environment: Environment | None
    conditions: Conditions = field(default_factory=Conditions)
    keep_pulls: bool = True
    """Whether the pulls at all times are kept, or those at the end only."""

    def streams(self, run: int) -> tuple[np.random.Generator, np.random.Generator]:
        """The run's noise and the policy's own randomness."""
        noise, own = (
            np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=(*self.spawn_key, run, which)))
            for which in (0, 1)
        )
        return noise, own

    @cached_property
    def setting(self) -> Setting:
        """What the policy is told; made once, so that its spanner and what policies keep in ``memo`` are computed once."""
        assumed = self.conditions.assumed_noise_variance
        sizes = self.bandit.sizes if isinstance(self.bandit, ContextualBandit) else ()
        noise = self.bandit.noise_variance if assumed is None else assumed
        return Setting(self.bandit.arms, self.horizon, noise, sizes=sizes)

    @property
    def pull_numbers(self) -> int:
        """How many pull counts are kept of a run: those of every arm, at every time or at the end."""
        return self.bandit.n_arms * (len(self.times) if self.keep_pulls else 1)

    @property
    def compiled(self) -> bool:
        """Whether the rounds are played by compiled code."""
        return isinstance(self.policy, Policy) and self.environment is None

    @property
    def policy_name(self) -> str:
        """The policy's name, or that of its class."""
        name = getattr(self.policy, "name", None)
        return name if isinstance(name, str) else type(self.policy).__name__


def played(
    experiment: Experiment, todo: list[tuple[int, int]], workers: int, client: Any, limits: Limits = NO_LIMITS
) -> Generator[Chunk, None, None]:
    """The chunks of runs (first, last + 1) as they are finished, in any order; closing it ends the work under way.

    With limits (of a run) everything is played in other processes, which can be ended.
    """
    if client is not None and todo:
        yield from _on_cluster(experiment, todo, client, limits)
    elif limits == NO_LIMITS and (workers == 1 or len(todo) <= 1):
        for first, last in todo:
            yield play_chunk(experiment, first, last)
    elif todo:
        _check_can_be_sent(experiment)
        calls = ((versions(), limits.bytes, experiment, first, last) for first, last in todo)
        allowed = partial(_allowed, limits)
        yield from finished_results(_play_elsewhere, calls, min(workers, len(todo)), allowed, _runs_in_words)


def _on_cluster(
    experiment: Experiment, todo: list[tuple[int, int]], client: Any, limits: Limits
) -> Generator[Chunk, None, None]:
    _check_can_be_sent(experiment)
    with connected(client) as ready:
        everywhere = shared(ready, experiment)
        calls = ((versions(), limits.bytes, everywhere, *part) for part in todo)
        function = _play_elsewhere if limits == NO_LIMITS else partial(_play_in_child, limits)
        yield from results_of(partial(cluster_outcomes, ready, function), calls, _runs_in_words)


def _allowed(limits: Limits, call: tuple[Any, ...]) -> Limits:
    """What a chunk may take: the time of all its runs, and the memory of one, since they are played one after the other."""
    *_, first, last = call
    return limits._replace(seconds=None if limits.seconds is None else limits.seconds * (last - first))


def _runs_in_words(call: tuple[Any, ...]) -> str:
    *_, first, last = call
    return f"run {first}" if last == first + 1 else f"runs {first} to {last - 1}"


def _check_can_be_sent(experiment: Experiment) -> None:
    """Refuse what cannot be sent to other processes, by name, before they are started."""
    for name, value in (("policy", experiment.policy), ("environment", experiment.environment)):
        try:
            importlib.import_module("cloudpickle").dumps(value)
        except Exception as error:
            reason = " ".join(str(error).split())
            raise InvalidOption(
                f"{name}: cannot be sent to other processes ({reason}); workers=1 without limits plays in this one"
            ) from None


def _play_in_child(limits: Limits, *call: Any) -> Chunk | Trouble:
    """In a child of a cluster's worker, which can be ended."""
    try:
        chunk: Chunk = in_child(_play_elsewhere, call, _allowed(limits, call))
        return chunk
    except Trouble as trouble:
        return trouble


def _play_elsewhere(
    expected: Mapping[str, Any], most_bytes: int | None, experiment: Experiment, first: int, last: int
) -> Chunk:
    """`play_chunk` in a worker, if its allocopt and numpy are those of the process that started the simulation."""
    check_same(expected, versions())
    try:
        chunk = play_chunk(experiment, first, last)
    except MemoryError:
        if most_bytes is None:
            raise
        said = f"a run may use {most_bytes / 1e9:g} GB (run_gigabytes)"
        raise SolverFailed(f"{_runs_in_words((first, last))}: not enough memory: {said}") from None
    check_unchanged()
    return chunk


def play_chunk(experiment: Experiment, first: int, last: int) -> Chunk:
    """Runs ``first`` to ``last`` − 1, one after the other."""
    bandit, policy = experiment.bandit, experiment.policy
    setting = experiment.setting
    sigma = np.sqrt(bandit.noise_variance)
    state = policy.initial_state(setting) if experiment.compiled else None
    options = experiment.conditions.ledger_options(policy, setting) if experiment.compiled else {}
    regret = np.empty((last - first, len(experiment.times)))
    pulls = np.empty((last - first, experiment.pull_numbers), np.int64)
    phases = []
    for run in range(first, last):
        ledger = Ledger.blank(bandit.means, sigma, experiment.times, **options)
        streams = experiment.streams(run)
        if experiment.compiled:
            phases.append(_play_compiled(experiment, state, ledger, *streams))
        else:
            phases.append(_play_interpreted(experiment, setting, ledger, run, *streams))
        # whole numbers times gaps: nothing adds up to a drift
        regret[run - first] = (ledger.pulls_at * bandit.gaps).sum(axis=1)
        pulls[run - first] = ledger.pulls_at.ravel() if experiment.keep_pulls else ledger.pulls
    return Chunk(first, regret, pulls, tuple(phases))


def _play_compiled(
    experiment: Experiment, state: Any, ledger: Ledger, noise: np.random.Generator, own: np.random.Generator
) -> tuple[Phase, ...]:
    fresh = copy_state(state)
    policy, setting = experiment.policy, experiment.setting
    k, d = setting.arms.shape
    block = max(1, _BLOCK_WORK // (20 + d * (k + d)))
    blockwise, bandit = experiment.conditions.blockwise, experiment.bandit
    offers = Offers.of(bandit.sizes, bandit.weights) if isinstance(bandit, ContextualBandit) else None
    for _ in play_rounds(policy, fresh, ledger, setting, noise, own, block, blockwise=blockwise, offers=offers):
        pass
    phases: tuple[Phase, ...] = policy.phases(fresh, setting.horizon)
    return phases


def _play_interpreted(
    experiment: Experiment,
    setting: Setting,
    ledger: Ledger,
    run: int,
    noise: np.random.Generator,
    own: np.random.Generator,
) -> tuple[Phase, ...]:
    """A user's policy or a user's rewards: the same rounds, one Python call after the other."""
    name, environment = experiment.policy_name, experiment.environment
    count = getattr(note_pull, "py_func", note_pull)
    arms = setting.arms.copy()
    arms.flags.writeable = False  # a user's policy must not change the arms that the other runs use
    told = setting.noise_variance if setting.variances is None else setting.variances
    _check_call(name, experiment.policy, "start", "arms, horizon, noise_variance, rng")
    player = experiment.policy.start(arms, setting.horizon, told, own)
    for method, takes in (("choose", ""), ("update", "arm, reward")):
        if not callable(getattr(player, method, None)):
            raise InvalidOption(f"policy {name}: expected start() to return a player with {method}(), got {player!r}")
        _check_call(name, player, method, takes)
    for t in range(1, setting.horizon + 1):
        arm = checked_arm(name, player.choose(), setting.n_arms, t)
        if environment is None:
            reward = float(ledger.means[arm] + ledger.sigma[arm] * noise.standard_normal())
        else:
            try:
                reward = checked_reward(environment(arm, t, noise), arm, t)
            except InvalidInstance as error:
                raise InvalidInstance(f"environment: {error} (run {run})") from None
        count(ledger, t, arm)
        player.update(arm, reward)
    phases = getattr(player, "phases", ())
    if not isinstance(phases, tuple | list) or not all(isinstance(p, Phase) for p in phases):
        raise InvalidOption(f"policy {name}: expected the player's phases to be Phase records, got {phases!r}")
    return tuple(phases)


def _check_call(name: str, owner: Any, method: str, takes: str) -> None:
    """Refuse a method of a user's policy that cannot be called as it will be."""
    parameters = parameters_that_do_not_fit(getattr(owner, method), len(takes.split(", ")) if takes else 0)
    if parameters is not None:
        raise InvalidOption(f"policy {name}: expected {method}({takes}), got {method}{parameters}")
