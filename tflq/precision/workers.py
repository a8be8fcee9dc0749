"""Where trials run: in this process, in processes of this machine, or in the workers of a dask cluster.

Each way takes trials and yields their results in whatever order they end. Results depend on nothing but problem and
trial, so neither do those that a caller puts back in order.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tflq.errors import MissingExtraError, OptionError, TflqError
from tflq.precision.evaluate import evaluate
from tflq.precision.problem import Problem
from tflq.precision.trial import Result, Trial

if TYPE_CHECKING:
    from distributed import Client

Evaluate = Callable[[Sequence[Trial]], Iterator[Result]]

_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_CONNECT_SECONDS = 10


@contextmanager
def open_workers(problem: Problem, jobs: int = 1, scheduler: str | None = None) -> Iterator[Evaluate]:
    """Yield a function that evaluates trials of a problem.

    Args:
        problem: it goes to each worker once.
        jobs: processes of this machine; 1 for this process alone.
        scheduler: address of a dask scheduler, such as tcp://host:8786, whose workers are used instead.

    Raises:
        MissingExtraError: a scheduler is named, and the extra `cluster` is not installed.
        OptionError: the scheduler does not answer.
    """
    if scheduler is not None:
        with _cluster(problem, scheduler) as run:
            yield run
    elif jobs > 1:
        with _processes(problem, jobs) as run:
            yield run
    else:
        yield lambda trials: (evaluate(problem, trial) for trial in trials)


@contextmanager
def _processes(problem: Problem, jobs: int) -> Iterator[Evaluate]:
    context = multiprocessing.get_context("spawn")  # threads of BLAS do not survive a fork
    with _threads_each(max(1, (os.cpu_count() or 1) // jobs)):
        pool = ProcessPoolExecutor(jobs, context, _start, (problem,))

        def run(trials: Sequence[Trial]) -> Iterator[Result]:
            with _workers_may_die():
                for done in as_completed([pool.submit(_evaluate_here, trial) for trial in trials]):
                    yield done.result()

        try:
            yield run
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


_here: Problem | None = None  # of a worker process: set once when it starts


def _start(problem: Problem) -> None:
    global _here
    _here = problem
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that gives the work ends this one in order
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A pool's processes wait for work for ever, even where the process that gave it was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _evaluate_here(trial: Trial) -> Result:
    assert _here is not None
    return evaluate(_here, trial)


@contextmanager
def _threads_each(count: int) -> Iterator[None]:
    """Let processes that start within this block use so many threads, where the user has not said."""
    named = [name for name in _THREAD_VARIABLES if name not in os.environ]
    os.environ.update({name: str(count) for name in named})
    try:
        yield
    finally:
        for name in named:
            del os.environ[name]


@contextmanager
def _workers_may_die(*more: type[Exception]) -> Iterator[None]:
    """Say in one line that a worker went away; errors of trials themselves pass."""
    kinds: tuple[type[Exception], ...] = (BrokenExecutor, CancelledError, *more)
    try:
        yield
    except kinds as error:
        raise TflqError(
            f"a worker ended before its trial did ({type(error).__name__}; memory may have run out); with --results "
            f"a second run goes on from here"
        ) from None


@contextmanager
def _cluster(problem: Problem, address: str) -> Iterator[Evaluate]:
    client = _connect(address)
    try:
        from distributed import KilledWorker
        from distributed import as_completed as as_dask_completes

        shared = client.scatter(problem, broadcast=True)

        def run(trials: Sequence[Trial]) -> Iterator[Result]:
            futures = [client.submit(evaluate, shared, trial, pure=False) for trial in trials]
            with _workers_may_die(KilledWorker):
                for done in as_dask_completes(futures, loop=client.loop):
                    yield done.result()

        yield run
    finally:
        client.close()


def _connect(address: str) -> Client:
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("--scheduler needs dask.distributed: pip install 'tflq[cluster]'") from None
    _require_listener(address)
    try:
        client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise _silent(address, error) from None
    if not client.scheduler_info()["workers"]:
        client.close()
        raise OptionError(f"scheduler {address}: has no workers; start some with: dask worker {address}")
    return client


def _require_listener(address: str) -> None:
    """Check the address first: a client of dask that finds another program waits for ever.

    A dask scheduler sends its handshake as soon as a connection is there (distributed/comm/core.py); below TLS that
    cannot be seen.
    """
    try:
        parts = urlsplit(address)
        if parts.scheme not in ("tcp", "tls") or parts.hostname is None or parts.port is None:
            raise OptionError(f"scheduler '{address}': allowed is an address such as tcp://host:8786")
        with socket.create_connection((parts.hostname, parts.port), _CONNECT_SECONDS) as connection:
            if parts.scheme == "tcp" and not connection.recv(1):
                raise OSError("the connection was closed")
    except (OSError, ValueError) as error:
        raise _silent(address, error) from None


def _silent(address: str, error: Exception) -> OptionError:
    why = " ".join(str(error).split())
    return OptionError(f"scheduler {address}: does not answer: {why}; name one such as tcp://host:8786")
