"""Layers of a model compared with a dump: wrong results on the dump's own inputs, and runs of changed layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.compare.dumps import Dump
from tflq.diagnosis.compare.isolated import constants_of, run_node
from tflq.diagnosis.compare.matching import Segment, segment
from tflq.diagnosis.compare.sides import Running
from tflq.diagnosis.form import Form, describe_form
from tflq.diagnosis.hypotheses.evidence import Evidence
from tflq.diagnosis.hypotheses.linear import Linear, linear_of
from tflq.diagnosis.place import Place, describe_place
from tflq.errors import TflqError
from tflq.graph import ABSENT, Affine, Array, Graph, Tensor
from tflq.graph.arena import macs
from tflq.graph.attributes import Attribute, Attributes
from tflq.graph.operators import Trait, with_traits
from tflq.interpreter.registry import kernel, kernel_name

LINEAR = with_traits(Trait.WEIGHTS) - with_traits(Trait.VOLUME)
"""Operators with weights as an operand."""
NOT_COMPUTED = (TflqError, ArithmeticError)
"""Exceptions of a kernel that refuses a changed layer. Every other exception is a defect of the hypothesis."""


@dataclass(frozen=True, eq=False)
class Suspect:
    """A layer: the nodes between tensors that the dump has, most often one.

    Attributes:
        graph: lowered.
        nodes: Nodes in order; the last one writes the tensor.
        main: the one with the weights, or the last.
        tensor: Tensor that differs.
        values: Values that the nodes read: the dump's if it has the tensor, dtype[S or 1, *shape] by tensor.
        got: the dump's, dtype[S, *shape].
        sound: Result of the nodes for `values`.
        own: Result of the whole network for its samples.
        others: the own values of the other tensors, by tensor.
        seen: the dump's other tensors, by tensor.
        first: number of the first sample.
    """

    graph: Graph
    nodes: tuple[int, ...]
    main: int
    tensor: int
    values: Mapping[int, Array]
    got: Array
    sound: Array
    own: Array
    others: Mapping[int, Array]
    seen: Mapping[int, Array]
    first: int = 0

    @property
    def operator(self) -> str:
        """Operator of the main node."""
        return self.graph.nodes[self.main].operator

    @cached_property
    def wrong(self) -> NDArray[np.bool_]:
        """Elements that differ, bool[S, *shape]."""
        return unequal(self.got, self.sound)

    @cached_property
    def place(self) -> Place:
        """Place of the differing elements."""
        able = (self.sound != self.sound.min()) & (self.sound != self.sound.max()) if self.sound.size else None
        return describe_place(self.wrong, self.got.dtype.itemsize, able)

    @cached_property
    def form(self) -> Form:
        """How their values differ."""
        return describe_form(self.got, self.sound, self.wrong)

    @cached_property
    def evidence(self) -> Evidence:
        """The size of a list of the differences."""
        return Evidence(int(self.wrong.sum()), self.wrong.size, self.form.values)

    @cached_property
    def work(self) -> int:
        """Multiply-accumulates and results of one run of the layer over its samples."""
        macs_of_sample = sum(
            macs(self.graph, n) + sum(self.graph.tensors[t].size for t in self.graph.nodes[n].outputs)
            for n in self.nodes
        )
        return max(1, macs_of_sample) * len(self.got)

    @cached_property
    def wrong_channels(self) -> list[int]:
        """Indices of the last axis that differ anywhere."""
        if self.wrong.ndim < 2:
            return []
        return [int(c) for c in np.flatnonzero(self.wrong.reshape(-1, self.wrong.shape[-1]).any(axis=0))]

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """Tensors that the main node reads and that are computed."""
        read = self.graph.nodes[self.main].inputs
        return tuple(dict.fromkeys(t for t in read if t != ABSENT and not self.graph.tensors[t].is_constant))

    @cached_property
    def outer_input(self) -> int | None:
        """The model's input if a node of the layer reads it."""
        read = [t for n in self.nodes for t in self.graph.nodes[n].inputs]
        return next((t for t in self.graph.inputs if t in read), None)

    @cached_property
    def weights(self) -> int | None:
        """The constant weights of the main node."""
        node = self.graph.nodes[self.main]
        if node.operator not in LINEAR:
            return None
        constants = [t for t in node.inputs if t != ABSENT and self.graph.tensors[t].is_constant]
        wide = [t for t in constants if len(self.graph.tensors[t].shape) >= 2]
        return wide[0] if wide else None

    @cached_property
    def bias(self) -> int | None:
        """Its constant bias."""
        node = self.graph.nodes[self.main]
        if self.weights is None:
            return None
        place = node.inputs.index(self.weights) + 1
        t = node.inputs[place] if place < len(node.inputs) else ABSENT
        return t if t != ABSENT and self.graph.tensors[t].is_constant and self.graph.tensors[t].size else None

    @cached_property
    def linear(self) -> Linear | None:
        """Accumulators and epilogue if the layer is a linear layer of integers that can be separated."""
        node = self.graph.nodes[self.main]
        parts = (
            linear_of(node.params, self.values[node.inputs[0]])
            if node.inputs and node.inputs[0] in self.values
            else None
        )
        if parts is None:
            return None
        return parts if np.array_equal(self.after_main(parts.result(parts.totals)), self.sound) else None

    @cached_property
    def worst_sample(self) -> int:
        """The sample with the most differing elements."""
        return int(np.argmax(self.wrong.reshape(len(self.got), -1).sum(axis=1)))

    @cached_property
    def dependences(self) -> dict[tuple[int, int, int], list[NDArray[np.bool_]]]:
        """(input, its axis, axis of the result) -> the indices of the result that read each input row, as measured."""
        return {}

    def part(self, samples: Sequence[int]) -> Suspect:
        """Return the layer with some samples only."""
        return self._take(list(samples), self.others, self.seen)

    def repeated(self, count: int) -> Suspect:
        """Return the layer with its samples `count` times, one after another; without the other tensors."""
        return self._take([*range(len(self.got))] * count, {}, {})

    def _take(self, kept: list[int], others: Mapping[int, Array], seen: Mapping[int, Array]) -> Suspect:
        def of(values: Mapping[int, Array]) -> dict[int, Array]:
            return {
                t: a[kept] if len(a) == len(self.got) and not self.graph.tensors[t].is_constant else a
                for t, a in values.items()
            }

        got, sound, own = (a[kept] for a in (self.got, self.sound, self.own))
        shown = (of(others), of(seen))
        start = self.first + (kept[0] if kept else 0)
        return Suspect(self.graph, self.nodes, self.main, self.tensor, of(self.values), got, sound, own, *shown, start)

    def run(self, values: Mapping[int, Array]) -> Array:
        """Return the tensor for other values of the layer's inputs, by tensor."""
        held = {**self.values, **values}
        for n in self.nodes:
            held.update(run_node(self.graph.nodes[n], held))
        return self._spread(held[self.tensor])

    def rerun(
        self,
        tensors: Mapping[int, Tensor] | None = None,
        attributes: Mapping[str, Attribute] | None = None,
        operator: str | None = None,
        inputs: Sequence[int] | None = None,
        values: Mapping[int, Array] | None = None,
    ) -> Array | None:
        """Lower the main node again with one change, and run the layer; None if that is impossible.

        Args:
            tensors: other encodings or constants, by tensor.
            attributes: other options of the operator.
            operator: another operator.
            inputs: other operands.
            values: other values of computed tensors.
        """
        graph = self.graph.copy()
        for t, tensor in (tensors or {}).items():
            graph.tensors[t] = tensor
        node = graph.nodes[self.main]
        changed = replace(
            node,
            operator=operator or node.operator,
            inputs=node.inputs if inputs is None else tuple(inputs),
            attributes=Attributes({**node.attributes, **(attributes or {})}),
        )
        graph.nodes[self.main] = changed
        held = {**self.values, **(values or {})}
        held.update({t: np.asarray(x.data)[None] for t, x in (tensors or {}).items() if x.data is not None})
        try:
            implementation = kernel(changed.arithmetic or "", kernel_name(changed))
            params = implementation.lower(changed, graph.operands(self.main))
            held.update(self._before_main(held))
            made = run_node(replace(changed, params=params), held)
            return self.after_main(made[node.outputs[0]])
        except NOT_COMPUTED:
            return None

    def after_main(self, result: Array) -> Array:
        """Return the tensor for a result of the main node."""
        t = self.graph.nodes[self.main].outputs[0]
        tensor = self.graph.tensors[t]
        held = {**self.values, t: result.astype(tensor.dtype.storage).reshape(len(result), *tensor.shape)}
        for n in self.nodes[self.nodes.index(self.main) + 1 :]:
            held.update(run_node(self.graph.nodes[n], held))
        return self._spread(held[self.tensor])

    def encoding(self, t: int) -> Affine | None:
        """Return the affine quantization of a tensor."""
        affine = self.graph.tensors[t].quantization
        return affine if isinstance(affine, Affine) else None

    def zero_point(self, t: int) -> int:
        """Return the zero point of a tensor, the first of several; 0 if it has none."""
        affine = self.encoding(t)
        return 0 if affine is None else int(affine.zero_point[0])

    def _before_main(self, held: Mapping[int, Array]) -> dict[int, Array]:
        values = dict(held)
        for n in self.nodes[: self.nodes.index(self.main)]:
            values.update(run_node(self.graph.nodes[n], values))
        return values

    def _spread(self, array: Array) -> Array:
        return np.broadcast_to(array, self.got.shape) if array.shape != self.got.shape else array


