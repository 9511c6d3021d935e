r"""The loops over rounds, compiled into every policy: rewards, what is kept of a run, feedback that comes late, blocks of rounds.

`play` plays one round after the other. `play_blocks` plays the rounds of a policy that does not look in between as one: the sum of m
rewards of an arm is N(m·μ, m·σ²), so drawing it as one number changes nothing in law, and 10⁹ rounds take as long as the decisions.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.compiling import compiled
from allocopt.base.validation import Array, IntArray

__all__ = [
    "BERNOULLI",
    "GAUSSIAN",
    "PAUSE",
    "STUDENT",
    "Ledger",
    "Offers",
    "note_pull",
    "note_pulls",
    "play",
    "play_blocks",
    "play_contexts",
    "reward_of",
]

PAUSE = -1
"""What ``choose`` returns instead of an arm to have ``plan`` called."""

GAUSSIAN, BERNOULLI, STUDENT = 0, 1, 2  # laws of the rewards


class Ledger(NamedTuple):
    """What the loop knows of the world, and keeps of one run, whoever plays."""

    means: Array
    sigma: Array
    """σ of every arm."""
    times: IntArray
    """Rounds after which the pulls are copied to ``pulls_at``; the last one is the horizon."""
    place: IntArray
    """Length 1: how many of the times have passed."""
    pulls: IntArray
    pulls_at: IntArray
    law: int
    """Of the rewards: `GAUSSIAN`, `BERNOULLI` or `STUDENT`."""
    freedom: float
    """Degrees of freedom of Student's t, which is scaled to variance σ²."""
    delay: int
    """The reward of round t is told after round t + delay; 0 for at once."""
    batch: int
    """Rewards are told after rounds that are multiples of this only."""
    opening: int
    """Rounds whose rewards a policy must have before it can look: until it has them, their arms are played in turn."""
    told: IntArray
    """Length 1: how many rewards the policy has been told."""
    late_arms: IntArray
    """The arms and rewards that it has not been told yet, round t at t mod their number."""
    late_rewards: Array
    opening_arms: IntArray

    @classmethod
    def blank(
        cls,
        means: Array,
        sigma: float | Array,
        times: IntArray,
        *,
        law: int = GAUSSIAN,
        freedom: float = 0.0,
        delay: int = 0,
        batch: int = 1,
        opening: int = 0,
    ) -> Ledger:
        """A ledger before the first round."""
        k = len(means)
        waiting = delay + batch
        return cls(
            np.array(means),
            np.array(np.broadcast_to(sigma, k), dtype=np.float64),
            np.array(times, dtype=np.int64),
            np.zeros(1, np.int64),
            np.zeros(k, np.int64),
            np.zeros((len(times), k), np.int64),
            int(law), float(freedom), int(delay), int(batch), int(opening),
            np.zeros(1, np.int64),
            np.zeros(waiting, np.int64),
            np.zeros(waiting),
            np.zeros(max(opening, 1), np.int64),
        )  # fmt: skip


class Offers(NamedTuple):
    """Contexts: which arms (pairs of context and arm, numbered through) a round may offer, and how often."""

    starts: IntArray
    """The first pair of each context, and the number of all pairs."""
    cumulative: Array
    """Probabilities of the contexts, summed up."""
    seen: IntArray
    """Length 1: the last round whose context was drawn, so that a pause does not draw it again."""
    now: IntArray
    """Length 1: that context."""

    @classmethod
    def of(cls, sizes: tuple[int, ...], weights: Array) -> Offers:
        """Before the first round."""
        starts = np.cumsum([0, *sizes]).astype(np.int64)
        return cls(starts, np.cumsum(weights / weights.sum()), np.zeros(1, np.int64), np.zeros(1, np.int64))


@compiled
def reward_of(ledger: Any, arm: Any, noise: Any) -> Any:
    """One reward of an arm."""
    if ledger.law == GAUSSIAN:
        return ledger.means[arm] + ledger.sigma[arm] * noise.standard_normal()
    if ledger.law == BERNOULLI:
        return 1.0 if noise.random() < ledger.means[arm] else 0.0
    nu = ledger.freedom
    return ledger.means[arm] + ledger.sigma[arm] * math.sqrt((nu - 2.0) / nu) * noise.standard_t(nu)


@compiled
def note_pull(ledger: Any, t: Any, arm: Any) -> None:
    """Count a pull, and copy all counts where round t is one of the times to report."""
    ledger.pulls[arm] += 1
    place = ledger.place[0]
    if t == ledger.times[place]:
        for i in range(len(ledger.pulls)):
            ledger.pulls_at[place, i] = ledger.pulls[i]
        ledger.place[0] = min(place + 1, len(ledger.times) - 1)


