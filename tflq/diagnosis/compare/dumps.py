"""A tensor dump of a board or another tool as a side: the model decides order and names (docs/guides/dumps.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tflq.diagnosis.compare.sides import Column, Running
from tflq.diagnosis.dumps.understanding import Understood, understand
from tflq.diagnosis.dumps.wanted import Archive, DumpOptions, Wanted
from tflq.errors import InputError
from tflq.graph import Array, Graph


@dataclass(frozen=True)
class Dump:
    """Arrays by tensor name, [S, *shape].

    Attributes:
        name: the file.
        columns: Tensors of the dump; `tensor` is None without a model that describes them.
        arrays: Arrays by column name.
        count: number of samples.
        short: names of the columns of which only the first elements are there: [S, n].
        understood: Interpretation of the dump; None without a model.
    """

    name: str
    columns: tuple[Column, ...]
    arrays: Mapping[str, Array]
    count: int
    short: frozenset[str] = frozenset()
    understood: Understood | None = None

    def take(self, start: int, stop: int, columns: Collection[Column]) -> dict[str, Array]:
        """Return some samples."""
        return {c.name: np.asarray(self.arrays[c.name][start:stop]) for c in columns}


def dump_of(archive: Archive, side: Running, options: DumpOptions = DumpOptions(), samples: int | None = None) -> Dump:
    """Read an archive as a dump of a model.

    Args:
        archive: Result of `read_archive`.
        side: Model; its tensors provide order, names, shapes and encodings.
        options: Options of the caller that describe the dump.
        samples: Number of samples that the model gets; None if unknown.

    Raises:
        InputError: as `understand`.
    """
    understood = understand(archive, wanted_of(side), options, samples)
    columns = {c.name: c for c in side.columns}
    return Dump(
        archive.path,
        tuple(Column(r.wanted.name, r.tensor, columns[r.wanted.name].index) for r in understood.readings),
        {r.wanted.name: r.array for r in understood.readings},
        understood.samples,
        frozenset(r.wanted.name for r in understood.readings if r.is_short),
        understood,
    )


def dump_as_it_is(archive: Archive) -> Dump:
    """Take the first axis of every array as the samples, for two dumps without a model.

    Raises:
        InputError: arrays with different numbers of samples.
    """
    arrays = {s.name: s.array for s in archive.arrays}
    counts = {name: len(array) if array.ndim else 1 for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        words = ", ".join(f"'{name}' {count}" for name, count in list(counts.items())[:6])
        raise InputError(
            f"{archive.path}: tensors have different numbers of samples: {words}; they need the same number"
        )
    columns = tuple(Column(name, None, i) for i, name in enumerate(arrays))
    return Dump(archive.path, columns, arrays, next(iter(counts.values())))


def wanted_of(side: Running) -> list[Wanted]:
    """Return the tensors of a model that a dump may contain: inputs and outputs of nodes."""
    source, graph = side.execution.source, side.execution.graph
    numbers = _numbers(source)
    writers = source.producers()
    by_name = {c.index: numbers.get(c.source, numbers.get(graph.tensors[c.index].name)) for c in side.columns}
    by_node = {n.name: n.outputs[0] for n in source.nodes if n.outputs and n.outputs[0] not in by_name.values()}
    nodes = {c.node for c in side.columns}
    tensors = []
    for c in side.columns:
        assert c.tensor is not None
        tensor = graph.tensors[c.index]
        index = by_name[c.index]
        if index is None and f"{c.node}_activation" not in nodes:
            # The target renamed its tensors: the node keeps the model's name if it includes its activation.
            index = by_node.get(c.node)
        if index is None and c.node == "" and c.index in graph.inputs:
            index = source.inputs[graph.inputs.index(c.index)]
        names = tuple(dict.fromkeys(n for n in (c.name, tensor.name, c.node, c.source) if n))
        operator = None if index is None else writers.get(index)
        tensors.append(Wanted(c.name, c.tensor, names, operator, index, c.index in graph.outputs))
    return tensors


def _numbers(source: Graph) -> dict[str, int]:
    """Return the tensors of a model by name, without names that occur more than once."""
    names: Sequence[str] = [t.name for t in source.tensors]
    return {name: i for i, name in enumerate(names) if name and names.count(name) == 1}
