"""Explanation of one element of one tensor: runs the sample, and records how its node computes the element.

For an element of a constant: its value in the file, the value it encodes, and its value in the graph that runs.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.diagnosis.explain.bias import with_folded_bias
from tflq.diagnosis.explain.recording import RecordedNode
from tflq.diagnosis.explain.steps import Index, Slice, Step, Value
from tflq.errors import OptionError
from tflq.graph import ABSENT, Affine, Array, Graph, Node, Tensor
from tflq.graph.cut import needed_nodes, with_nodes
from tflq.graph.layer_names import find_layer
from tflq.interpreter import Engine
from tflq.interpreter.execution.control import CONTROL
from tflq.parallel.executions import real_values


@dataclass(frozen=True)
class Explanation:
    """Computation of one element.

    Attributes:
        tensor: name of the tensor.
        index: position in the model's own axes.
        sample: number of the sample.
        node: name of the node that writes it.
        operator: Operator of the node.
        arithmetic: whose integers.
        source: Place of the formula in the documentation.
        steps: Steps in order; the last value is the stored one.
        stored: Value that the engine computed.
        real: Dequantized value; None if the tensor is not quantized.
        before: Explanation of the one element that this one depends on (a convolution's before its ReLU).
    """

    tensor: str
    index: Index
    sample: int
    node: str
    operator: str
    arithmetic: str
    source: str
    steps: tuple[Step, ...]
    stored: Value
    real: float | None = None
    before: Explanation | None = None

    @property
    def parts(self) -> tuple[Explanation, ...]:
        """All explanations of the chain, the earliest first."""
        return (*(self.before.parts if self.before else ()), self)

    @property
    def is_sound(self) -> bool:
        """Whether the last step ends in the engine's value."""
        last = self.steps[-1].value
        return last == self.stored or (last != last and self.stored != self.stored)


@dataclass
class Recording:
    """Inputs and outputs of nodes for one sample; a listener of the engine.

    Attributes:
        numbers: Numbers of the nodes that run, in order, in the whole graph; empty if all run.
        inputs: Node -> arrays that it read, dtype[*shape].
        outputs: Node -> arrays that it wrote, dtype[*shape].
    """

    numbers: Sequence[int] = ()
    inputs: dict[int, list[Array | None]] = field(default_factory=dict)
    outputs: dict[int, list[Array]] = field(default_factory=dict)

    def _number(self, index: int) -> int:
        return self.numbers[index] if self.numbers else index

    def will_run(self, index: int, node: Node, inputs: Sequence[Array | None]) -> None:  # noqa: ARG002
        """Keep the inputs."""
        self.inputs[self._number(index)] = [None if x is None else np.array(x[0]) for x in inputs]

    def did_run(self, index: int, node: Node, outputs: Sequence[Array]) -> None:  # noqa: ARG002
        """Keep the outputs."""
        self.outputs[self._number(index)] = [np.array(x[0]) for x in outputs]


class Explainer:
    """One sample through one graph, any element of which can then be explained; only the nodes that it needs run."""

    def __init__(self, engine: Engine, inputs: Sequence[Array], sample: int = 0) -> None:
        """Keep the sample.

        Args:
            engine: Lowered graph, and the other graphs of its model.
            inputs: one array [1, *shape] for each input, in the graph's own encoding.
            sample: Number of the sample, for the report.
        """
        self.graph: Graph = engine.graph
        self.sample = sample
        self._graphs, self._inputs = engine.graphs, inputs
        self._recording = Recording()
        self._recorded: dict[int, RecordedNode] = {}
        tensors = self.graph.tensors
        self._writers = {t: i for t, i in self.graph.producers().items() if not tensors[t].is_constant}

    def _record(self, t: int) -> int:
        """Run the nodes that a tensor needs, unless they ran; return the node that writes it."""
        writer = self._writers[t]
        if writer not in self._recording.outputs:
            self._recording.numbers = needed_nodes(self.graph, [t])
            part = with_nodes(self.graph, self._recording.numbers)
            graphs = [part if graph is self.graph else graph for graph in self._graphs]
            Engine(part, listeners=(self._recording,), graphs=graphs).run(self._inputs)
        return writer

    def tensors(self) -> tuple[int, ...]:
        """Return the tensors that can be explained: outputs of nodes that are not folded."""
        return tuple(self._writers)

    def value(self, t: int) -> Array:
        """Return the engine's values of a tensor: dtype[*shape]."""
        writer = self._record(t)
        return self._recording.outputs[writer][self.graph.nodes[writer].outputs.index(t)]

    def find(self, name: str) -> int:
        """Return the tensor of a name: its own, its number, or any name of the layer that writes it (`find_layer`).

        Raises:
            OptionError: there is none, or no node writes it; the nearest names are listed.
        """
        for t, writer in self._writers.items():
            if name in (self.graph.tensors[t].name, self.graph.nodes[writer].name, str(t)):
                return t
        layer = find_layer(self.graph, name)
        if layer is not None and not name.isdecimal():
            computed = [t for t in self.graph.nodes[layer].outputs if t in self._writers]
            if computed:
                return computed[0]
        names = [self.graph.tensors[t].name for t in self._writers]
        given = [t for t in self.graph.tensors if t.name == name]
        why = "is an input or a constant: no operator computes it" if given else "is no tensor of the graph"
        nearest = difflib.get_close_matches(name, names, 3, 0.0)
        raise OptionError(f"'{name}' {why}; nearest are {', '.join(map(repr, nearest))}")

    def inputs_of(self, t: int) -> tuple[Node, list[Array | None]]:
        """Return the node that writes a tensor, and its input arrays: dtype[*shape] each."""
        writer = self._record(t)
        return self.graph.nodes[writer], self._recording.inputs[writer]

    def explain(self, t: int, index: Sequence[int], follow: bool = True) -> Explanation:
        """Explain one element.

        Args:
            t: the tensor.
            index: position in the model's own axes; leading axes of size 1 may be omitted.
            follow: True to explain also the element that an operator of one input element reads.

        Raises:
            OptionError: the index is out of range.
        """
        writer = self._record(t)
        node = self.graph.nodes[writer]
        value = self.value(t)
        place = place_of(self.graph.tensors[t].name, value.shape, index)
        stored = value[place].item()
        steps, source, before = self._steps(writer, node.outputs.index(t), place, stored)
        return Explanation(
            self.graph.tensors[t].name,
            place,
            self.sample,
            node.name,
            node.operator,
            node.arithmetic or "",
            source,
            steps,
            stored,
            _real(value, self.graph.tensors[t], place),
            self.explain(*before) if before is not None and follow else None,
        )

    def _steps(
        self, writer: int, output: int, place: Index, stored: Value
    ) -> tuple[tuple[Step, ...], str, tuple[int, Index] | None]:
        """Return the steps, the place of the formula, and the one computed element that they depend on, if any."""
        node = self.graph.nodes[writer]
        if node.operator in CONTROL:
            words = "computed by the graph that control flow chose, which is not recorded"
            return (Step("stored value", words, stored),), "the engine", None
        if writer not in self._recorded:
            inputs = self._recording.inputs[writer]
            self._recorded[writer] = RecordedNode(node, self.graph.operands(writer), inputs)
        recorded = self._recorded[writer]
        element = recorded.element(output, place)
        if element is None:
            words = f"computed by the kernel in a way that is not recorded ({recorded.failure or 'decided in Python'})"
            return (Step("stored value", words, stored),), recorded.source, None
        cut = Slice(recorded.tape, element)
        read = [(node.inputs[position], index[1:]) for position, index in cut.inputs() if position < len(node.inputs)]
        computed = [(t, index) for t, index in read if t != ABSENT and t in self._writers]
        *steps, last = with_folded_bias(cut.steps(), node.operator, self.graph.operands(writer), place)
        if last.value == stored:  # 42, if the kernel's last step returns 42.0
            last = replace(last, value=stored)
        return (*steps, last), recorded.source, computed[0] if len(computed) == 1 else None


def _real(value: Array, tensor: Tensor, place: Index) -> float | None:
    is_code = isinstance(tensor.quantization, Affine) and tensor.dtype.is_integer
    return float(real_values(value[None], tensor)[0][place]) if is_code else None


def place_of(name: str, shape: tuple[int, ...], index: Sequence[int]) -> Index:
    """Return a position in the model's own axes; leading axes of size 1 may be omitted.

    Raises:
        OptionError: it lies outside.
    """
    missing = len(shape) - len(index)
    place = (*(0,) * missing, *index) if missing > 0 and all(n == 1 for n in shape[:missing]) else tuple(index)
    if len(place) != len(shape) or not all(0 <= i < n for i, n in zip(place, shape, strict=True)):
        raise OptionError(
            f"tensor '{name}' has shape {list(shape)}, the index {list(index)} is out of range; "
            f"one number for each axis is needed, counted from 0"
        )
    return place


def explain_constant(source: Graph, t: int, index: Sequence[int], graph: Graph, sample: int = 0) -> Explanation:
    """Return the steps of a constant of the model: stored value, scale, zero point, real value; then a target's.

    Args:
        source: the model's own graph.
        t: the constant in it.
        index: position in its own axes.
        graph: Graph that runs; if it is another one, its constant of the same name is shown, too.
        sample: Number of the sample, for the report.

    Raises:
        OptionError: the index is out of range.
    """
    tensor = source.tensors[t]
    data = np.asarray(tensor.data)
    place = place_of(tensor.name, data.shape, index)
    readers = [n for n in graph.nodes if any(graph.tensors[i].name == tensor.name for i in n.inputs if i >= 0)]
    steps = _steps("in the file", tensor, place)
    made = next((x for x in graph.tensors if x.name == tensor.name and x.data is not None), None)
    if graph is not source and made is not None and made.data is not None:
        own = np.asarray(made.data)
        if own.shape == data.shape:
            steps += _steps("of the target", made, place)
        else:
            steps.append(
                Step("shape of the target", f"stored as {list(own.shape)}, another order of the axes", own.size)
            )
    elif graph is not source:
        words = "the target's graph has no constant of this name: it is folded into another constant"
        steps.append(Step("value of the target", words, steps[0].value))
    last = steps[-1]
    return Explanation(
        tensor.name,
        place,
        sample,
        readers[0].name if readers else "",
        "constant",
        readers[0].arithmetic or "" if readers else "",
        "the file" if graph is source else "the file, and the output of the target's quantizer",
        tuple(steps),
        last.value,
        None if last.label.startswith("real") or not isinstance(last.value, (int, float)) else float(last.value),
    )


def _steps(whose: str, tensor: Tensor, place: tuple[int, ...]) -> list[Step]:
    data = np.asarray(tensor.data)
    value = data[place].item()
    steps = [Step(f"value {whose}", f"{tensor.dtype.value}, of '{tensor.name}'", value)]
    affine = tensor.quantization
    if isinstance(affine, Affine) and tensor.dtype.is_integer:
        channel = 0 if affine.axis is None or affine.scale.size == 1 else place[affine.axis]
        zero = int(affine.zero_point[channel if affine.zero_point.size > 1 else 0])
        scale = float(affine.scale[channel if affine.scale.size > 1 else 0])
        of = "" if affine.scale.size == 1 else f"of channel {channel}"
        real = float(real_values(data[None], tensor)[0][place])
        steps += [
            Step(f"scale {whose}", of, scale),
            Step(f"zero point {whose}", of, zero),
            Step(f"real number {whose}", f"(value - {zero}) * scale", real),
        ]
    return steps
