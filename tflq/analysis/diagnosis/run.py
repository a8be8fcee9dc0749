"""Some samples of a model beside its dump: each layer on the dump's own tensors, and which of them are wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tflq.analysis.compare.dumps import Dump
from tflq.analysis.compare.isolated import constants_of, run_node
from tflq.analysis.compare.matching import segment
from tflq.analysis.compare.sides import Running
from tflq.analysis.diagnosis.suspect import Suspect, unequal
from tflq.graph import Array, Graph

_MOST_SAMPLES, _MOST_BYTES = 16, 24 << 20


class Run:
    """Some samples through the network, and each layer on the dump's own tensors."""

    def __init__(self, model: Running, dump: Dump, held: Mapping[int, str], start: int, count: int) -> None:
        self.graph: Graph = model.execution.graph
        self.start, self.count = start, count
        self._seen = {
            t: np.asarray(dump.arrays[n][start : start + count]).reshape(count, *self.graph.tensors[t].shape)
            for t, n in held.items()
        }
        inputs = model.inputs(start, start + count)
        self._own = _network(self.graph, inputs, count)

    def suspects(self) -> Iterator[Suspect]:
        """Yield what is wrong by itself, in order of execution: inputs, then layers."""
        graph = self.graph
        values = dict(constants_of(graph))
        for t in graph.inputs:
            own = self._own[t]
            if t in self._seen and unequal(self._seen[t], own).any():
                yield Suspect(graph, (), 0, t, {t: own}, self._seen[t], own, own, {}, self._seen, self.start)
            values[t] = self._seen.get(t, own)
        for node in graph.nodes:
            if all(graph.tensors[t].is_constant for t in node.outputs):
                continue
            for t, array in run_node(node, values).items():
                made = np.broadcast_to(array, (len(self._own[t]), *array.shape[1:]))
                values[t] = self._seen.get(t, made)
                if t in self._seen and unequal(self._seen[t], made).any():
                    yield self._suspect(t, dict(values), np.ascontiguousarray(made))

    def made_within(self, s: Suspect) -> set[int]:
        """Return the tensors that nodes of a layer write."""
        return {t for n in s.nodes for t in self.graph.nodes[n].outputs}

    def _suspect(self, t: int, values: dict[int, Array], made: Array) -> Suspect:
        part = segment(self.graph, t, dict.fromkeys(self._seen, 0) | {t: 0}, None, {})
        nodes = part.nodes
        main = next(n for n in nodes if self.graph.nodes[n] is part.main)
        read = {i for n in nodes for i in self.graph.nodes[n].inputs if i in values}
        held = {i: values[i] for i in read}
        others = {i: a for i, a in self._own.items() if i != t}
        seen = {i: a for i, a in self._seen.items() if i != t}
        return Suspect(self.graph, nodes, main, t, held, self._seen[t], made, self._own[t], others, seen, self.start)


def _network(graph: Graph, inputs: Sequence[Array], count: int) -> dict[int, Array]:
    """Return every computed tensor of the network's own run, dtype[S, *shape]."""
    values = dict(constants_of(graph))
    values.update(zip(graph.inputs, inputs, strict=True))
    found = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        if all(graph.tensors[t].is_constant for t in node.outputs):
            continue
        for t, array in run_node(node, values).items():
            values[t] = array
            found[t] = np.broadcast_to(array, (count, *array.shape[1:]))
    return found


def window(model: Running, dump: Dump, held: Mapping[int, str], samples: int) -> tuple[int, int]:
    """Choose the samples to look at: as many as are quick, around the first one that differs."""
    graph = model.execution.graph
    size = sum(graph.tensors[t].size * 8 for n in graph.nodes for t in n.outputs)
    count = int(np.clip(_MOST_BYTES // max(size, 1), 2, _MOST_SAMPLES))
    for start in range(0, samples, count):
        stop = min(start + count, samples)
        run = Run(model, dump, held, start, stop - start)
        if next(run.suspects(), None) is not None:
            begin = max(0, min(start, samples - count))
            return begin, min(count, samples - begin)
    return 0, 0
