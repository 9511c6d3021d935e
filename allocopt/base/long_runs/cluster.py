"""Many calls on a Dask cluster whose workers come and go: results as they are finished, and what became of the others.

Nothing is scattered: what a lost worker held would be lost. All that a call needs travels with it, or is made by a task that the
scheduler can repeat (`shared`).
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import queue
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from typing import Any

from allocopt.base.errors import InvalidOption, MethodUnavailable, SolverFailed
from allocopt.base.long_runs.children import Trouble
from allocopt.base.long_runs.processes import TRIES, Outcome

__all__ = ["CANCELLED", "ClusterLost", "check_client", "cluster_outcomes", "connected", "results_in_order", "shared"]

_CONNECT_SECONDS = 15
_LOOK_SECONDS = 1.0  # how often it is looked whether the cluster is still there
_PATIENCE_SECONDS = 600.0  # for workers to come back, when all of them are lost


CANCELLED = (CancelledError, asyncio.CancelledError)
"""What the results of a closed client, or of calls that somebody cancelled, are."""


class ClusterLost(SolverFailed):
    """The client was closed, the scheduler is gone, or all workers are and do not come back."""


def _distributed(name: str) -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise MethodUnavailable(f"{name}: a cluster needs distributed: pip install 'allocopt[dask]'") from None


def check_client(client: Any) -> None:
    """Refuse what is not a client that can be asked."""
    distributed = _distributed("client")
    if not isinstance(client, distributed.Client):
        raise InvalidOption(f"client: expected a dask.distributed.Client, got a {type(client).__name__}")
    if client.asynchronous:
        raise InvalidOption("client: expected an ordinary client, got one with asynchronous=True")
    if client.status != "running":
        raise InvalidOption(f"client: expected a client that is connected, got one that is {client.status}")


@contextlib.contextmanager
def connected(client: Any) -> Iterator[Any]:
    """The client itself, or one that is connected to an address meanwhile; it has workers."""
    distributed = _distributed("client")
    if isinstance(client, str):
        with _connection(distributed, client) as own, connected(own):
            yield own
        return
    check_client(client)
    try:
        client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
    except (TimeoutError, OSError):
        raise MethodUnavailable(f"client: the scheduler at {client.scheduler.address} has no workers") from None
    yield client


def _connection(distributed: Any, address: str) -> Any:
    try:
        if not address.startswith("inproc://"):  # a cluster within this process has no host and port
            distributed.comm.get_address_host_port(distributed.comm.normalize_address(address), strict=True)
    except ValueError as error:  # told here: a client with such an address takes half a minute to be given up
        raise InvalidOption(
            f"client: expected a Client or an address such as tcp://host:8786, got {address!r} ({error})"
        ) from None
    try:
        return distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError, ImportError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InvalidOption(
            f"client: expected the address of a running scheduler, such as tcp://host:8786, got {address!r} ({reason})"
        ) from None


def _itself(content: Any) -> Any:
    return content


def shared(client: Any, content: Any) -> Any:
    """Something that many calls need, as a future that the scheduler can make again on any worker."""
    return _sent(client, client.submit, _itself, content, pure=False)


def cluster_outcomes(
    client: Any, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], every: float | None = None
) -> Generator[Outcome | None, None, None]:
    """What becomes of each call; twice as many as the cluster has threads are under way. What the function raises is raised here.

    As `outcomes`: a call whose workers died is an outcome with a `Trouble`, ``calls`` is asked again after every outcome, and None is
    yielded when nothing has come for ``every`` seconds. While there are no workers at all, it waits for them.
    """
    todo = iter(calls)
    finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
    under_way: dict[Any, tuple[Any, ...]] = {}
    threads, seen = _threads(client), time.monotonic()
    try:
        while True:
            room = max(2 * threads, 1) - len(under_way)
            while room > 0 and (arguments := next(todo, None)) is not None:
                future = _sent(client, client.submit, function, *arguments, pure=False)
                under_way[future] = arguments
                future.add_done_callback(finished.put)
                room -= 1
            if not under_way:
                return
            try:
                future = finished.get(timeout=min(_LOOK_SECONDS, every or _LOOK_SECONDS))
            except queue.Empty:
                threads = _threads(client)
                if threads:
                    seen = time.monotonic()
                _check_patience(seen)
                if every is not None:
                    yield None
                continue
            yield _outcome(client, future, under_way.pop(future))
    finally:
        if under_way and client.status == "running":
            client.cancel(list(under_way))


def results_in_order(client: Any, tasks: list[Any]) -> Generator[Any, None, None]:
    """What Dask's own tasks (Delayed objects) come to, one after the other; `SolverFailed` if a task keeps killing workers."""
    futures = _sent(client, client.compute, tasks, retries=TRIES)
    try:
        for place, task in enumerate(tasks):
            for _ in range(TRIES):
                outcome = _outcome(client, futures[place], ())
                if outcome.trouble is None:
                    break
                futures[place] = _sent(client, client.compute, task, retries=TRIES)
            if outcome.trouble is not None:
                raise SolverFailed(f"client: a part of the work {outcome.trouble}; have the workers enough memory?")
            yield outcome.result
    finally:
        left = [future for future in futures if not future.done()] if client.status == "running" else []
        if left:
            client.cancel(left)


_GONE = "client: the client was closed, or its scheduler is gone"


def _sent(client: Any, send: Callable[..., Any], *what: Any, **how: Any) -> Any:
    """What ``send`` returns; `ClusterLost` if there is nobody to send it to."""
    try:
        return send(*what, **how)
    except Exception:
        if client.status == "running":
            raise
        raise ClusterLost(_GONE) from None


def _threads(client: Any) -> int:
    """How many calls the cluster can work at; `ClusterLost` if it cannot be asked."""
    with contextlib.suppress(OSError, RuntimeError, ValueError, CancelledError):
        if client.status == "running":
            return sum(client.nthreads().values())
    raise ClusterLost(_GONE)


def _outcome(client: Any, future: Any, arguments: tuple[Any, ...]) -> Outcome:
    try:
        return Outcome(arguments, _waited(client, future))
    except _distributed("client").KilledWorker:
        return Outcome(arguments, trouble=Trouble("every worker of the cluster that took it up ended", outside=True))
    except CANCELLED:
        _threads(client)  # or the client itself is gone
        return Outcome(arguments, trouble=Trouble("was cancelled by the cluster", outside=True))


def _waited(client: Any, future: Any) -> Any:
    """The result, however long it takes while there is somebody to compute it."""
    seen = time.monotonic()
    while True:
        try:
            return future.result(timeout=_LOOK_SECONDS)
        except TimeoutError:
            if future.done() and future.status == "error":
                raise  # of the task itself
        if _threads(client):
            seen = time.monotonic()
        _check_patience(seen)


def _check_patience(seen: float) -> None:
    """`ClusterLost` when no worker was seen for long."""
    if time.monotonic() - seen > _PATIENCE_SECONDS:
        raise ClusterLost(f"client: the cluster has had no workers for {_PATIENCE_SECONDS:g} seconds")
