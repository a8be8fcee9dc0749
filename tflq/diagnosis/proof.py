"""Two runtimes of one model, layer by layer, over every input that a layer can have: no samples.

Layers are compared in isolation: its inputs are all values of their types.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Array
from tflq.graph import Graph, Model, Node, cut
from tflq.graph.operators import Trait, has_trait
from tflq.interpreter import Engine
from tflq.interpreter.kernels.tflite.quantized_convolution import QuantizedConvolution
from tflq.interpreter.kernels.tflite.rule_difference import compare_layers, find_position
from tflq.interpreter.numerics.step_difference import Counterexample, StepDifference
from tflq.interpreter.runtimes import RuntimeName, find_runtime

_FLOATING = "floating-point layers of runtimes are not modelled"


@dataclass(frozen=True)
class LayerProof:
    """Result for one layer.

    Attributes:
        index: Number of the node.
        node: Node of the first runtime.
        difference: Accumulators or inputs at which the results differ; None if not decided.
        reason: Reason why the layer is not decided; empty if it is.
        inputs: Inputs [1, *shape] of the layer, constants excluded, with the largest difference; empty without one.
        place: Indices of the element of the output that differs, without the sample axis; empty if any may.
    """

    index: int
    node: Node
    difference: StepDifference | None
    reason: str = ""
    inputs: tuple[Array, ...] = ()
    place: tuple[int, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether the results are equal for all inputs."""
        return self.difference is not None and not self.difference.differing

    @property
    def status(self) -> str:
        """One of: equal, differs, not decided."""
        return "not decided" if self.difference is None else "equal" if self.is_equal else "differs"


def prove_layers(model: Model, first: RuntimeName, second: RuntimeName) -> tuple[Graph, tuple[LayerProof, ...]]:
    """Return the lowered graph of the first runtime, and a result for each of its layers.

    Args:
        model: Model in its own encoding; layers of its main graph are compared.
        first: Runtime.
        second: Runtime.
    """
    graphs = [
        Engine(model.main, find_runtime(name).arithmetic, graphs=model.graphs, state="independent").graph
        for name in (first, second)
    ]
    graph = graphs[0]
    pairs = zip(graph.nodes, graphs[1].nodes, strict=True)
    proofs = [
        _prove_layer(graph, index, nodes, first != second)
        for index, nodes in enumerate(pairs)
        if not all(graph.tensors[t].is_constant for t in nodes[0].outputs)
    ]
    return graph, tuple(proofs)


def single_layer(graph: Graph, proof: LayerProof) -> Graph:
    """Return the layer as a graph that reads its data operands."""
    node = graph.nodes[proof.index]
    sources = [t for t in dict.fromkeys(node.inputs) if t >= 0 and not graph.tensors[t].is_constant]
    plain = replace(graph, nodes=[replace(n, arithmetic=None, params=None) for n in graph.nodes], extra=None)
    return cut(plain, sources, node.outputs)


def _prove_layer(graph: Graph, index: int, nodes: tuple[Node, Node], are_different: bool) -> LayerProof:
    node, operands = nodes[0], graph.operands(index)
    if are_different and all(n.arithmetic == "float" for n in nodes):
        return LayerProof(index, node, None, _FLOATING)
    difference = compare_layers(nodes, operands)
    if isinstance(difference, str):
        return LayerProof(index, node, None, difference)
    return LayerProof(index, node, difference, "", *_build_inputs(node, graph, difference))


def _build_inputs(node: Node, graph: Graph, difference: StepDifference) -> tuple[tuple[Array, ...], tuple[int, ...]]:
    """Return inputs of the layer at which the results differ, and the element of the output if it is known."""
    example = difference.example
    if example is None:
        return (), ()
    tensors = [graph.tensors[t] for t in dict.fromkeys(node.inputs) if t >= 0 and not graph.tensors[t].is_constant]
    data = tensors[0]
    if isinstance(node.params, QuantizedConvolution):
        image, place = _build_image(node.params, data.shape, example)
        return (image,), place
    if has_trait(node, Trait.WEIGHTS):
        rows = np.zeros((1, *data.shape), data.dtype.storage)
        rows.reshape(-1, example.taps.size)[0] = example.taps
        return (rows,), (*(0,) * (len(graph.tensors[node.outputs[0]].shape) - 1), example.channel)
    values = [v for v, t in zip(example.taps.tolist(), node.inputs, strict=True) if not graph.tensors[t].is_constant]
    return tuple(np.full((1, *t.shape), v, t.dtype.storage) for v, t in zip(values, tensors, strict=False)), ()


def _build_image(
    layer: QuantizedConvolution, shape: tuple[int, ...], example: Counterexample
) -> tuple[Array, tuple[int, ...]]:
    window = layer.window
    position = find_position(window, shape)
    assert position is not None
    assert layer.constants is not None
    image = np.full((1, *shape), layer.input_zero_point, layer.input_dtype.storage)
    depth = shape[3] // layer.groups
    start = example.channel // (layer.constants.weights.shape[0] // layer.groups) * depth
    top, left = (p * s - b for p, s, b in zip(position, window.stride, (window.top, window.left), strict=True))
    rows = slice(top, top + window.extent[0], window.dilation[0])
    columns = slice(left, left + window.extent[1], window.dilation[1])
    image[0, 0, rows, columns, start : start + depth] = example.taps.reshape(*window.kernel, depth)
    return image, (0, *position, example.channel)
