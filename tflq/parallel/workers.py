"""Where work runs: in this process, in processes of this machine, or in the workers of a dask cluster.

Each way takes tasks and yields their results in whatever order they end. A result depends on nothing but the task and
what all tasks share, so neither do those that a caller puts back in order. A worker that goes away loses nothing: what
it had not answered goes to the others, or to a new one. The processes of this machine are managed here, because
`ProcessPoolExecutor` and loky fail all open tasks if one worker dies.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from tflq import __version__
from tflq.errors import MissingExtraError, OptionError, TflqError
from tflq.interpreter.kernel_files import KernelFile, load_kernel_file, loaded_kernel_files

if TYPE_CHECKING:
    from distributed import Client

Task = TypeVar("Task")
Answer = TypeVar("Answer")

Run = Callable[[Iterable[Task]], Iterator[tuple[int, Answer]]]
"""Takes tasks and yields (number of the task, its answer) as they come; tasks are taken as workers become free."""

_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_CONNECT_SECONDS = 10
_SECONDS_TO_END = 5
"""How long a process may take to end once there is no more work."""
_MOST_LOSSES = 3
"""Workers that may go away in a row without any answer: then it is the work that ends them."""


@dataclass(frozen=True, eq=False)
class Work(Generic[Task, Answer]):
    """What all tasks share; it goes to each worker once.

    Attributes:
        answer: a function of a module, or a partial of one, that answers a task.
        version: of tflq, so that workers of another one do not take part.
        kernels: files with kernels that the user loaded; workers load them, too.
    """

    answer: Callable[[Task], Answer]
    version: str = __version__
    kernels: tuple[KernelFile, ...] = field(default_factory=loaded_kernel_files)

    def __call__(self, task: Task) -> Answer:
        """Answer a task.

        Raises:
            OptionError: this worker has another version of tflq.
        """
        if self.version != __version__:
            raise OptionError(f"this worker has tflq {__version__}, not {self.version}; install the same on both")
        for file in self.kernels:
            load_kernel_file(file)
        return self.answer(task)


@contextmanager
def open_workers(
    answer: Callable[[Task], Answer], jobs: int = 1, scheduler: str | None = None
) -> Iterator[Run[Task, Answer]]:
    """Yield a function that has tasks answered.

    Args:
        answer: a function of a module, or a partial of one; it goes to each worker once.
        jobs: processes of this machine; 1 for this process alone.
        scheduler: address of a dask scheduler, such as tcp://host:8786, whose workers are used instead.

    Raises:
        MissingExtraError: a scheduler is named, and the extra `cluster` is not installed.
        OptionError: the scheduler does not answer; less than one job.
    """
    if jobs < 1:
        raise OptionError(f"{jobs} jobs; 1 or more are needed")
    if scheduler is None and jobs == 1:
        yield lambda tasks: ((number, answer(task)) for number, task in enumerate(tasks))
        return
    work = Work(answer)
    crew: _Crew = _Processes(work, jobs) if scheduler is None else _Cluster(work, scheduler)
    try:
        yield lambda tasks: _answered(crew, tasks)
    finally:
        crew.close()


def in_order(run: Run[Task, Answer], tasks: Iterable[Task]) -> Iterator[Answer]:
    """Yield the answers in the order of the tasks."""
    early: dict[int, Answer] = {}
    following = 0
    for number, answer in run(tasks):
        early[number] = answer
        while following in early:
            yield early.pop(following)
            following += 1


class _Crew(Protocol):
    """Workers of one kind."""

    def size(self) -> int:
        """Return how many tasks can be in work at the same time."""

    def submit(self, task: object) -> Future[Any]:
        """Give a task to a worker; where that goes away the future fails with BrokenExecutor or CancelledError."""

    def close(self) -> None:
        """End what was started."""


def _answered(crew: _Crew, tasks: Iterable[Task]) -> Iterator[tuple[int, Answer]]:
    """Keep every worker busy with one task in reserve; what a lost worker had is given out again."""
    todo = enumerate(tasks)
    given: dict[Future[Answer], tuple[int, Task]] = {}
    losses = 0
    try:
        while True:
            more = islice(todo, max(0, 2 * crew.size() - len(given)))
            given.update((crew.submit(task), (number, task)) for number, task in more)
            if not given:
                return
            lost = []
            for done in wait_for(given, return_when=FIRST_COMPLETED).done:
                number, task = given.pop(done)
                try:
                    answer = done.result()
                except (BrokenExecutor, CancelledError) as error:
                    lost.append((number, task))
                    reason = error
                else:
                    losses = 0
                    yield number, answer
            if lost:
                losses += 1
                if losses > _MOST_LOSSES:
                    raise _gone(reason)
                given.update((crew.submit(task), (number, task)) for number, task in lost)
    finally:
        for future in given:
            future.cancel()


def _gone(error: Exception) -> TflqError:
    return TflqError(
        f"workers ended before their tasks did, {_MOST_LOSSES + 1} times in a row ({type(error).__name__}; memory may "
        f"have run out): use fewer --jobs, or machines with more memory"
    )


class _Processes:
    """Processes of this machine, each with a pipe of its own.

    One that is killed, also in the middle of an answer, closes its pipe; its neighbors share nothing with it.
    (`ProcessPoolExecutor` has one queue for all, whose lock or half a message a killed process leaves behind: then it
    waits for ever.)
    """

    def __init__(self, work: Work[Any, Any], jobs: int) -> None:
        self._work = work
        self._todo: SimpleQueue[tuple[Future[Any], object] | None] = SimpleQueue()
        self._busy: set[_Process] = set()
        self._keepers = [threading.Thread(target=self._keep, args=(jobs,), daemon=True) for _ in range(jobs)]
        for keeper in self._keepers:
            keeper.start()

    def size(self) -> int:
        return len(self._keepers)

    def submit(self, task: object) -> Future[Any]:
        future: Future[Any] = Future()
        self._todo.put((future, task))
        return future

    def close(self) -> None:
        while not self._todo.empty():
            given = self._todo.get()
            if given is not None:
                given[0].cancel()
        for _ in self._keepers:
            self._todo.put(None)
        for process in tuple(self._busy):  # nobody waits for its answer
            process.kill()
        for keeper in self._keepers:
            keeper.join()

    def _keep(self, jobs: int) -> None:
        """Keep one process, a new one where it went away, and hand it one task after the other."""
        process: _Process | None = None
        while (given := self._todo.get()) is not None:
            future, task = given
            if not future.set_running_or_notify_cancel():
                continue
            try:
                process = process or _Process(self._work, jobs)
                self._busy.add(process)
                is_answer, found = process.answer(task)
            except (EOFError, OSError) as error:
                if process is not None:
                    self._busy.discard(process)
                    process.kill()
                process = None
                future.set_exception(BrokenExecutor(f"a worker process ended: {error or 'killed'}"))
            except Exception as error:  # such as a task that cannot be pickled
                future.set_exception(error)
            else:
                self._busy.discard(process)
                if is_answer:
                    future.set_result(found)
                else:
                    future.set_exception(found)
        if process is not None:
            process.close()


class _Process:
    """One process and its pipe."""

    def __init__(self, work: Work[Any, Any], jobs: int) -> None:
        context = multiprocessing.get_context("spawn")  # threads of BLAS do not survive a fork
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, work))
        with _threads_each(max(1, (os.cpu_count() or 1) // jobs)), _interrupts_blocked():
            self._process.start()
        theirs.close()

    def answer(self, task: object) -> tuple[bool, Any]:
        """Return whether there is an answer, and the answer or the error.

        Raises:
            EOFError, OSError: the process went away.
        """
        self._pipe.send(task)
        found: tuple[bool, Any] = self._pipe.recv()
        return found

    def close(self) -> None:
        """Let it end; kill it where it does not."""
        self._pipe.close()
        self._process.join(_SECONDS_TO_END)
        self.kill()

    def kill(self) -> None:
        """End it now."""
        if self._process.is_alive():
            self._process.kill()
        self._process.join()


def _serve(pipe: Connection, work: Work[Any, Any]) -> None:
    """Answer tasks in a process of its own until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that gives the work ends this one in order
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            found: tuple[bool, object] = True, work(task)
        except Exception as error:
            found = False, error
        try:
            pipe.send(found)
        except OSError:  # nobody listens any more
            return
        except Exception as error:  # such as an answer that cannot be pickled
            pipe.send((False, TflqError(f"an answer of a worker cannot be sent: {error}")))


