"""TFLite's operators on real numbers as layers of the IR, one function each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.converters.openvino.emit.writer import NUMPY, Writer
from tflq.converters.openvino.ir import Value
from tflq.converters.passes.patterns import TO_FIRST, axis_first, order_first, shape_first
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Affine, Array, FakeQuantize, Node
from tflq.interpreter.kernels.openvino.levels import CODES, input_rule
from tflq.interpreter.operands.sliding_windows import Window, window_of


def conv_2d(writer: Writer, node: Node) -> None:
    """Convolution, weights [O, KH, KW, I] -> [O, I, KH, KW]; GroupConvolution [G, O/G, I/G, KH, KW]."""
    weights = writer.constant_of(node.inputs[1])
    channels = writer.tensor(node.inputs[0]).shape[3]
    outputs, height, width, depth = weights.shape
    groups = channels // depth
    laid = weights.transpose(0, 3, 1, 2)
    if groups == 1:
        _convolution(writer, node, "Convolution", laid, (outputs, 1, 1, 1), (height, width))
    else:
        shape = (groups, outputs // groups, depth, height, width)
        scales = (groups, outputs // groups, 1, 1, 1)
        _convolution(writer, node, "GroupConvolution", laid.reshape(shape), scales, (height, width))


def depthwise_conv_2d(writer: Writer, node: Node) -> None:
    """GroupConvolution, weights [1, KH, KW, C*m] -> [C, m, 1, KH, KW]."""
    weights = writer.constant_of(node.inputs[1])
    channels = writer.tensor(node.inputs[0]).shape[3]
    _, height, width, outputs = weights.shape
    multiplier = outputs // channels
    laid = weights[0].transpose(2, 0, 1).reshape(channels, multiplier, 1, height, width)
    scales = (channels, multiplier, 1, 1, 1)
    _convolution(writer, node, "GroupConvolution", laid, scales, (height, width))


def fully_connected(writer: Writer, node: Node) -> None:
    """MatMul with transposed weights [O, K]; inputs of other ranks become rows.

    The plug-in (2026.4.1) takes products in a row, levels between them, as one kernel, and returns other numbers where
    one in front has no bias or one number for all outputs. So a bias is written there whose first number is one float32
    step larger: 2^-126 in place of 0, which moves no level.
    """
    weights = writer.tensor(node.inputs[1])
    outputs, depth = weights.shape
    x = writer.tensor(node.inputs[0])
    value = writer.read_plain(node.inputs[0])
    if len(x.shape) != 2 or x.shape[1] != depth:
        value = writer.reshaped(value, (x.size // depth, depth), f"{node.name}/rows")
    if weights.is_constant:
        operand = _weights(writer, node, writer.constant_of(node.inputs[1]), (outputs, 1))
    else:
        operand = writer.read_plain(node.inputs[1])
    rows = (value.shape[0], outputs)
    value = writer.builder.add("MatMul", node.name, [value, operand], rows, transpose_a="false", transpose_b="true")
    value = _biased(writer, node, value, (1, outputs), writer.tensor(node.outputs[0]).dtype in CODES)
    shape = writer.tensor(node.outputs[0]).shape
    if shape != rows:
        value = writer.reshaped(value, shape, f"{node.name}/axes")
        if len(shape) == 4:
            value = writer.transposed(value, TO_FIRST, f"{node.name}/nchw")
    writer.write(node, value)


def pads_of(window: Window) -> dict[str, str]:
    """Return the padding as attributes."""
    return {
        "pads_begin": f"{window.top}, {window.left}",
        "pads_end": f"{window.bottom}, {window.right}",
        "auto_pad": "explicit",
    }


def _convolution(
    writer: Writer, node: Node, kind: str, weights: Array, scales: tuple[int, ...], kernel: tuple[int, int]
) -> None:
    shape = writer.tensor(node.inputs[0]).shape
    window = window_of(node.attributes, (shape[1], shape[2]), kernel)
    inputs = [writer.read(node.inputs[0]), _weights(writer, node, weights, scales)]
    output = shape_first(writer.tensor(node.outputs[0]).shape)
    strides, dilations = (", ".join(map(str, pair)) for pair in (window.stride, window.dilation))
    value = writer.builder.add(kind, node.name, inputs, output, strides=strides, dilations=dilations, **pads_of(window))
    writer.write(node, _biased(writer, node, value, (1, output[1], 1, 1)))


def _weights(writer: Writer, node: Node, weights: Array, scales: tuple[int, ...]) -> Value:
    """Return weights as reals: f32, or i8 -> Convert -> Multiply, the form that runs in int8.

    A Subtract stands between where there are zero points.
    """
    tensor = writer.tensor(node.inputs[1])
    name = f"{node.name}/weights"
    affine = tensor.quantisation
    if not isinstance(affine, Affine):
        return writer.reals(name, weights)
    value = writer.builder.constant(name, weights.astype(np.int8))
    value = writer.builder.add("Convert", f"{name}/f32", [value], weights.shape, destination_type="f32")
    shape = scales if affine.scale.size > 1 else (1,) * weights.ndim
    if affine.zero_point.any():
        zero = writer.reals(f"{name}/zero_point", np.broadcast_to(affine.zero_point, affine.scale.size).reshape(shape))
        value = writer.builder.add("Subtract", f"{name}/less", [value, zero], weights.shape, auto_broadcast=NUMPY)
    scale = writer.reals(f"{name}/scale", affine.scale.reshape(shape))
    return writer.builder.add("Multiply", f"{name}/reals", [value, scale], weights.shape, auto_broadcast=NUMPY)


def _biased(writer: Writer, node: Node, value: Value, shape: tuple[int, ...], is_distinct: bool = False) -> Value:
    is_absent = len(node.inputs) < 3 or node.inputs[2] == ABSENT
    if is_absent and not is_distinct:
        return value
    if not is_absent and not writer.tensor(node.inputs[2]).is_constant:
        bias = writer.reshaped(writer.read_plain(node.inputs[2]), shape, f"{node.name}/bias")
    else:
        numbers = np.zeros(shape, np.float32) if is_absent else writer.constant_of(node.inputs[2]).reshape(shape)
        bias = writer.reals(f"{node.name}/bias", _distinct(numbers) if is_distinct else numbers)
    return writer.builder.add("Add", f"{node.name}/biased", [value, bias], value.shape, auto_broadcast=NUMPY)


def _distinct(bias: Array) -> Array:
    """Return a bias [1, O] in which not all numbers are the same."""
    first = bias[0, 0]
    if bias.shape[1] == 1 or (bias != first).any():
        return bias
    larger = np.nextafter(first, np.float32(np.inf)) if first else np.finfo(np.float32).tiny
    return np.where(np.arange(bias.shape[1]) == 0, larger, bias)


def average_pool_2d(writer: Writer, node: Node) -> None:
    """AvgPool that does not count padding."""
    _pool(writer, node, "AvgPool", {"exclude-pad": "true"})


def max_pool_2d(writer: Writer, node: Node) -> None:
    """MaxPool; on levels its input's levels stay."""
    _pool(writer, node, "MaxPool", {})


