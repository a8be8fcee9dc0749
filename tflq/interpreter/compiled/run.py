"""A run of layers as one step of a program."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, Graph
from tflq.interpreter.compiled.compiler import CLayer, CPlan, Library, aligned_copy
from tflq.interpreter.compiled.plan import Planned, Run, runs_of
from tflq.interpreter.execution.lowering import Step
from tflq.interpreter.execution.values import Value


@dataclass(frozen=True, eq=False)
class CompiledRun:
    """Steps that kernels.c executes as one call.

    Attributes:
        steps: Steps as numpy would run them.
        reads: tensors and their shapes and types.
        writes: likewise.
        planned: the layers.
        plan: Struct plan; `owned` keeps its pointers alive.
        owned: Arrays referenced by the pointers.
        library: the kernels.
        release: tensors that are not needed after this run.
        arenas: memory that no thread is using, and its first aligned offset.
    """

    steps: tuple[Step, ...]
    reads: tuple[tuple[int, tuple[int, ...], np.dtype[np.generic]], ...]
    writes: tuple[tuple[int, tuple[int, ...], np.dtype[np.generic]], ...]
    planned: Planned
    plan: CPlan
    owned: tuple[object, ...]
    library: Library
    release: tuple[int, ...]
    arenas: deque[tuple[NDArray[np.uint8], int]] = field(default_factory=deque)

    @property
    def ends(self) -> tuple[int, ...]:
        """The tensors that it reads and writes."""
        return tuple(t for t, _, _ in (*self.reads, *self.writes))

    def run(self, values: Mapping[int, Value], samples: int) -> dict[int, Array] | None:
        """Return the tensors written, T[S, *shape]; None if an input is not as the layers were planned for."""
        arrays = []
        for t, shape, dtype in self.reads:
            value = values[t]
            if not (isinstance(value, np.ndarray) and value.shape[1:] == shape and value.dtype == dtype):
                return None
            if len(value) != samples:
                value = np.broadcast_to(value, (samples, *shape))
            arrays.append(value if value.flags.c_contiguous else np.ascontiguousarray(value))
        return self._call(arrays, samples)

    def run_at_once(self, inputs: Sequence[Array]) -> dict[int, Array] | None:
        """Return the tensors written for contiguous input arrays; None if these need checks or copies first."""
        samples = len(inputs[0]) if len(inputs) == len(self.reads) else 0
        for array, (_, shape, dtype) in zip(inputs, self.reads, strict=False):
            is_plain = isinstance(array, np.ndarray) and array.dtype == dtype and array.flags.c_contiguous
            if not is_plain or array.shape != (samples, *shape):
                return None
        try:
            return self._call(inputs, samples) if samples else None
        except MemoryError:
            return None

    def _call(self, arrays: Sequence[Array], samples: int) -> dict[int, Array]:
        outputs = {t: np.empty((samples, *shape), dtype) for t, shape, dtype in self.writes}
        pointers = [array.__array_interface__["data"][0] for array in (*arrays, *outputs.values())]
        try:
            arena, memory = self.arenas.pop()
        except IndexError:
            arena = aligned_copy(self.planned.arena.reshape(-1))
            memory = arena.ctypes.data
        table = (ctypes.c_void_p * len(pointers))(*pointers)
        self.library.functions.tflq_run(ctypes.addressof(self.plan), memory, samples, table)
        self.arenas.append((arena, memory))
        return outputs


def compiled_steps(
    graph: Graph, steps: Sequence[Step], kept: Sequence[int], library: Library
) -> list[Step | CompiledRun]:
    """Return the steps, with steps that kernels.c takes joined to runs.

    Args:
        graph: lowered.
        steps: Steps in order.
        kept: tensors that are needed at the end.
        library: the kernels.
    """
    found = runs_of(graph, steps, library)
    needed, result = set(kept), list[Step | CompiledRun]()
    for item in reversed(found):
        own = item.steps if isinstance(item, Run) else [item]
        if isinstance(item, Run):
            made = _compiled(item, needed)
            result += own[::-1] if made is None else [made]
        else:
            result.append(item)
        needed.update(t for step in own for t in step.node.inputs)
    return result[::-1]


def _compiled(run: Run, needed: set[int]) -> CompiledRun | None:
    kept = [t for step in run.steps for t in step.node.outputs if t in needed]
    planned = run.plan(kept)
    if planned is None:
        return None
    tensors = run.graph.tensors
    reads, writes = (
        tuple((t, tensors[t].shape, tensors[t].dtype.storage) for t in group) for group in (run.reads, kept)
    )
    layers = (CLayer * len(planned.layers))(*planned.layers)
    sizes = np.array([prod(shape) * dtype.itemsize for _, shape, dtype in (*reads, *writes)], np.int64)
    plan = CPlan(
        layers=ctypes.addressof(layers),
        count=len(planned.layers),
        batch=planned.batch,
        sample_bytes=planned.sample_bytes,
        slots=len(sizes),
        slot_bytes=sizes.ctypes.data,
    )
    stored = {t for t, _, _ in (*reads, *writes)}
    release = tuple(t for step in run.steps for t in step.release if t in stored)
    return CompiledRun(tuple(run.steps), reads, writes, planned, plan, (layers, sizes), run.library, release)
