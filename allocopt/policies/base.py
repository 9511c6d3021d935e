r"""The interface of all policies, and the loop over rounds that plays them.

A policy is a frozen dataclass of validated parameters. What it learns while it plays is its *state*, so that one policy
can be played many times at once. There are two ways to write one.

**In plain Python** (about 20 lines; docs/policies.md has one, and a compiled one in about 40): any object with ::

    start(arms, horizon, noise_variance, rng) -> player     # player.choose() -> arm, player.update(arm, reward)

and, if it likes, a ``name``. `allocopt.simulate` plays it one interpreted round at a time.

**Compiled**, as all policies of this package: a subclass of `Policy` with

``initial_state(setting)``
    A NamedTuple of scalars and of writeable C-ordered arrays, all that the policy knows. Whatever changes lives in arrays
    (a number that changes is an array of length 1): the simulator makes a new run by copying the arrays.
``choose(state, t, rng)``
    Compiled. The arm of round t = 1, 2, …, n; or `PAUSE`, which has ``plan`` called and then ``choose`` again, with the same
    t. Randomness only from ``rng`` (a numpy Generator), whose stream is the policy's own: rewards have another.
``update(state, t, arm, reward)``
    Compiled. What round t taught.
``run(state, ledger, first, last, noise, rng)``
    The loop, compiled with the two functions above inlined. Three lines that must be written in the policy's module,
    because that is where numba keeps machine code::

        @entry
        def _run(state, ledger, first, last, noise, rng):
            return play(_choose, _update, state, ledger, first, last, noise, rng)

``plan(state, t, setting)``
    Optional, interpreted, for what happens a few times per run: it may call anything (`allocopt.solve`, `Allocator`) and
    changes the arrays of the state. Things worth keeping between runs go into ``setting.memo``.
``run_blocks(state, ledger, first, last, decisions, noise, rng)``
    Optional, for a policy that often plays an arm for many rounds without looking at rewards: two more compiled functions,
    ``stay(state, t, arm)``, for how many rounds from t on ``choose`` would return this arm whatever the rewards are, and
    ``learn(state, t, arm, count, total)``, what so many rounds with this sum of rewards taught, in a loop like the one above::

        @entry
        def _run_blocks(state, ledger, first, last, decisions, noise, rng):
            return play_blocks(_choose, _stay, _learn, state, ledger, first, last, decisions, noise, rng)

    Then ``simulate(..., blockwise=True)`` plays 10⁹ rounds in the time of the decisions, exactly in law.
``run_contexts(state, ledger, offers, first, last, noise, rng)``
    Optional, for a policy that can be played with contexts: its state has ``offered``, an array of two numbers, and ``choose``
    returns one of the arms from the first of them to before the second; the loop is `play_contexts`. ``setting.sizes`` says how
    many arms each context has. Without contexts ``offered`` stays as ``setting.offered`` makes it: all arms.
``opening(setting)``
    Optional: how many rewards the policy must have before it can look at any; the rank of the arms unless it says otherwise.
    Where feedback comes late, the arms of these rounds are played in turn until it has them. ``choose`` is then called for
    rounds whose predecessors' rewards are not known yet, ``update`` still in the order of the rounds.
``phases(state, horizon)``, ``notes(setting)``
    Optional: what happened when, and what a user should know before believing the regret.

The two functions, and whatever they call, are decorated with `compiled`; the class gets all three as ``staticmethod``, the
two through `entry` (``choose = staticmethod(entry(_choose))``), which is what Python calls. None of them may allocate
(np.empty, np.sort, …): scratch arrays belong in the state. A function that must, or that calls one which does
(of the compiled ones in `allocopt.solving.kernel`, say), is decorated ``@compiled(memory=True)``, and so are its callers up to
``choose`` or ``update``: numba then counts references, which costs some speed in the loops of these functions. (numba's
"No implementation of function" for something that it knows means just this; of a Generator, ``random`` and ``standard_normal`` do
not allocate.)

Where numba is missing everything runs interpreted, from the same source, to the same result, hundreds of times slower.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from allocopt.actions.spanner import Spanner, barycentric_spanner
from allocopt.base.compiling import COMPILED, compiled, entry
from allocopt.base.errors import AllocoptError, InvalidInstance, InvalidOption
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, IntArray, whole_number
from allocopt.model.bandit import arm_matrix, checked_noise
from allocopt.model.contexts import checked_contexts
from allocopt.policies.phase import Phase
from allocopt.policies.player import Player, checked_arm, checked_reward
from allocopt.policies.rounds import PAUSE, Ledger, Offers, note_pull, play, play_blocks, play_contexts

__all__ = [
    "COMPILED",
    "LEAST_HORIZON",
    "PAUSE",
    "Ledger",
    "Phase",
    "Player",
    "Policy",
    "Setting",
    "check_plays_contexts",
    "checked_arm",
    "checked_reward",
    "compiled",
    "copy_state",
    "entry",
    "note_pull",
    "play",
    "play_blocks",
    "play_contexts",
    "play_rounds",
]

LEAST_HORIZON = 3  # the paper's levels hold log log n


@dataclass(frozen=True, eq=False)
class Setting:
    """What a policy may know before the first round.

    Attributes
    ----------
    arms : array, shape (k, d)
        One row per arm, or per pair (context, arm).
    horizon : int
        n, the number of rounds, at least 3.
    noise_variance : float
        σ² of the rewards; where every arm has its own, the largest, which is a bound for all of them.
    variances : array, shape (k,), or None
        σ² of every arm, where these differ; None where ``noise_variance`` is that of all. Linear policies weigh rewards by it.
    sizes : tuple of int
        The number of arms of each context, where arms are pairs (context, arm) numbered through; empty without contexts.
    memo : dict
        For whatever a policy wants to keep between runs of the same setting (solved designs, an `Allocator`).
    """

    arms: Array
    horizon: int
    noise_variance: Any = 1.0
    memo: dict[Any, Any] = field(default_factory=dict, repr=False)
    sizes: tuple[int, ...] = ()
    variances: Array | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "arms", np.array(arm_matrix(self.arms), order="C"))  # writeable: numba tells the two apart
        put(self, "horizon", whole_number("horizon", self.horizon, InvalidOption, least=LEAST_HORIZON))
        noise = checked_noise(self.noise_variance, len(self.arms), InvalidInstance)
        put(self, "noise_variance", noise if isinstance(noise, float) else float(noise.max()))
        put(self, "variances", None if isinstance(noise, float) else noise)

    def __getstate__(self) -> dict[str, Any]:
        """Without the memo: what policies keep there need not be something that other processes can be sent."""
        return {**vars(self), "memo": {}}

    @property
    def n_arms(self) -> int:
        """k, the number of arms."""
        return len(self.arms)

    @property
    def variance_of_each(self) -> Array:
        """σ² of every arm, differ they or not."""
        return np.full(self.n_arms, self.noise_variance) if self.variances is None else self.variances

    @property
    def offered(self) -> IntArray:
        """The first arm that may be played, and the first that may not: all, before a context is known."""
        return np.array([0, self.n_arms], dtype=np.int64)

    @property
    def weights(self) -> Array:
        """σ²/σ_x², what a reward of each arm is worth beside one with the largest variance σ²; ones where all are alike."""
        weights: Array = self.noise_variance / self.variance_of_each
        return weights

    @cached_property
    def spanner(self) -> Spanner:
        """A barycentric spanner (C = 1). Its ``coefficients`` are the arms in coordinates that every policy can use.

        They have as many columns as the arms have rank, entries in [−1, 1], and the spanner's own arms are unit vectors:
        after one round of each the design matrix is exactly I, whatever the units and the geometry of the arms.
        """
        return barycentric_spanner(self.arms, 1.0)


_State = TypeVar("_State")


def copy_state(state: _State) -> _State:
    """A state with arrays of its own; NamedTuples within NamedTuples are copied too."""
    if isinstance(state, np.ndarray):
        return cast(_State, state.copy())
    if isinstance(state, tuple):
        return cast(_State, type(state)(*(copy_state(x) for x in state)))
    return state


class Policy:
    """Base class of the compiled policies; the text at the top of `allocopt.policies.base` says what a subclass must have.

    Attributes
    ----------
    choose, update : compiled functions
        ``choose(state, t, rng)`` is the arm of round t, ``update(state, t, arm, reward)`` takes its reward. To play a policy
        round by round, take the player that ``start`` returns, which knows its own state and rounds.
    run : compiled function
        The loop over rounds that `simulate` calls.
    run_blocks : compiled function or None
        The same for many rounds at a time, where the policy has it.
    run_contexts : compiled function or None
        The same with a context before each round, where the policy can be played so.
    uses_variances : bool
        Whether the policy uses the variance of each arm; the others take the largest for that of all.
    """

    choose: ClassVar[Callable[..., Any]]
    update: ClassVar[Callable[..., Any]]
    run: ClassVar[Callable[..., Any]]
    run_blocks: ClassVar[Callable[..., Any] | None] = None
    run_contexts: ClassVar[Callable[..., Any] | None] = None
    uses_variances: ClassVar[bool] = False
    """Whether the policy uses the variance of each arm; the others take the largest for that of all."""

    def initial_state(self, setting: Setting) -> Any:
        """All that the policy knows before the first round."""
        raise NotImplementedError

    def plan(self, state: Any, t: int, setting: Setting) -> None:
        """Called when ``choose`` paused before round t."""
        raise NotImplementedError

    def opening(self, setting: Setting) -> int:
        """How many rewards, of the first rounds, the policy must have before it can look at any."""
        return len(setting.spanner.indices)

    def phases(self, state: Any, horizon: int) -> tuple[Phase, ...]:
        """The phases so far; ``horizon`` is the last round that was played."""
        return ()

    def notes(self, setting: Setting) -> tuple[str, ...]:
        """What a user should know about this policy in this setting: assumptions it breaks, a horizon too short for it."""
        return ()

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name."""
        if not dataclasses.is_dataclass(self):
            return {}
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    @property
    def name(self) -> str:
        """The policy and those of its parameters that are not the default, as the command line spells them."""
        if not dataclasses.is_dataclass(self):
            return type(self).__name__
        given = [
            (f.name, getattr(self, f.name)) for f in dataclasses.fields(self) if getattr(self, f.name) != f.default
        ]
        listed = ",".join(f"{name}={str(value).removesuffix('.0')}" for name, value in given)
        return type(self).__name__ + (f":{listed}" if listed else "")

    @spelled
    def start(
        self, arms: Any, horizon: int, noise_variance: Any = 1.0, rng: np.random.Generator | int | None = None
    ) -> Player:
        """Begin a game of your own: call ``choose()`` and ``update(arm, reward)`` in turn.

        Examples
        --------
        >>> from allocopt.policies import UCB
        >>> player = UCB().start([[1, 0], [0, 1]], horizon=100, rng=0)
        >>> arm = player.choose()
        >>> player.update(arm, 0.3)
        >>> arm, player.choose()
        (0, 1)
        """
        return Player(self, Setting(arms, horizon, noise_variance), np.random.default_rng(rng))

    def start_contexts(
        self, contexts: Any, horizon: int, noise_variance: Any = 1.0, rng: np.random.Generator | int | None = None
    ) -> Player:
        """The same with contexts, one set of arms each: in turn ``choose(context)`` and ``update(arm, reward)``.

        Arms are numbered within their context here; variances, where they differ, are those of all pairs (context, arm) in turn.

        Examples
        --------
        >>> from allocopt.policies import LinUCB
        >>> player = LinUCB().start_contexts([[[1, 0], [0, 1]], [[0.5, 0], [1, 1], [0, 0.2]]], horizon=100, rng=0)
        >>> arm = player.choose(1)
        >>> player.update(arm, 0.3)
        >>> arm, player.choose(0)
        (1, 1)
        """
        check_plays_contexts(self, self.name)
        each = checked_contexts(contexts)
        setting = Setting(np.concatenate(each), horizon, noise_variance, sizes=tuple(len(rows) for rows in each))
        return Player(self, setting, np.random.default_rng(rng))


