"""FakeQuantize nodes on a float network, and weights as quantized values behind a Dequantize.

The network as the IR has it.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.openvino.options import INT8, LayerOptions
from tflq.converters.openvino.passes.operators import ARITHMETIC, FILTERS
from tflq.converters.openvino.passes.ranges import Rules, is_on_codes
from tflq.converters.openvino.passes.weights import weight_codes
from tflq.converters.settings import Options
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Graph, Node


def insert(network: Graph, source: Graph, rules: Rules, options: Options[LayerOptions]) -> Graph:
    """Return the network with a FakeQuantize behind each tensor that has a rule; who reads the tensor reads its levels.

    The levels get the tensor's name; the reals in front of them are called name/real.

    Raises:
        UnsupportedError, GraphError: as `weight_codes`, with the operator.
    """
    result = replace(network, tensors=list(network.tensors), nodes=[])
    levels: dict[int, int] = {}
    for t in network.inputs:
        _quantise(result, t, rules, levels)
    for index, node in enumerate(network.nodes):
        inputs = [levels.get(t, t) for t in node.inputs]
        if node.operator in FILTERS and is_on_codes(node, options):
            layer = options.of(node.name)
            try:
                inputs[1] = _weights(result, source, node, layer)
            except (UnsupportedError, GraphError) as error:
                raise type(error)(f"{network.where(index)}: {error}") from None
        result.nodes.append(replace(node, inputs=tuple(inputs)))
        for t in node.outputs:
            _quantise(result, t, rules, levels)
    result.outputs = tuple(levels.get(t, t) if options.whole.output == INT8 else t for t in network.outputs)
    return result


def _quantise(result: Graph, t: int, rules: Rules, levels: dict[int, int]) -> None:
    rule, tensor = rules.get(t), result.tensors[t]
    if rule is None:
        return
    levels[t] = result.add_tensor(replace(tensor, quantisation=rule))
    result.tensors[t] = replace(tensor, name=f"{tensor.name}/real")
    name = f"{tensor.name}/fake_quantize"
    result.nodes.append(Node("fake_quantize", (t,), (levels[t],), name=name, arithmetic=ARITHMETIC))


def _weights(result: Graph, source: Graph, node: Node, layer: LayerOptions) -> int:
    t = node.inputs[1]
    real = result.tensors[t]
    codes = weight_codes(source.tensors[t] if t < len(source.tensors) else real, real, FILTERS[node.operator], layer)
    stored = result.add_tensor(codes)
    out = result.add_tensor(replace(real, data=None))
    name = f"{node.name}/weights"
    result.nodes.append(Node("dequantize", (stored,), (out,), name=name, arithmetic=ARITHMETIC))
    return out
