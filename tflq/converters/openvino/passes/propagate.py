"""From FakeQuantize to layers on codes: Quantize and Dequantize, as far as they go (docs/openvino.md, 3)."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.openvino.passes import ARITHMETIC, FILTERS, LINEAR, PAIRS, data_inputs, moves_levels
from tflq.converters.passes.patterns import only_reader
from tflq.converters.passes.rewrite import with_attributes, without_nodes
from tflq.graph import ABSENT, Attributes, DType, FakeQuantize, Graph, Node, Tensor, pruned
from tflq.interpreter.kernels.openvino.levels import affine_of, code_type, rule_attributes


def split(graph: Graph) -> Graph:
    """Return the graph with each FakeQuantize as Quantize and Dequantize.

    One whose outputs have no level at zero, or a number of levels without a type, stays in one piece: the layers behind
    it compute in float32. Quantized values get the tensor's name; the reals behind them are called name/dequantized.
    """
    result = replace(graph, tensors=list(graph.tensors), nodes=[])
    for node in graph.nodes:
        tensor = result.tensors[node.outputs[0]]
        rule = tensor.quantization
        affine = affine_of(rule, len(tensor.shape) - 1) if isinstance(rule, FakeQuantize) else None
        if node.operator != "fake_quantize" or affine is None or not isinstance(rule, FakeQuantize):
            result.nodes.append(node)
            continue
        codes = result.add_tensor(Tensor(tensor.name, tensor.shape, code_type(affine), affine, tensor.range))
        result.tensors[node.outputs[0]] = replace(tensor, name=f"{tensor.name}/dequantized", quantization=None)
        attributes = Attributes(rule_attributes(rule))
        result.nodes.append(
            Node("quantize", node.inputs, (codes,), attributes, f"{tensor.name}/quantize", arithmetic=ARITHMETIC)
        )
        result.nodes.append(
            Node("dequantize", (codes,), node.outputs, name=f"{tensor.name}/dequantize", arithmetic=ARITHMETIC)
        )
    return result


def propagate(graph: Graph) -> Graph:
    """Return the graph whose linear operators read quantized values, and write quantized values where levels follow.

    Dequantize goes forward through linear operators and, where a Quantize follows, both become one Requantize.
    conv(DQ(q)) = DQ'(conv(q)): the layer reads quantized values and multiplies its accumulator by S_x * S_w.
    Q(DQ'(acc)) = RQ(acc): it writes quantized values as well. Operators that only move levels move quantized values,
    and the Dequantize stands behind them.
    """
    return pruned(_requantized(_forward(graph)))


def _forward(graph: Graph) -> Graph:
    result = replace(graph, tensors=list(graph.tensors), nodes=[])
    codes: dict[int, int] = {}
    filtered = set[int]()
    for node in graph.nodes:
        if node.operator == "dequantize" and node.arithmetic == ARITHMETIC:
            codes[node.outputs[0]] = node.inputs[0]
            result.nodes.append(node)
        elif _can_move(result, node, codes):
            _move(result, node, codes)
        elif node.operator in LINEAR and _can_read(result, node, codes, filtered):
            inputs = tuple(codes.get(t, t) if t != ABSENT else t for t in node.inputs)
            result.nodes.append(replace(node, inputs=inputs, arithmetic=ARITHMETIC))
            filtered.update(node.outputs if node.operator in FILTERS else ())
        else:
            result.nodes.append(node)
    return result


def _can_read(graph: Graph, node: Node, codes: dict[int, int], filtered: set[int]) -> bool:
    data = data_inputs(graph, node)
    weights = node.inputs[1:2] if node.operator in FILTERS else ()
    is_summed = node.operator in FILTERS and node.operator != "depthwise_conv_2d"
    if is_summed and data[0] in codes and graph.tensors[codes[data[0]]].affine.is_per_axis:
        return False  # the products of several channels are summed: their activations need one range
    if node.operator in PAIRS and any(t in codes for t in data):
        # The other operand may be what a filter on quantized values has not rounded.
        return all(t in codes or t in filtered for t in data)
    return bool(data) and all(t in codes for t in (*data, *weights))


def _can_move(graph: Graph, node: Node, codes: dict[int, int]) -> bool:
    """Whether a node moves quantized values; per-channel ones only where the channels stay where they are."""
    if not moves_levels(node) or node.inputs[0] not in codes:
        return False
    tensor = graph.tensors[codes[node.inputs[0]]]
    if node.operator == "pad" and tensor.dtype is DType.INT4:
        return False  # the kernel that moves data pads 4-bit integers with 0
    return node.operator == "max_pool_2d" or not tensor.affine.is_per_axis


def _move(result: Graph, node: Node, codes: dict[int, int]) -> None:
    source, t = result.tensors[codes[node.inputs[0]]], node.outputs[0]
    old = result.tensors[t]
    moved = result.add_tensor(replace(old, dtype=source.dtype, quantization=source.quantization))
    result.tensors[t] = replace(old, name=f"{old.name}/dequantized")
    inputs = (codes[node.inputs[0]], *node.inputs[1:])
    result.nodes.append(replace(node, inputs=inputs, outputs=(moved,), arithmetic=ARITHMETIC))
    name = f"{old.name}/dequantize"
    result.nodes.append(Node("dequantize", (moved,), (t,), name=name, arithmetic=ARITHMETIC))
    codes[t] = moved


def _requantized(graph: Graph) -> Graph:
    result, readers, gone = graph.copy(), graph.consumers(), set[int]()
    for index, node in enumerate(graph.nodes):
        if node.operator not in LINEAR or node.arithmetic != ARITHMETIC:
            continue
        reader = only_reader(graph, node.outputs[0], readers)
        quantize = None if reader is None else graph.nodes[reader]
        if quantize is not None and quantize.operator == "quantize" and quantize.arithmetic == ARITHMETIC:
            result.nodes[index] = replace(with_attributes(node, **quantize.attributes), outputs=quantize.outputs)
            gone.add(readers[node.outputs[0]][0])
    return without_nodes(result, gone)


def codes_at_inputs(graph: Graph) -> Graph:
    """Return the graph whose inputs are the quantized values that a Quantize alone made of them; other inputs stay."""
    found: dict[int, int] = {}
    readers, gone = graph.consumers(), set[int]()
    for t in graph.inputs:
        reader = only_reader(graph, t, readers)
        if reader is not None and graph.nodes[reader].operator == "quantize":
            found[t] = graph.nodes[reader].outputs[0]
            gone.add(reader)
    return replace(without_nodes(graph, gone), inputs=tuple(found.get(t, t) for t in graph.inputs))


def codes_at_outputs(graph: Graph) -> Graph:
    """Return the graph whose outputs are quantized values where a Dequantize alone made reals of them."""
    writers = graph.producers()
    outputs = []
    for t in graph.outputs:
        node = graph.nodes[writers[t]] if t in writers else None
        is_made = node is not None and node.operator == "dequantize" and node.arithmetic == ARITHMETIC
        outputs.append(node.inputs[0] if node is not None and is_made else t)
    return replace(graph, outputs=tuple(outputs))