def mean(writer: Writer, node: Node) -> None:
    """ReduceMean; where other axes than height and width go, in the graph's own layout."""
    tensor, output = writer.tensor(node.inputs[0]), writer.tensor(node.outputs[0])
    rank, keep = len(tensor.shape), node.attributes.boolean("keep_dims", False)
    axes = sorted({int(a) % rank for a in writer.constant_of(node.inputs[1]).reshape(-1)})
    if not axes:  # the plug-in takes one at least
        writer.write(node, writer.read(node.inputs[0]))
        return
    in_layout = rank == 4 and (keep or axes == [1, 2])
    value = writer.read(node.inputs[0]) if in_layout else writer.read_plain(node.inputs[0])
    mapped = sorted(axis_first(a, rank) for a in axes) if in_layout else axes
    shape = shape_first(output.shape) if in_layout else output.shape
    inputs = [value, writer.whole(f"{node.name}/axes", mapped)]
    value = writer.builder.add("ReduceMean", node.name, inputs, shape, keep_dims="true" if keep else "false")
    if len(shape) == 4 and not in_layout:
        value = writer.transposed(value, TO_FIRST, f"{node.name}/nchw")
    writer.write(node, value)


def _pool(writer: Writer, node: Node, kind: str, more: dict[str, str]) -> None:
    shape = writer.tensor(node.inputs[0]).shape
    kernel = (node.attributes.integer("filter_height"), node.attributes.integer("filter_width"))
    window = window_of(node.attributes, (shape[1], shape[2]), kernel)
    data = {
        "kernel": ", ".join(map(str, window.kernel)),
        "strides": ", ".join(map(str, window.stride)),
        "rounding_type": "floor",
        **pads_of(window),
        **more,
    }
    output = shape_first(writer.tensor(node.outputs[0]).shape)
    value = writer.builder.add(kind, node.name, [writer.read(node.inputs[0])], output, "f32", **data)
    if kind == "MaxPool" and writer.tensor(node.inputs[0]).dtype.is_integer:
        writer.values[node.outputs[0]] = value
    else:
        writer.write(node, value)


