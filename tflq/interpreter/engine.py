"""The engine: runs a lowered graph over many samples at once, in chunks, and shows every tensor to listeners."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tflq.errors import GraphError, InputError
from tflq.graph import ABSENT, Array, Graph, Node
from tflq.interpreter.lowering import lower, shared
from tflq.interpreter.registry import Run, kernel

CHUNK_BYTES = 2 << 20
"""Bytes of activations that one chunk of samples may hold at a time: about what stays in the second-level cache."""


class Listener(Protocol):
    """Sees each node before and after it runs: dumps, comparison, profiling and progress are listeners."""

    def will_run(self, index: int, node: Node, inputs: Sequence[Array | None]) -> None:
        """Called before node `index` runs on these arrays."""

    def did_run(self, index: int, node: Node, outputs: Sequence[Array]) -> None:
        """Called after it wrote these."""


@dataclass(frozen=True)
class _Step:
    index: int
    node: Node
    run: Run
    release: tuple[int, ...]


class Engine:
    """A lowered graph made ready to run.

    Results do not depend on the chunk size. Every array has a leading axis of S samples in front of the model's own
    shape.
    """

    def __init__(self, graph: Graph, arithmetic: str = "tflite", listeners: Sequence[Listener] = ()) -> None:
        """Lower the graph where it is not lowered yet, and prepare it.

        Args:
            graph: lowered, or not.
            arithmetic: for nodes of a graph that is not lowered.
            listeners: called around each node, in this order.

        Raises:
            UnsupportedError: an operator or type without a kernel.
        """
        self.graph = graph if all(n.integers is not None for n in graph.nodes) else lower(graph, arithmetic)
        self.listeners = tuple(listeners)
        self._constants = {i: shared(t.data) for i, t in enumerate(self.graph.tensors) if t.data is not None}
        self._computed = [
            (i, node)
            for i, node in enumerate(self.graph.nodes)
            if not all(self.graph.tensors[t].is_constant for t in node.outputs)
        ]
        self._sample_bytes = self._bytes_of_one_sample()

    def run(
        self,
        inputs: Sequence[Array],
        keep: Collection[int] | None = None,
        chunk_size: int | None = None,
    ) -> dict[int, Array]:
        """Run all samples and return the tensors asked for.

        Args:
            inputs: one array for each graph input: dtype[S, *shape].
            keep: tensor indices to return; None for the graph's outputs.
            chunk_size: samples at a time; None to choose by the size of the activations.

        Returns:
            Tensor index -> dtype[S, *shape].

        Raises:
            InputError: an input has the wrong count, shape, dtype or number of samples.
        """
        chunks = list(self.iterate(inputs, keep, chunk_size))
        if len(chunks) == 1:
            return chunks[0]
        return {t: np.concatenate([chunk[t] for chunk in chunks]) for t in chunks[0]}

    def iterate(
        self,
        inputs: Sequence[Array],
        keep: Collection[int] | None = None,
        chunk_size: int | None = None,
    ) -> Iterator[dict[int, Array]]:
        """Run chunk by chunk: as `run`, but yields each chunk's tensors, so that memory does not grow with S."""
        samples = self.check_inputs(inputs)
        kept = tuple(self.graph.outputs if keep is None else keep)
        steps = self._steps(kept)
        size = chunk_size or self.chunk_size()
        for start in range(0, samples, size):
            yield self._run_chunk([x[start : start + size] for x in inputs], kept, steps)

    def chunk_size(self) -> int:
        """Return the number of samples whose largest layer fits CHUNK_BYTES; at least 1."""
        return max(1, CHUNK_BYTES // max(1, self._sample_bytes))

    def check_inputs(self, inputs: Sequence[Array]) -> int:
        """Check arrays against the graph's inputs and return the number of samples.

        Raises:
            InputError: names the input, what was found and what is allowed.
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

    def _run_chunk(self, inputs: Sequence[Array], kept: tuple[int, ...], steps: list[_Step]) -> dict[int, Array]:
        values: dict[int, Array] = dict(self._constants)
        values.update(zip(self.graph.inputs, inputs, strict=True))
        samples = inputs[0].shape[0] if inputs else 1
        for step in steps:
            operands = [None if t == ABSENT else values[t] for t in step.node.inputs]
            for listener in self.listeners:
                listener.will_run(step.index, step.node, operands)
            results = step.run(step.node.integers, *operands)
            for listener in self.listeners:
                listener.did_run(step.index, step.node, results)
            values.update(zip(step.node.outputs, results, strict=True))
            for t in step.release:
                del values[t]
        return {t: self._all_samples(values[t], samples) for t in kept}

    def _steps(self, kept: tuple[int, ...]) -> list[_Step]:
        """Put down, for each node, which tensors nobody needs after it."""
        steps: list[_Step] = []
        needed = set(kept) | set(self._constants)
        for index, node in reversed(self._computed):
            touched = [t for t in dict.fromkeys(node.inputs + node.outputs) if t != ABSENT]
            release = tuple(t for t in touched if t not in needed)
            needed.update(touched)
            steps.append(_Step(index, node, kernel(node.arithmetic or "", node.operator).run, release))
        known = {*self._constants, *self.graph.inputs, *(t for _, node in self._computed for t in node.outputs)}
        unknown = [t for t in kept if t not in known]
        if unknown:
            raise GraphError(f"tensor {unknown[0]} was asked for, but the graph computes no such tensor")
        return steps[::-1]

    def _bytes_of_one_sample(self) -> int:
        sizes = [
            sum(
                self.graph.tensors[t].size
                for t in node.inputs + node.outputs
                if t not in self._constants and t != ABSENT
            )
            for _, node in self._computed
        ]
        return 4 * max(sizes, default=1)

    @staticmethod
    def _all_samples(value: Array, samples: int) -> Array:
        if value.shape[0] == samples:
            return value
        return np.broadcast_to(value, (samples, *value.shape[1:]))