def unequal(a: Array, b: Array) -> NDArray[np.bool_]:
    """Mark the elements that differ; NaN equals any NaN."""
    mask = np.asarray(a != b, bool)
    if a.dtype.kind == "f" and b.dtype.kind == "f":
        mask &= ~(np.isnan(a) & np.isnan(b))
    return mask


def like(array: Array, s: Suspect) -> Array:
    """Return an array in the shape of the layer's result."""
    return np.ascontiguousarray(array).reshape(s.got.shape)


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
        """Yield the tensors that differ given the dump's own inputs, in order of execution: inputs, then layers."""
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

    def count_weighted(self) -> int:
        """Return the number of dumped tensors that a layer with weights writes."""
        return sum(self._segment(t).main.operator in LINEAR for t in self._seen if t not in self.graph.inputs)

    def made_within(self, s: Suspect) -> set[int]:
        """Return the tensors that nodes of a layer write."""
        return {t for n in s.nodes for t in self.graph.nodes[n].outputs}

    def _segment(self, t: int) -> Segment:
        """Return the nodes between the dumped tensors and tensor `t`."""
        return segment(self.graph, t, dict.fromkeys(self._seen, 0) | {t: 0}, None, {})

    def _suspect(self, t: int, values: dict[int, Array], made: Array) -> Suspect:
        part = self._segment(t)
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
    computed = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        if all(graph.tensors[t].is_constant for t in node.outputs):
            continue
        for t, array in run_node(node, values).items():
            values[t] = array
            computed[t] = np.broadcast_to(array, (count, *array.shape[1:]))
    return computed


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
