"""The engine: runs a graph over many samples at once, in chunks, and shows every tensor to listeners.

Work on several threads with results in order; numpy releases the interpreter's lock while it computes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np

from tflq.backends import Backend, backend_in_force, require_backend
from tflq.errors import InputError, OptionError
from tflq.graph import ABSENT, Array, Graph, Node
from tflq.interpreter.compiled.compiler import kernels_or_none
from tflq.interpreter.compiled.run import CompiledRun
from tflq.interpreter.execution.control import Session
from tflq.interpreter.execution.lowering import Step
from tflq.interpreter.execution.memory import enough_memory, require_live_memory, require_memory
from tflq.interpreter.execution.program import Library, Listener
from tflq.interpreter.execution.values import concatenate, for_all_samples
from tflq.interpreter.layout import SAMPLES_LAST_FROM
from tflq.limits import Limits, apply_limits

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_in_order(function: Callable[[_Item], _Result], items: Iterable[_Item], threads: int) -> Iterator[_Result]:
    """Yield function(item) for each item, in order; no more than `threads` results wait or are in work.

    Each call sees the caller's context variables. The first error is raised in its place; items that were not begun
    then are not run.
    """
    if threads == 1:
        yield from map(function, items)
        return
    waiting: deque[Future[_Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                if len(waiting) == threads:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(copy_context().run, function, item))
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


CHUNK_BYTES = 4 << 20
"""Bytes of activations, counted as float32, that one chunk of samples may hold at a time.

