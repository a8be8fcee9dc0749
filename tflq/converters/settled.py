"""What every target sees: true shapes, no operators whose results are known before the run; and the float model.

Keras writes SHAPE, STRIDED_SLICE and PACK in front of RESHAPE and TRANSPOSE_CONV, in quantized networks too. With the
shapes of the inputs they are constants, so no target needs a mapping for them. Tensors keep their numbers, nodes their
names. Weights behind a QUANTIZE (quantization-aware training), or of float16 behind a DEQUANTIZE, are constants, too;
what else could be folded is a target's own matter.

`dequantized` gives a quantized model as a float model: its float view, with ranges, ready to be written.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.passes.conversions import widen_halves
from tflq.converters.passes.requirements import float_network
from tflq.errors import TflqError
from tflq.graph import DType, Graph, Model, Tensor, pruned, with_graphs
from tflq.interpreter.execution.settle import settle


def settled_graph(graph: Graph) -> Graph:
    """Return the graph for the shapes of its inputs; the graph itself where that changes nothing.

    A graph that contradicts itself stays as it is: who quantizes it says what is wrong. So does one whose nodes all
    name their arithmetic: a reader or a quantizer has settled it.
    """
    if graph.nodes and all(node.arithmetic is not None for node in graph.nodes):
        return graph
    graph = widen_halves(graph)
    try:
        found = settle(graph).graph
    except TflqError:
        return graph
    pairs = list(zip(graph.tensors, found.tensors, strict=True))
    converted = _converted_constants(graph)
    known = {
        t
        for t, (stated, true) in enumerate(pairs)
        if true.is_constant and not stated.is_constant and (t in converted or _is_plain_integer(true))
    }
    if not known and all(stated.shape == true.shape for stated, true in pairs):
        return graph
    nodes = [node for node in graph.nodes if not node.outputs or not known.issuperset(node.outputs)]
    tensors = [true if t in known else replace(stated, shape=true.shape) for t, (stated, true) in enumerate(pairs)]
    return replace(graph, tensors=tensors, nodes=nodes)


def _converted_constants(graph: Graph) -> set[int]:
    """Return what QUANTIZE makes, and DEQUANTIZE behind it: a pair on weights is a fake quantization."""
    quantized = {t for node in graph.nodes if node.operator == "quantize" for t in node.outputs}
    pairs = (n.outputs[0] for n in graph.nodes if n.operator == "dequantize" and n.inputs[0] in quantized)
    return quantized.union(pairs)


def _is_plain_integer(tensor: Tensor) -> bool:
    """Whether a tensor holds shapes, indices or truth values."""
    return tensor.quantization is None and (tensor.dtype.is_integer or tensor.dtype is DType.BOOL)


def settled_model(model: Model) -> Model:
    """Return the model whose main graph is settled; the model itself where that changes nothing."""
    graph = settled_graph(model.main)
    return model if graph is model.main else replace(model, graphs=[graph, *model.graphs[1:]])


def dequantized(model: Model) -> Model:
    """Return the model with the float view of each graph (tflq.graph.float_view), for TFLite to run.

    Each activation keeps the range that its quantization reached, as minimum and maximum: the float file can be
    quantized again without calibration. Inputs and outputs stay in their order; signatures follow them.

    Raises:
        GraphError: a constant whose scales do not fit its shape.
    """
    graphs = [pruned(float_network(graph)) for graph in model.graphs]
    return replace(with_graphs(model, graphs), extra=None)