def reshape(writer: Writer, node: Node) -> None:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: Reshape in the graph's own order of elements."""
    shape = writer.tensor(node.outputs[0]).shape
    value = writer.reshaped(writer.read_plain(node.inputs[0]), shape, node.name)
    writer.values[node.outputs[0]] = (
        writer.transposed(value, TO_FIRST, f"{node.name}/nchw") if len(shape) == 4 else value
    )


def transpose(writer: Writer, node: Node) -> None:
    """TRANSPOSE: Transpose, its axes in the IR's layout."""
    rank = len(writer.tensor(node.inputs[0]).shape)
    order = order_first([int(a) % rank for a in writer.constant_of(node.inputs[1])])
    writer.values[node.outputs[0]] = writer.transposed(writer.read(node.inputs[0]), order, node.name)


def concatenation(writer: Writer, node: Node) -> None:
    """CONCATENATION: Concat; inputs keep their own levels."""
    shape = writer.tensor(node.outputs[0]).shape
    axis = axis_first(node.attributes.integer("axis", 0), len(shape))
    values = [writer.read(t) for t in node.inputs]
    writer.write(node, writer.builder.add("Concat", node.name, values, shape_first(shape), axis=str(axis)))


def pad(writer: Writer, node: Node) -> None:
    """PAD, PADV2: Pad with a constant; zero is a level wherever levels are padded."""
    amounts = writer.constant_of(node.inputs[1])
    order = TO_FIRST if len(amounts) == 4 else range(len(amounts))
    begin, end = (
        writer.whole(f"{node.name}/{side}", [int(amounts[a][i]) for a in order])
        for i, side in enumerate(("begin", "end"))
    )
    given = writer.constant_of(node.inputs[2]).reshape(()) if len(node.inputs) > 2 else np.zeros((), np.float32)
    inputs = [writer.read(node.inputs[0]), begin, end, writer.reals(f"{node.name}/value", given)]
    output = shape_first(writer.tensor(node.outputs[0]).shape)
    writer.values[node.outputs[0]] = writer.builder.add("Pad", node.name, inputs, output, pad_mode="constant")


def quantize(writer: Writer, node: Node) -> None:
    """Quantize: FakeQuantize, whose second half every reader undoes. In a float graph nothing."""
    source, output = writer.tensor(node.inputs[0]), writer.tensor(node.outputs[0])
    value = writer.read(node.inputs[0])
    if output.dtype.is_integer:
        value = writer.fake_quantise(value, input_rule(node, output), output.name)
    elif source.dtype is not output.dtype:
        raise UnsupportedError(f"{source.dtype.value} to {output.dtype.value}; float32 stays float32")
    writer.values[node.outputs[0]] = value


def dequantize(writer: Writer, node: Node) -> None:
    """Dequantize: the same reals."""
    source = writer.tensor(node.inputs[0])
    if source.is_constant:
        raise UnsupportedError(f"constant '{source.name}' was not folded")
    writer.values[node.outputs[0]] = writer.read(node.inputs[0])


def fake_quantize(writer: Writer, node: Node) -> None:
    """FakeQuantize in one piece."""
    rule = writer.tensor(node.outputs[0]).quantisation
    if not isinstance(rule, FakeQuantize):
        raise UnsupportedError("states no levels and ranges")
    name = writer.tensor(node.outputs[0]).name
    writer.values[node.outputs[0]] = writer.fake_quantise(writer.read(node.inputs[0]), rule, name)