def check_plays_contexts(policy: Any, name: str) -> None:
    """Refuse a policy that cannot be played with contexts."""
    if not isinstance(policy, Policy) or policy.run_contexts is None:
        raise InvalidOption(f"policy {name} cannot be played with contexts; LinUCB, LinTS and OAM can")


def play_rounds(
    policy: Policy,
    state: Any,
    ledger: Ledger,
    setting: Setting,
    noise: np.random.Generator,
    rng: np.random.Generator,
    block: int,
    *,
    blockwise: bool = False,
    offers: Offers | None = None,
) -> Iterator[int]:
    """All rounds of one run, compiled; yields the number played after every ``block`` of them (to stop, to report).

    ``blockwise``: by ``policy.run_blocks``, and ``block`` counts decisions. ``offers``: by ``policy.run_contexts``.
    """
    t, planned = 1, 0
    while t <= setting.horizon:
        begun = t
        if blockwise:
            assert policy.run_blocks is not None
            t = int(policy.run_blocks(state, ledger, t, setting.horizon, block, noise, rng))
            paused = t == begun  # where it paused later, the next call finds it at its beginning
        else:
            last = min(t + block - 1, setting.horizon)
            if offers is None:
                t = int(policy.run(state, ledger, t, last, noise, rng))
            else:
                assert policy.run_contexts is not None
                t = int(policy.run_contexts(state, ledger, offers, t, last, noise, rng))
            paused = t <= last
        if t < 0:
            raise InvalidOption(f"policy {policy.name}: expected an arm from 0 to {setting.n_arms - 1} in round {-t}")
        if paused:
            if planned == t:
                raise AllocoptError(f"policy {policy.name}: paused twice before round {t}; plan() must let it go on")
            policy.plan(state, t, setting)
            planned = t
        yield t - 1