def _end_with_parent() -> None:
    """A process waits for work for ever, even where the process that gave it was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Start processes that ignore Ctrl-C from their first instruction: they inherit the mask of this thread."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # starting it within the block would lift the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_environment = threading.Lock()


@contextmanager
def _threads_each(count: int) -> Iterator[None]:
    """Let processes that start within this block use so many threads, where the user has not said."""
    with _environment:
        named = [name for name in _THREAD_VARIABLES if name not in os.environ]
        os.environ.update({name: str(count) for name in named})
        try:
            yield
        finally:
            for name in named:
                del os.environ[name]


class _Cluster:
    """The workers of a dask scheduler, which gives a lost worker's tasks to others by itself."""

    def __init__(self, work: Work[Any, Any], address: str) -> None:
        self._work = work
        self._client = _connect(address)
        self._executor: Executor = self._client.get_executor(pure=False)
        self._shared = self._client.scatter(work, broadcast=True)

    def size(self) -> int:
        return max(1, sum(int(threads) for threads in self._client.nthreads().values()))

    def submit(self, task: object) -> Future[Any]:
        return self._executor.submit(_answer, self._shared, task)

    def close(self) -> None:
        self._client.close()


def _answer(work: Work[Task, Answer], task: Task) -> Answer:
    return work(task)


def _connect(address: str) -> Client:
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("--scheduler needs dask.distributed: pip install 'tflq[cluster]'") from None
    _require_listener(address)
    try:
        client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:  # TypeError: dask has no certificates for tls://
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
