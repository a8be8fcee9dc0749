"""Sides of a comparison: any source of named tensors for numbered samples."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from tflq.errors import InputError
from tflq.graph import Array, Graph, Tensor
from tflq.graph.model import source_tensors
from tflq.parallel.executions import Execution, real_values
from tflq.sampling import Samples
from tflq.sampling.encoding import quantize_real


@dataclass(frozen=True)
class Column:
    """One tensor of a side.

    Attributes:
        name: unique within the side.
        tensor: Tensor with the encoding of the values; None for a dump that does not specify it.
        index: Index of the tensor in its graph, or position in the dump.
        node: name of the node that writes it; empty for inputs and dumps.
        source: name of the model's tensor that it corresponds to, if the graph renames tensors; else empty.
    """

    name: str
    tensor: Tensor | None
    index: int
    node: str = ""
    source: str = ""


class Side(Protocol):
    """One of two that are compared."""

    @property
    def name(self) -> str:
        """How the report calls it."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """Tensors of the side, in order of execution if it has one."""

    @property
    def count(self) -> int | None:
        """Number of samples; None if the side runs any samples."""

    def take(self, start: int, stop: int, columns: Collection[Column]) -> dict[str, Array]:
        """Return samples start..stop-1 of some tensors by name: dtype[stop - start, *shape]. Calls go upwards."""


@dataclass(frozen=True)
class ConvertedSamples:
    """Samples of one model for another one: by way of floating point if the encodings differ.

    Attributes:
        samples: Samples in the encoding of `source`.
        source: the model that they were made for.
        graph: the model that gets them; its inputs follow the same order.
    """

    samples: Samples
    source: Graph
    graph: Graph

    def __post_init__(self) -> None:
        ours, theirs = (_inputs(g) for g in (self.source, self.graph))
        if [t.shape for t in ours] != [t.shape for t in theirs]:
            raise InputError(
                f"the models take different inputs: {', '.join(f'{list(t.shape)}' for t in ours)} and "
                f"{', '.join(f'{list(t.shape)}' for t in theirs)}; they need the same shapes in the same order"
            )

    @property
    def count(self) -> int:
        """Number of samples."""
        return self.samples.count

    def take(self, start: int, stop: int) -> list[Array]:
        """Return samples start..stop-1 in the encoding of `graph`."""
        arrays = []
        for array, a, b in zip(self.samples.take(start, stop), _inputs(self.source), _inputs(self.graph), strict=True):
            same = a.dtype is b.dtype and a.quantization == b.quantization
            arrays.append(array if same else quantize_real(real_values(array, a), b, "samples")[0])
        return arrays


@dataclass(frozen=True)
class Running:
    """A model under an arithmetic.

    Attributes:
        execution: the graph that runs.
        samples: Samples in the encoding of `execution.source`.
        name: Name in the report.
    """

    execution: Execution
    samples: Samples
    name: str = field(default="")

    @property
    def count(self) -> int | None:
        """It runs any sample."""
        return None

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Inputs, then outputs of nodes, in order; folded constants are no columns."""
        graph = self.execution.graph
        tensors = [(t, "") for t in graph.inputs]
        tensors += [(t, n.name) for n in graph.nodes for t in n.outputs if not graph.tensors[t].is_constant]
        names = [graph.tensors[t].name for t, _ in tensors]
        sources = source_tensors(graph)
        theirs = self.execution.source.tensors
        return tuple(
            Column(
                name if name and names.count(name) == 1 else f"{name or 'tensor'}#{t}",
                graph.tensors[t],
                t,
                node,
                theirs[sources[t]].name if t in sources else "",
            )
            for (t, node), name in zip(tensors, names, strict=True)
        )

    @cached_property
    def _read_limits(self) -> Mapping[int, float]:
        target = self.execution.target
        return {} if target is None else target.read_limits(self.execution.graph)

    def as_read(self, array: Array, column: Column) -> Array:
        """Return a tensor clipped to the range that its readers keep, as another model is compared with it."""
        limit = self._read_limits.get(column.index)
        return array if limit is None else np.clip(array, -limit, limit)

    def inputs(self, start: int, stop: int) -> list[Array]:
        """Return samples in the encoding of the graph that runs."""
        return self.execution.encode(self.samples.take(start, stop))

    def take(self, start: int, stop: int, columns: Collection[Column]) -> dict[str, Array]:
        """Run some samples."""
        values = self.execution.engine.run(self.inputs(start, stop), [c.index for c in columns])
        return {c.name: values[c.index] for c in columns}


def _inputs(graph: Graph) -> Sequence[Tensor]:
    return [graph.tensors[t] for t in graph.inputs]