Larger chunks share the cost of calls, smaller ones stay in the cache; kernels work in blocks of their own.
"""

State = Literal["independent", "stream"]


class Engine:
    """A graph ready to run.

    Results do not depend on the chunk size, nor on the number of threads. Every array has a leading axis of S samples
    before the model's own shape; a tensor with a shape that differs between samples is an object array [S] of arrays.
    """

    def __init__(
        self,
        graph: Graph,
        arithmetic: str = "tflite",
        listeners: Sequence[Listener] = (),
        *,
        graphs: Sequence[Graph] | None = None,
        state: State | None = None,
        session: Session | None = None,
        limits: Limits | None = None,
        threads: int = 1,
        backend: Backend | None = None,
    ) -> None:
        """Lower the graph unless it is lowered, and prepare it.

        Args:
            graph: lowered, or not.
            arithmetic: Arithmetic for nodes of a graph that is not lowered.
            listeners: called around each node of this graph, in this order.
            graphs: all graphs of the model, if this one runs others; it must be among them.
            state: Handling of state (variables, resources, random generators): `independent` starts each sample with a
                fresh state, `stream` makes the samples successive invocations that share it.
            session: State of a stream, to share it with other engines of the model; None for a separate one.
            limits: Limits on memory, nesting and repetition; None for the limits in force now (tflq/limits.py).
            threads: chunks that run at the same time, unless samples follow each other (a stream) or listeners watch.
                It pays if numpy's BLAS uses one thread (OPENBLAS_NUM_THREADS=1).
            backend: "c" to run the layers of 8 bits that tflq.interpreter.compiled takes in compiled C, except for
                listeners; results are the same. If no compiler is available, numpy runs after a warning. None for the
                one in force (tflq/backends.py).

        Raises:
            OptionError: less than one thread; a backend that does not exist.
            UnsupportedError: an operator or type without a kernel, or more of something than `limits` allow.
        """
        family = [graph] if graphs is None else list(graphs)
        number = next(i for i, g in enumerate(family) if g is graph)
        with apply_limits(limits) as self._limits, enough_memory():
            require_memory(family)
            chosen = backend_in_force() if backend is None else require_backend(backend)
            library = Library(family, arithmetic, None if chosen == "numpy" else kernels_or_none())
            self._program = library.program(number)
            reachable = [library.program(i) for i in sorted(library.reachable(number))]
            require_live_memory(family, number)
        self.graph = self._program.graph
        self.graphs = (*library.graphs[:number], self.graph, *library.graphs[number + 1 :])
        self.backend: Backend = "numpy" if library.kernels is None else "c"
        self.listeners = tuple(listeners)
        self._state: State | None = state
        self._session = Session() if session is None else session
        self._has_resources = any(p.has_resources for p in reachable)
        self._has_state = self._has_resources or any(p.has_variables for p in reachable)
        self.threads = threads
        self._bytes: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}

    def run(
        self,
        inputs: Sequence[Array],
        keep: Collection[int] | None = None,
        chunk_size: int | None = None,
    ) -> dict[int, Array]:
        """Run all samples and return the requested tensors.

        Args:
            inputs: one array for each graph input: dtype[S, *shape].
            keep: tensor indices to return; None for the graph's outputs.
            chunk_size: samples at a time; None to choose by the size of the activations.

        Returns:
            Tensor index -> dtype[S, *shape].

        Raises:
            InputError: an input has the wrong count, shape, dtype or number of samples.
            OptionError: the model keeps state, there are several samples, and `state` was not chosen; chunks of less
                than one sample.
        """
        if keep is None and chunk_size is None and self.threads == 1 and self._at_once is not None:
            found = self._at_once.run_at_once(inputs)
            if found is not None:
                return found
        if chunk_size is None and self.threads == 1 and self.backend == "c":
            chunk_size = max(self.chunk_size(keep), self._chunk_within(keep, self.graph.inputs))
        chunks = list(self.iterate(inputs, keep, chunk_size))
        return {t: concatenate([chunk[t] for chunk in chunks]) for t in chunks[0]}

    def iterate(
        self,
        inputs: Sequence[Array],
        keep: Collection[int] | None = None,
        chunk_size: int | None = None,
    ) -> Iterator[dict[int, Array]]:
        """Run chunk by chunk: as `run`, but yields each chunk's tensors, so that memory does not grow with S."""
        arrays = [np.asarray(x) for x in inputs]
        samples = self.check_inputs(arrays)
        if chunk_size is not None and chunk_size < 1:
            raise OptionError(f"chunks of {chunk_size} samples; 1 or more are needed")
        if self._has_state and samples > 1 and self._state is None:
            raise OptionError(
                f"the model keeps state and there are {samples} samples: choose state=independent (fresh for each "
                f"sample) or state=stream (samples are successive invocations); on the command line --state"
            )
        kept = tuple(dict.fromkeys(self.graph.outputs if keep is None else keep))
        steps = self._program.steps(kept, alone=bool(self.listeners))
        threads = 1 if self.listeners or self._state == "stream" else self.threads
        size = 1 if samples == 1 or self._runs_one_by_one() else chunk_size or self._shared_out(samples, threads, kept)

        def run(start: int) -> dict[int, Array]:
            session = self._session if self._state == "stream" else Session()
            session.subgraph_runs = 0
            count = min(size, samples - start)
            with apply_limits(self._limits), enough_memory():
                chunk = [x[start : start + size] for x in arrays]
                values = self._program.run(chunk, count, session, kept, steps, self.listeners)
            return {t: for_all_samples(values[t], count) for t in kept}

        yield from map_in_order(run, range(0, samples, size), threads)

    @cached_property
    def _at_once(self) -> CompiledRun | None:
        """Run of compiled C that computes the outputs of any number of samples in one call, with constant memory."""
        steps = self._program.steps(tuple(dict.fromkeys(self.graph.outputs)), alone=bool(self.listeners))
        part = steps[0] if len(steps) == 1 else None
        if self._has_state or not isinstance(part, CompiledRun):
            return None
        is_whole = tuple(t for t, _, _ in part.reads) == self.graph.inputs
        return part if is_whole and {t for t, _, _ in part.writes} == set(self.graph.outputs) else None

    def in_numpy(self, keep: Collection[int] | None = None) -> tuple[Node, ...]:
        """Return the nodes that numpy runs: all of them, or with backend "c" the nodes that compiled C does not take.

        Args:
            keep: tensor indices that a run returns, as for `run`.
        """
        kept = tuple(self.graph.outputs if keep is None else keep)
        parts = self._program.steps(kept, alone=bool(self.listeners))
        return tuple(part.node for part in parts if isinstance(part, Step))

    def reset(self) -> None:
        """Forget the state that a stream has built up."""
        self._session = Session()

    def chunk_size(self, keep: Collection[int] | None = None) -> int:
        """Return the number of samples with a largest layer that fits CHUNK_BYTES; at least 1.

        A multiple of SAMPLES_LAST_FROM if samples are last in memory, and at least that if half of it fits. Internal
        memory of compiled C does not count.

        Args:
            keep: tensor indices that a run returns, as for `run`.
        """
        kept = tuple(dict.fromkeys(self.graph.outputs if keep is None else keep))
        size = max(1, CHUNK_BYTES // max(1, self._bytes_of_one_sample(kept)))
        if not self._program.prefers_samples_last or 2 * size < SAMPLES_LAST_FROM:
            return size
        return max(1, size // SAMPLES_LAST_FROM) * SAMPLES_LAST_FROM

    @property
    def is_stream(self) -> bool:
        """Whether samples follow each other: each begins with the state after the one before it."""
        return self._has_state and self._state == "stream"

    @property
    def threads(self) -> int:
        """Chunks that run at the same time."""
        return self._threads

    @threads.setter
    def threads(self, threads: int) -> None:
        if threads < 1:
            raise OptionError(f"{threads} threads; 1 or more are needed")
        self._threads = threads

    def _shared_out(self, samples: int, threads: int, kept: tuple[int, ...]) -> int:
        """Return a chunk size that keeps all threads busy to the end."""
        size = self.chunk_size(kept)
        return size if threads == 1 else -(-samples // (threads * -(-samples // (threads * size))))

    def check_inputs(self, inputs: Sequence[Array]) -> int:
        """Check arrays against the graph's inputs and return the number of samples.

        Raises:
            InputError: input name, measured value and allowed values.
        """
        if len(inputs) != len(self.graph.inputs):
            raise InputError(f"{len(inputs)} input arrays were given, the model has {len(self.graph.inputs)} inputs")
        counts = set()
        for t, x in zip(self.graph.inputs, inputs, strict=True):
            tensor = self.graph.tensors[t]
            expected = tensor.dtype.storage
            if x.dtype != expected:
                raise InputError(f"input '{tensor.name}': the array is {x.dtype}, the model takes {expected}")
            if x.shape[1:] != tensor.shape or x.ndim == 0:
                raise InputError(
                    f"input '{tensor.name}': the array has shape {x.shape}, the model takes "
                    f"{('samples', *tensor.shape)}".replace("'samples'", "samples")
                )
            counts.add(x.shape[0])
        if len(counts) > 1 or 0 in counts:
            raise InputError(f"inputs have {sorted(counts)} samples; they need the same number, 1 or more")
        return counts.pop() if counts else 1

    def _runs_one_by_one(self) -> bool:
        """Resources have one value for all samples of a chunk, and a stream's samples follow each other."""
        return self._has_resources or self.is_stream

    def _chunk_within(self, keep: Collection[int] | None, present: tuple[int, ...]) -> int:
        """Return the samples of a chunk if compiled C reads `present` tensors, which are in memory, in place."""
        kept = tuple(dict.fromkeys(self.graph.outputs if keep is None else keep))
        return CHUNK_BYTES // self._bytes_of_one_sample(kept, present)

    def _bytes_of_one_sample(self, kept: tuple[int, ...], present: tuple[int, ...] = ()) -> int:
        key = kept, present
        if key not in self._bytes:
            left_out = self._program.constants.keys() | {ABSENT}
            sizes = [
                sum(self.graph.tensors[t].size for t in part.ends if t not in left_out and not (of_c and t in present))
                for part in self._program.steps(kept, alone=bool(self.listeners))
                for of_c in (isinstance(part, CompiledRun),)
            ]
            self._bytes[key] = 4 * max([1, *sizes])
        return self._bytes[key]
