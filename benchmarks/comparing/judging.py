"""Judging: what any allocation is worth, from the program alone; and peers, each in a process of its own."""

from __future__ import annotations

import math
import multiprocessing
import warnings
from multiprocessing.connection import Connection

import numpy as np
from comparing.peers import PEERS, Answer
from comparing.rows import CAP, REFERENCE_TOL, REPEAT_BELOW, REPEATS, Row

import allocopt
from allocopt.certify.certificate import evaluate
from allocopt.certify.reduction import Reduction, reduce
from allocopt.insight.instances import random_unit


class Judge:
    """Recomputes what any allocation is worth on one instance, from the program alone."""

    def __init__(self, dim: int, arms: int) -> None:
        self.bandit = random_unit(dim, arms, seed=0)
        self.program = allocopt.programs.regret(self.bandit)
        self.reduction: Reduction = reduce(self.program)
        self.reference = allocopt.solve(self.program, method="active-set", tol=REFERENCE_TOL)

    def judge(self, row: Row, allocation: np.ndarray) -> None:
        """Fill in the true gap and the raw violation of an allocation in the program's own units."""
        with np.errstate(invalid="ignore"):
            alpha = self.reduction.canonical_allocation(allocation)
        if not np.all(np.isfinite(alpha)):
            row.true_gap = row.violation = math.inf
            return
        bounds = evaluate(self.reduction.canonical, alpha, np.ones(len(self.reduction.targets)))
        row.true_gap = bounds.upper / self.reference.lower - 1.0
        row.violation = float(bounds.constraints.max()) - 1.0


# Peers, each in a process of its own


def _peer_process(pipe: Connection, name: str, dim: int, arms: int) -> None:
    """Warm up on a tiny instance, then answer until the parent has enough."""
    warnings.simplefilter("ignore")  # solvers' doubts about themselves are in their status
    peer = PEERS[name]
    try:
        tiny = random_unit(3, 6, seed=1)
        peer(tiny.arms, tiny.theta)
        bandit = random_unit(dim, arms, seed=0)
        pipe.send("ready")
        while pipe.recv() == "run":
            pipe.send(tuple(peer(bandit.arms, bandit.theta)))
    except (EOFError, KeyboardInterrupt):
        pass
    except Exception as error:  # whatever a peer dies of is its result
        pipe.send(f"{type(error).__name__}: {error}")


def skipped(name: str, dim: int, arms: int) -> str | None:
    """Why a peer is not even started, or None."""
    if name.startswith("cvxpy matrix_frac") and (arms >= 500 or dim >= 20):
        return "not run (> 2 min)"
    return None


def run_peer(name: str, dim: int, arms: int) -> tuple[list[float], Answer | str]:
    """Its times and its (last) answer, or what went wrong instead."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_peer_process, args=(theirs, name, dim, arms), daemon=True)
    process.start()
    theirs.close()
    times: list[float] = []
    answer: Answer | str = f"no answer in {CAP:g} s"
    try:
        first = ours.recv() if ours.poll(CAP) else answer  # imports and warming up
        if first != "ready":
            return times, str(first)
        for _ in range(REPEATS):
            ours.send("run")
            if not ours.poll(CAP):
                break
            message = ours.recv()
            if isinstance(message, str):
                answer = message
                break
            answer = Answer(*message)
            times.append(answer.seconds)
            if answer.seconds > REPEAT_BELOW:
                break
        return times, answer
    except EOFError:
        return times, "its process died"
    finally:
        ours.close()
        process.kill()
        process.join()
