"""A policy that loops, fills the memory, exits or crashes ends its simulation with one clear line, and nothing else."""

import ctypes
import os
import threading
import time

import numpy as np
import pytest
from simulating import BANDIT, same

from allocopt.base.errors import AllocoptError, InvalidOption
from allocopt.play.simulation.simulate import simulate


class First:
    """Plays arm 0, after something has happened."""

    def __init__(self, what=None):
        self.what = what

    def start(self, arms, horizon, noise_variance, rng):
        return self

    def choose(self):
        if self.what is not None:
            self.what()
        return 0

    def update(self, arm, reward):
        pass


def endless():
    while True:
        pass


@pytest.mark.parametrize(
    ("what", "limits", "words"),
    [
        (endless, {"run_seconds": 0.2}, r"workers: runs 0 to 1 took longer than 0\.4 seconds"),
        (lambda: os._exit(3), {"run_seconds": 60}, r"3 processes died of runs 0 to 1 \(its process ended with exit code 3"),
        (lambda: ctypes.string_at(0), {"run_gigabytes": 1}, r"3 processes died of runs 0 to 1 \(its process ended with signal"),
        (lambda: np.ones(10**9), {"run_gigabytes": 1}, r"runs 0 to 1: not enough memory: a run may use 1 GB \(run_gigabytes\)"),
        (lambda: np.ones(10**9), {"run_gigabytes": 0.1, "workers": 2}, r"not enough memory: a run may use 0\.1 GB"),
    ],
)  # fmt: skip
def test_with_limits_what_a_policy_does_to_its_process_is_one_error(tmp_path, what, limits, words):
    begun = time.monotonic()
    with pytest.raises(AllocoptError, match=words):
        simulate(First(what), BANDIT, 10, 32, rng=0, checkpoint=tmp_path / "s", **{"workers": 1, **limits})
    assert time.monotonic() - begun < 60


def test_limits_change_no_number():
    plain = simulate("LinTS", BANDIT, 200, 20, rng=4)
    same(plain, simulate("LinTS", BANDIT, 200, 20, rng=4, run_seconds=1e300, run_gigabytes=1e300))


@pytest.mark.slow
def test_on_a_cluster_limits_end_a_child_and_no_worker():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        before = list(client.nthreads())
        with pytest.raises(
            AllocoptError, match=r"runs 0 to 1 took longer than 0\.4 seconds|runs \d+ to \d+ took longer"
        ):
            simulate(First(endless), BANDIT, 10, 32, rng=0, client=client, run_seconds=0.2)
        with pytest.raises(
            AllocoptError, match=r"3 processes died of runs \d+ to \d+ \(its process ended with exit code 3"
        ):
            simulate(First(lambda: os._exit(3)), BANDIT, 10, 32, rng=0, client=client, run_seconds=60)
        same(
            simulate("LinTS", BANDIT, 200, 20, rng=4),
            simulate("LinTS", BANDIT, 200, 20, rng=4, client=client, run_seconds=60),
        )
        assert list(client.nthreads()) == before


def test_what_cannot_be_sent_to_other_processes_is_said_by_name():
    policy = First()
    policy.lock = threading.Lock()
    with pytest.raises(InvalidOption, match=r"policy: cannot be sent to other processes \(cannot pickle"):
        simulate(policy, BANDIT, 10, 20, workers=2)
    lock = threading.Lock()
    with pytest.raises(InvalidOption, match=r"environment: cannot be sent"):
        simulate(First(), BANDIT, 10, 20, run_seconds=1, environment=lambda arm, t, rng: float(lock.locked()))


@pytest.mark.parametrize("name", ["run_seconds", "run_gigabytes"])
@pytest.mark.parametrize("value", [0, -1.0, float("nan"), "2", True])
def test_bad_limits_are_named(name, value):
    with pytest.raises(InvalidOption, match=f"{name}: expected a positive, finite number"):
        simulate(First(), BANDIT, 10, 20, **{name: value})
