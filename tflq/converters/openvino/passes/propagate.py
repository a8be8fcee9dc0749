"""From FakeQuantize to layers on codes: Quantize and Dequantize, as far as they go.

Source: docs/rules/openvino.md#quantize-dequantize-requantize.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.openvino.passes import ARITHMETIC, FILTERS, LINEAR, PAIRS, data_inputs, moves_levels
from tflq.converters.passes.rewrite import with_attributes
from tflq.graph import Attributes, DType, FakeQuantize, Node, Tensor
from tflq.graph.rewriting import ANY, GraphEditor, find_matches, op
from tflq.interpreter.kernels.openvino.levels import affine_of, code_type, rule_attributes


def split(editor: GraphEditor) -> None:
    """Split each FakeQuantize into Quantize and Dequantize.

    A FakeQuantize without an output level at zero, or with a number of levels without a type, is not split: its readers
    compute in float32. Quantized values get the name of the tensor; the dequantized values are named name/dequantized.
    """
    for node in editor.nodes:
        tensor = editor.tensors[node.outputs[0]] if node.operator == "fake_quantize" else None
        rule = None if tensor is None else tensor.quantization
        if tensor is None or not isinstance(rule, FakeQuantize):
            continue
        affine = affine_of(rule, len(tensor.shape) - 1)
        if affine is None:
            continue
        codes = editor.add_tensor(Tensor(tensor.name, tensor.shape, code_type(affine), affine, tensor.range))
        editor.tensors[node.outputs[0]] = replace(tensor, name=f"{tensor.name}/dequantized", quantization=None)
        name, attributes = f"{tensor.name}/quantize", Attributes(rule_attributes(rule))
        quantize = Node("quantize", node.inputs, (codes,), attributes, name, arithmetic=ARITHMETIC)
        _add_dequantize(editor, editor.replace(node, quantize), tensor.name, node.outputs[0])


def _add_dequantize(editor: GraphEditor, writer: Node, name: str, t: int) -> None:
    name = f"{name}/dequantize"
    editor.add(Node("dequantize", writer.outputs, (t,), name=name, arithmetic=ARITHMETIC), after=writer)


def propagate(editor: GraphEditor) -> None:
    """Let linear operators read quantized values, and write quantized values if levels follow.

    A Dequantize moves downstream through linear operators; with a Quantize that follows it becomes one Requantize.
    conv(DQ(q)) = DQ'(conv(q)): the layer reads quantized values and multiplies its accumulator by S_x * S_w.
    Q(DQ'(acc)) = RQ(acc): it writes quantized values as well. Operators that only move levels move quantized values,
    and the Dequantize follows them.
    """
    _read_codes(editor)
    for place in find_matches(editor, _REQUANTIZE):
        layer = with_attributes(place.nodes["layer"], **place.root.attributes)
        editor.remove(place.root)
        editor.replace(layer, replace(layer, outputs=place.root.outputs))
    editor.remove_dead()


def _is_ours(node: Node) -> bool:
    return node.arithmetic == ARITHMETIC


_REQUANTIZE = op("quantize", op(LINEAR, name="layer", activation=ANY, where=_is_ours), where=_is_ours)


def _read_codes(editor: GraphEditor) -> None:
    codes: dict[int, int] = {}
    filtered = set[int]()
    for node in editor.nodes:
        if node.operator == "dequantize" and _is_ours(node):
            codes[node.outputs[0]] = node.inputs[0]
        elif _can_move(editor, node, codes):
            _move(editor, node, codes)
        elif node.operator in LINEAR and _can_read(editor, node, codes, filtered):
            inputs = tuple(codes.get(t, t) for t in node.inputs)
            editor.replace(node, replace(node, inputs=inputs, arithmetic=ARITHMETIC))
            filtered.update(node.outputs if node.operator in FILTERS else ())


def _can_read(graph: GraphEditor, node: Node, codes: dict[int, int], filtered: set[int]) -> bool:
    data = data_inputs(graph, node)
    weights = node.inputs[1:2] if node.operator in FILTERS else ()
    is_summed = node.operator in FILTERS and node.operator != "depthwise_conv_2d"
    if is_summed and data[0] in codes and graph.tensors[codes[data[0]]].affine.is_per_axis:
        return False  # the products of several channels are summed: their activations need one range
    if node.operator in PAIRS and any(t in codes for t in data):
        # The other operand may be what a filter on quantized values has not rounded.
        return all(t in codes or t in filtered for t in data)
    return bool(data) and all(t in codes for t in (*data, *weights))


def _can_move(graph: GraphEditor, node: Node, codes: dict[int, int]) -> bool:
    """Whether a node moves quantized values; per-channel ones only where the channels stay where they are."""
    if not moves_levels(node) or node.inputs[0] not in codes:
        return False
    tensor = graph.tensors[codes[node.inputs[0]]]
    if node.operator == "pad" and tensor.dtype is DType.INT4:
        return False  # the kernel that moves data pads 4-bit integers with 0
    return node.operator == "max_pool_2d" or not tensor.affine.is_per_axis


def _move(editor: GraphEditor, node: Node, codes: dict[int, int]) -> None:
    source, t = editor.tensors[codes[node.inputs[0]]], node.outputs[0]
    old = editor.tensors[t]
    codes[t] = editor.add_tensor(replace(old, dtype=source.dtype, quantization=source.quantization))
    editor.tensors[t] = replace(old, name=f"{old.name}/dequantized")
    inputs = (codes[node.inputs[0]], *node.inputs[1:])
    moved = editor.replace(node, replace(node, inputs=inputs, outputs=(codes[t],), arithmetic=ARITHMETIC))
    _add_dequantize(editor, moved, old.name, t)


def quantize_inputs(editor: GraphEditor) -> None:
    """Remove each Quantize that is the only reader of an input; its result becomes the input."""
    inputs = []
    for t in editor.inputs:
        reader = editor.only_reader(t)
        if reader is not None and reader.operator == "quantize":
            editor.remove(reader)
            inputs.append(reader.outputs[0])
        else:
            inputs.append(t)
    editor.inputs = tuple(inputs)


def quantize_outputs(editor: GraphEditor) -> None:
    """Return quantized values instead of the results of a Dequantize."""
    writers = [(t, editor.writer(t)) for t in editor.outputs]
    is_dequantized = [w is not None and w.operator == "dequantize" and _is_ours(w) for _, w in writers]
    editor.set_outputs(w.inputs[0] if w and made else t for (t, w), made in zip(writers, is_dequantized, strict=True))
