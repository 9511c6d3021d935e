"""Worker processes: every result arrives, and no worker outlives its parent."""

import os
import subprocess
import sys
import time

import pytest

from allocopt.base.long_runs.children import Limits
from allocopt.base.long_runs.processes import WorkerDied, finished_results, outcomes

PARENT = """
import os, sys, time
from allocopt.base.long_runs.processes import finished_results

def tell(folder, seconds):
    open(os.path.join(folder, str(os.getpid())), "w").close()
    time.sleep(seconds)

if __name__ == "__main__":
    list(finished_results(tell, [(sys.argv[1], 60)] * 4, 2))
"""


def test_every_call_is_answered_once():
    assert sorted(finished_results(divmod, [(n, 3) for n in range(20)], 2)) == sorted(divmod(n, 3) for n in range(20))


def test_a_worker_that_dies_is_said_so():
    with pytest.raises(
        WorkerDied, match=r"3 processes died of the same work \(its process ended with exit code 1\): killed"
    ):
        list(finished_results(os._exit, [(1,)] * 4, 2))


def test_a_worker_that_dies_while_calls_are_still_being_sent_is_said_so_too():
    def slowly():
        for _ in range(4):
            yield (1,)
            time.sleep(1.0)

    with pytest.raises(
        WorkerDied, match=r"3 processes died of the same work \(its process ended with exit code 1\): killed"
    ):
        list(finished_results(os._exit, slowly(), 2))


def test_a_process_that_is_killed_while_it_loads_is_no_fault_of_its_call(tmp_path):
    """Five processes in a row die in their warm-up, more than a call may end itself."""
    place = str(tmp_path)

    def warm_up():
        if len(os.listdir(place)) < 5:
            open(os.path.join(place, str(os.getpid())), "w", encoding="utf-8").close()
            os._exit(9)

    found = list(outcomes(divmod, [(7, 3)], 1, lambda _: Limits(), warm_up=warm_up))
    assert found[0].result == (2, 1) and len(os.listdir(place)) == 5


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_workers_end_when_their_parent_is_killed(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    folder = tmp_path / "workers"
    folder.mkdir()
    parent = subprocess.Popen([sys.executable, str(script), str(folder)])
    try:
        assert within(60, lambda: len(os.listdir(folder)) == 2)
    finally:
        parent.kill()
        parent.wait()
    assert within(30, lambda: not any(alive(int(name)) for name in os.listdir(folder)))


def within(seconds, condition):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