Rule = Callable[[Writer, Node], None]


def pair(kind: str) -> Rule:
    """Return the rule of an operator with two operands that broadcast."""

    def rule(writer: Writer, node: Node) -> None:
        shape = writer.tensor(node.outputs[0]).shape
        operands = [writer.read_beside(t, len(shape)) for t in node.inputs]
        writer.write(node, writer.builder.add(kind, node.name, operands, shape_first(shape), auto_broadcast=NUMPY))

    return rule


def unary(kind: str, **data: str) -> Rule:
    """Return the rule of an operator with one operand."""

    def rule(writer: Writer, node: Node) -> None:
        value = writer.read(node.inputs[0])
        writer.write(node, writer.builder.add(kind, node.name, [value], value.shape, "f32", **data))

    return rule


def rectifier(writer: Writer, node: Node) -> None:
    """RELU, RELU6, RELU_N1_TO_1, RELU_0_TO_1: ReLU or Clamp."""
    writer.write(node, writer.activated(writer.read(node.inputs[0]), node.operator, node.name))


def leaky_relu(writer: Writer, node: Node) -> None:
    """PRelu with one slope."""
    slope = writer.reals(f"{node.name}/slope", np.array([node.attributes.real("alpha")]))
    _sloped(writer, node, slope)


def prelu(writer: Writer, node: Node) -> None:
    """PRelu with a slope for each channel.

    Raises:
        UnsupportedError: slopes that differ along other axes.
    """
    data, channels = writer.constant_of(node.inputs[1]), writer.tensor(node.inputs[0]).shape[-1]
    if data.size != 1 and (data.size != channels or data.shape[-1] != channels):
        raise UnsupportedError(f"slopes of shape {data.shape}; PRelu takes one for each of {channels} channels")
    _sloped(writer, node, writer.reals(f"{node.name}/slope", data.reshape(-1)))


def softmax(writer: Writer, node: Node) -> None:
    """SoftMax along the channels; a beta other than 1 is multiplied in front of it."""
    value = writer.read(node.inputs[0])
    beta = node.attributes.real("beta", 0.0)
    if beta != 1.0:
        factor = writer.reals(f"{node.name}/beta", np.full((1,) * len(value.shape), beta))
        name = f"{node.name}/scaled"
        value = writer.builder.add("Multiply", name, [value, factor], value.shape, auto_broadcast=NUMPY)
    axis = str(axis_first(-1, len(value.shape)))
    writer.write(node, writer.builder.add("SoftMax", node.name, [value], value.shape, axis=axis))


def _sloped(writer: Writer, node: Node, slope: Value) -> None:
    value = writer.read(node.inputs[0])
    writer.write(node, writer.builder.add("PRelu", node.name, [value, slope], value.shape))


_UNARY = {
    "abs": "Abs",
    "exp": "Exp",
    "hard_swish": "HSwish",
    "log": "Log",
    "logistic": "Sigmoid",
    "sqrt": "Sqrt",
    "tanh": "Tanh",
}
_PAIRS = {
    "add": "Add",
    "div": "Divide",
    "maximum": "Maximum",
    "minimum": "Minimum",
    "mul": "Multiply",
    "sub": "Subtract",
}
RULES: dict[str, Rule] = {
    **{name: unary(kind) for name, kind in _UNARY.items()},
    **{name: pair(kind) for name, kind in _PAIRS.items()},
    **dict.fromkeys(("relu", "relu6", "relu_0_to_1", "relu_n1_to_1"), rectifier),
    **dict.fromkeys(("reshape", "squeeze", "expand_dims"), reshape),
    **dict.fromkeys(("pad", "padv2"), pad),
    "average_pool_2d": average_pool_2d,
    "concatenation": concatenation,
    "conv_2d": conv_2d,
    "depthwise_conv_2d": depthwise_conv_2d,
    "dequantize": dequantize,
    "elu": unary("Elu", alpha="1.0"),
    "fake_quantize": fake_quantize,
    "fully_connected": fully_connected,
    "leaky_relu": leaky_relu,
    "max_pool_2d": max_pool_2d,
    "mean": mean,
    "prelu": prelu,
    "quantize": quantize,
    "softmax": softmax,
    "transpose": transpose,
}