@compiled
def note_pulls(ledger: Any, t: Any, arm: Any, count: Any) -> None:
    """The same for ``count`` pulls of one arm, from round t on; times within the block get their share."""
    before = ledger.pulls[arm]
    ledger.pulls[arm] = before + count
    place = ledger.place[0]
    while place < len(ledger.times) and ledger.times[place] < t + count:
        for i in range(len(ledger.pulls)):
            ledger.pulls_at[place, i] = ledger.pulls[i]
        ledger.pulls_at[place, arm] = before + ledger.times[place] - t + 1
        place += 1
    ledger.place[0] = place


@compiled
def tell(update: Any, state: Any, ledger: Any, t: Any, arm: Any, reward: Any) -> None:
    """Teach the policy what is known after round t: its reward, or where rewards come late, those whose time has come."""
    waiting = len(ledger.late_arms)
    if waiting == 1:
        update(state, t, arm, reward)
        return
    ledger.late_arms[t % waiting] = arm
    ledger.late_rewards[t % waiting] = reward
    told, known = ledger.told[0], max(t - ledger.delay, 0)
    known -= known % ledger.batch
    ledger.told[0] = known
    while told < known:
        told += 1
        update(state, told, ledger.late_arms[told % waiting], ledger.late_rewards[told % waiting])


@compiled
def play(choose: Any, update: Any, state: Any, ledger: Any, first: Any, last: Any, noise: Any, rng: Any) -> Any:
    """Rounds ``first`` to ``last``; returns the round to go on with (``last`` + 1, or where ``choose`` paused).

    Minus the round if ``choose`` returned something that is no arm.
    """
    k = len(ledger.means)
    for t in range(first, last + 1):
        waits = ledger.told[0] < ledger.opening < t
        arm = ledger.opening_arms[(t - 1) % ledger.opening] if waits else choose(state, t, rng)
        if not 0 <= arm < k:
            return t if arm == PAUSE else -t
        reward = reward_of(ledger, arm, noise)
        note_pull(ledger, t, arm)
        if t <= ledger.opening:
            ledger.opening_arms[t - 1] = arm
        tell(update, state, ledger, t, arm, reward)
    return last + 1


@compiled
def play_blocks(
    choose: Any,
    stay: Any,
    learn: Any,
    state: Any,
    ledger: Any,
    first: Any,
    last: Any,
    decisions: Any,
    noise: Any,
    rng: Any,
) -> Any:
    """As `play`, but all rounds in which the policy stays with an arm at once, and at most so many ``decisions``.

    ``stay(state, t, arm)`` says for how many rounds from t on ``choose`` would return this arm whatever the rewards are, and
    ``learn(state, t, arm, count, total)`` is told the sum of their rewards. Gaussian rewards, told at once.
    """
    k = len(ledger.means)
    t = first
    for _ in range(decisions):
        if t > last:
            break
        arm = choose(state, t, rng)
        if not 0 <= arm < k:
            return t if arm == PAUSE else -t
        count = min(max(stay(state, t, arm), 1), last - t + 1)
        total = count * ledger.means[arm] + math.sqrt(count) * ledger.sigma[arm] * noise.standard_normal()
        note_pulls(ledger, t, arm, count)
        learn(state, t, arm, count, total)
        t += count
    return t


@compiled
def play_contexts(
    choose: Any, update: Any, state: Any, ledger: Any, offers: Any, first: Any, last: Any, noise: Any, rng: Any
) -> Any:
    """As `play`, where each round draws a context and ``state.offered`` has the first pair of it and the first beyond it.

    The context comes from the same stream as the rewards, so that all policies meet the same ones.
    """
    contexts = len(offers.cumulative)
    for t in range(first, last + 1):
        if offers.seen[0] != t:
            draw = noise.random()
            context = 0
            while context < contexts - 1 and draw >= offers.cumulative[context]:
                context += 1
            offers.now[0] = context
            offers.seen[0] = t
        begin, end = offers.starts[offers.now[0]], offers.starts[offers.now[0] + 1]
        state.offered[0] = begin
        state.offered[1] = end
        arm = choose(state, t, rng)
        if not begin <= arm < end:
            return t if arm == PAUSE else -t
        reward = reward_of(ledger, arm, noise)
        note_pull(ledger, t, arm)
        tell(update, state, ledger, t, arm, reward)
    return last + 1
