"""FakeQuantize = Quantize, then Dequantize (docs/openvino.md, 3)."""

from __future__ import annotations

from dataclasses import replace

from tflq.graph import Attributes, FakeQuantize, Graph, Node, Tensor
from tflq.interpreter.kernels.openvino.levels import affine_of, code_type, rule_attributes

ARITHMETIC = "openvino"


def split(graph: Graph) -> Graph:
    """Return the graph with each FakeQuantize as Quantize and Dequantize.

    One whose outputs have no level at zero, or a number of levels without a type, stays in one piece: the layers behind
    it compute in float32. Codes get the tensor's name; the reals behind them are called name/dequantized.
    """
    result = replace(graph, tensors=list(graph.tensors), nodes=[])
    for node in graph.nodes:
        tensor = result.tensors[node.outputs[0]]
        rule = tensor.quantisation
        affine = affine_of(rule, len(tensor.shape) - 1) if isinstance(rule, FakeQuantize) else None
        if node.operator != "fake_quantize" or affine is None or not isinstance(rule, FakeQuantize):
            result.nodes.append(node)
            continue
        codes = result.add_tensor(Tensor(tensor.name, tensor.shape, code_type(affine), affine, tensor.range))
        result.tensors[node.outputs[0]] = replace(tensor, name=f"{tensor.name}/dequantized", quantisation=None)
        attributes = Attributes(rule_attributes(rule))
        result.nodes.append(
            Node("quantize", node.inputs, (codes,), attributes, f"{tensor.name}/quantize", arithmetic=ARITHMETIC)
        )
        result.nodes.append(
            Node("dequantize", (codes,), node.outputs, name=f"{tensor.name}/dequantize", arithmetic=ARITHMETIC)
        )
    return result
