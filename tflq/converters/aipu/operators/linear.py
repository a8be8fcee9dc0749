"""Layers of weights and biases: convolutions, FullyConnected, BatchNorm, BiasAdd, MatMul.

Source: docs/rules/aipu/values.md#linear-layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.aipu.descriptor import Layer, Row, always, code_type, follows_input
from tflq.converters.aipu.emitted import LINEAR, Computed, Emitted, Factors, FromFile, Lowered, Params, factor_keys
from tflq.converters.aipu.operators.windows import window_keys
from tflq.converters.aipu.options import CHANNEL_WISE, LayerOptions
from tflq.converters.aipu.ranges import type_of_range
from tflq.converters.aipu.rewrites import MERGED
from tflq.converters.aipu.translation import Translation
from tflq.graph import ABSENT, Affine, Array, Attributes, DType, Graph, Node, Operands, Tensor
from tflq.graph.attributes import Attribute
from tflq.interpreter.kernels.aipu.activation import CLIP, LEAKY, PRELU, RECTIFIERS, SLOPE, SLOPE_SHIFT, Fused
from tflq.interpreter.kernels.aipu.imported import imported_array, multiplier_bits
from tflq.interpreter.kernels.aipu.linear import REMAIN_SHIFT, FilterParams, requested_shift
from tflq.interpreter.kernels.aipu.multiplier import type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import affine_of, encode, offset_of, required_constant, scale_of
from tflq.interpreter.kernels.aipu.unweighted import BIASES
from tflq.schemas.aipu import Value

_NARROW = (("uint8", 0, 255), ("int8", -128, 127), ("uint16", 0, 65535), ("int16", -32768, 32767))
_SIDES = {"x": "w", "y": "h", "z": "d"}
"""Axis of Compass -> that of TFLite."""


def unless_rectified(node: Node, _operands: Operands) -> bool:
    """Unsigned behind a fused rectifier, or a CLIP that leaves nothing below 0."""
    fused = node.attributes.text("with_activation", "NONE")
    return node.attributes.real("clip_min") < 0 if fused == CLIP else fused not in RECTIFIERS


def changed_by(fused: Fused) -> dict[str, Value | None]:
    """Return the attributes that hold integers in the quantized IR: limits of CLIP, slope of LEAKYRELU."""
    if fused.kind == CLIP:
        return {"clip_min": fused.limits[0], "clip_max": fused.limits[1]}
    if fused.kind == LEAKY:
        slope = int(fused.slope)
        kind = next((name for name, low, high in _NARROW if low <= slope <= high), "uint32" if slope > 0 else "int32")
        return {"negative_slope_type": kind, "negative_slope_value": slope}
    return {}


def _emit(layer: Lowered) -> Emitted:
    """One multiplier: four keys; one a channel, and of a DepthwiseConv: two constants.

    Then those of the fused activation and remain_shift.
    """
    found, node = layer.param("filter"), layer.node
    assert isinstance(found, FilterParams)
    weights = required_constant(layer.operands, "weights")
    constants: dict[str, Array] = {}
    keys: dict[str, Value] = {}
    if found.rescale.m.size == 1 and not weights.affine.is_per_axis and node.operator != "depthwise_conv":
        wide = node.attributes.boolean(CHANNEL_WISE, False) or imported_array(node, CHANNEL_WISE) is not None
        kind = type_of_multiplier(16 if wide else multiplier_bits(node, layer.operands.output()))
        keys = factor_keys(LINEAR, found.rescale, kind)
    else:
        constants = {"scale": found.rescale.m.astype(np.uint16), "shift": found.rescale.n.astype(np.int8)}
    if found.fused.kind == PRELU:
        keys["negative_slope_shift"] = SLOPE_SHIFT
    shift = requested_shift(node)
    if shift is not None:
        keys[REMAIN_SHIFT] = shift
    added: dict[str, Value] = {}
    if node.attributes.boolean(MERGED, False):
        added = {"axis": node.attributes.integer("axis"), "epsilon": node.attributes.integer("epsilon")}
    return Emitted(constants, keys, changed_by(found.fused), added)


def _read(file: FromFile) -> Params:
    found, shift = file.multiplier(), file.numbers(REMAIN_SHIFT)
    given: Params = {} if found is None else {"rescale": found}
    if file.keys.get("scale_type") == type_of_multiplier(16):
        given[CHANNEL_WISE] = np.ones(1, np.int64)
    return given if shift is None else {**given, REMAIN_SHIFT: shift}


def as_values(constant: Tensor, affine: Affine, values: Array) -> Tensor:
    """Return a constant with quantized values."""
    dtype = code_type(affine)
    data = np.ascontiguousarray(values, dtype.storage)
    data.setflags(write=False)
    return replace(constant, shape=data.shape, dtype=dtype, quantization=affine, data=data, range=None)


def encoded(constant: Tensor, affine: Affine) -> Tensor:
    """Return the constant with values clamp(RNE(f32(s * x) - zp))."""
    return as_values(constant, affine, encode(np.asarray(constant.data), affine))


def slopes(node: Node, operands: Operands, _options: LayerOptions) -> Mapping[str, Tensor]:
    """RNE(slope * 2^12) of PRELU; a batch axis is omitted where all its slices are the same."""
    if PRELU not in (node.attributes.get("method"), node.attributes.get("with_activation")):
        return {}
    slope = encoded(required_constant(operands, SLOPE), affine_of(np.float32(1 << SLOPE_SHIFT), 0, 16))
    values = np.asarray(slope.data)
    if values.ndim >= len(operands.input(0).shape) and np.all(values == values[:1]):
        values = values[0]
    return {SLOPE: as_values(slope, slope.affine, values)}


def _biases(_node: Node, operands: Operands, options: LayerOptions) -> Mapping[str, Tensor]:
    """b_q = clamp(RNE(s_x * s_w * b)) + zp_x * w_q, of a weight 1 in the activation's mode.

    By the whitepaper the weight has no scale: b_q = clamp(RNE(s_x * b)) + zp_x.
    """
    x = operands.input(0)
    weight = type_of_range(0, 1, options.weight_bits, True, options.is_symmetric, options.restricted)
    one = Tensor("", (), DType.INT8, weight)
    s_w, value = scale_of(one), int(encode(np.ones(1, np.float32), weight)[0])
    if options.by_whitepaper:
        s_w, value = np.float32(1), 1
    affine = affine_of((scale_of(x) * s_w).astype(np.float32), 0, options.bias_bits)
    constant = required_constant(operands, BIASES)
    folded = encode(np.asarray(constant.data), affine) + offset_of(x) * value
    return {BIASES: as_values(constant, affine, np.clip(folded, affine.minimum_code, affine.maximum_code))}


def _linear(type_name: str) -> Layer:
    emitted = (Computed(_emit, _read),)
    return Layer(type_name, unless_rectified, emitted=emitted, constants=slopes, is_linear=True, has_width=True)


def map_filter(work: Translation, node: Node) -> None:
    """Map CONV_2D, DEPTHWISE_CONV_2D."""
    weights, biases = _weights(work.source, node)
    is_depthwise = node.operator == "depthwise_conv_2d"
    if is_depthwise:
        weights = weights.transpose(3, 1, 2, 0)
    channels = work.source.tensors[node.inputs[0]].shape[3]
    multiplier = weights.shape[0] // channels if is_depthwise else 1
    group = channels if is_depthwise else channels // weights.shape[3]
    operator = "depthwise_conv" if is_depthwise and multiplier == 1 else "convolution"
    extra: dict[str, Attribute] = {"multiplier": 1} if operator == "depthwise_conv" else {}
    window = window_keys(work.source, node, (weights.shape[1], weights.shape[2]))
    constants = {"weights": weights, "biases": biases}
    attributes: dict[str, Attribute] = {"num_output": weights.shape[0], **window, "group": group}
    attributes["with_activation"] = "NONE"
    work.append(node, operator, constants, Attributes({**attributes, **extra}))


def map_volume(work: Translation, node: Node) -> None:
    """Weights [KD, KH, KW, I, O] -> [O, KH, KW, KD, I]; paddings as they come out."""
    weights = np.asarray(work.source.tensors[node.inputs[1]].data).transpose(4, 1, 2, 0, 3)
    biases = _bias(work.source, node, weights.shape[0])
    (x, y), value = (work.shape(t) for t in (node.inputs[0], node.outputs[0])), node.attributes.integer
    kernels = {"x": weights.shape[2], "y": weights.shape[1], "z": weights.shape[3]}
    strides = {axis: value(f"stride_{_SIDES[axis]}") for axis in kernels}
    dilations = {axis: value(f"dilation_{_SIDES[axis]}_factor", 1) for axis in kernels}
    keys: dict[str, Attribute] = {"num_output": weights.shape[0]}
    keys |= {f"kernel_{axis}": kernel for axis, kernel in kernels.items()}
    keys |= {f"stride_{axis}": stride for axis, stride in strides.items()}
    for axis, kernel in kernels.items():
        place = "_zyx".index(axis)
        reach = (y[place] - 1) * strides[axis] + (kernel - 1) * dilations[axis] + 1
        total = max(0, reach - x[place]) if node.attributes.text("padding") == "same" else 0
        keys |= {f"pad_{axis}_begin": total // 2, f"pad_{axis}_end": total - total // 2}
    keys |= {f"dilation_{axis}": dilation for axis, dilation in dilations.items()}
    keys |= {"group": x[4] // weights.shape[4], "with_activation": "NONE"}
    work.append(node, "convolution_3d", {"weights": weights, "biases": biases}, Attributes(keys))


def map_fully_connected(work: Translation, node: Node) -> None:
    """Of more than two axes it stands between two Reshapes."""
    weights, biases = _weights(work.source, node)
    constants = {"weights": weights, "biases": biases}
    keys: dict[str, Attribute] = {"num_output": weights.shape[0], "with_activation": "NONE"}
    (t,) = node.outputs
    x, wanted, rows = work.operand(node.inputs[0]), work.shape(t), work.size(node.inputs[0]) // weights.shape[1]
    if len(work.shape(node.inputs[0])) > 2:
        x = work.reshaped(node, x, (rows, weights.shape[1]))
    if len(wanted) <= 2:
        work.add(node, "fully_connected", (x,), (t,), keys, constants)
        return
    name, top = work.name_of(t), work.inner(t, (rows, weights.shape[0]))
    (inner,) = work.layer(node, name, "fully_connected", (x,), (top,), keys, constants)
    work.reshape(node, inner, t, f"{name}_post_reshape")


def map_transpose_conv(work: Translation, node: Node) -> None:
    """Inputs: shape of the output, weights [O, KH, KW, C], data, bias."""
    own = replace(node, inputs=(node.inputs[2], node.inputs[1], *node.inputs[3:]))
    weights, biases = _weights(work.source, own)
    kernel = (weights.shape[1], weights.shape[2])
    keys: dict[str, Attribute] = {"num_output": weights.shape[0]}
    keys.update(window_keys(work.source, replace(own, inputs=own.outputs), kernel))
    keys.update(group=1, with_activation="NONE", output_padding_x=0, output_padding_y=0)
    x = (work.operand(own.inputs[0]),)
    work.add(node, "conv_transpose", x, node.outputs, keys, {"weights": weights, "biases": biases})


def map_mat_mul(work: Translation, node: Node) -> None:
    """An operand that is read with its last two axes exchanged goes through a Transpose, which the Parser may merge."""
    inputs = []
    for t, key in zip(node.inputs, ("adj_x", "adj_y"), strict=True):
        value, rank = work.operand(t), len(work.shape(t))
        if node.attributes.boolean(key, False):
            value = work.transposed(node, value, (*range(rank - 2), rank - 1, rank - 2))
        inputs.append(value)
    work.add(node, "mat_mul", inputs, node.outputs, {"trans_a": False, "trans_b": False})


def _weights(graph: Graph, node: Node) -> tuple[Array, Array]:
    """Return weights, and biases, zeros where the node has none."""
    weights = graph.tensors[node.inputs[1]].data
    assert weights is not None
    return weights, _bias(graph, node, weights.shape[3 if node.operator == "depthwise_conv_2d" else 0])


def _bias(graph: Graph, node: Node, outputs: int) -> Array:
    place = node.inputs[2] if len(node.inputs) > 2 else ABSENT
    biases = None if place == ABSENT else graph.tensors[place].data
    return np.zeros(outputs, np.float32) if biases is None else biases


def refuse_filter(graph: Graph, node: Node) -> str:
    """Return why a layer with weights cannot be mapped; empty if it can."""
    computed = 2 if node.operator == "transpose_conv" else 0
    others = [t for i, t in enumerate(node.inputs) if i != computed and t != ABSENT]
    if not all(graph.tensors[t].is_constant for t in others):
        return "weights or bias are computed at run time; allowed are constants"
    weights = graph.tensors[node.inputs[1]]
    if node.operator == "fully_connected" and graph.tensors[node.outputs[0]].shape[-1:] != weights.shape[:1]:
        return f"output {graph.tensors[node.outputs[0]].shape} does not end in the {weights.shape[0]} outputs"
    return ""


LAYERS = {
    "batch_norm": _linear("BatchNorm"),
    "bias_add": Layer("BiasAdd", always, emitted=(Factors(LINEAR),), constants=_biases, has_width=True),
    "conv_transpose": _linear("ConvTranspose"),
    "convolution": _linear("Convolution"),
    "convolution_3d": _linear("Convolution3D"),
    "depthwise_conv": _linear("DepthwiseConv"),
    "fully_connected": _linear("FullyConnected"),
    "mat_mul": Layer("MatMul", follows_input, emitted=(Factors(LINEAR),), has_width=True),
}

# fmt: off
DOCS = (
    Row("4.5", "BatchNormalization", "section 3, weights of 16 bits; of 8 where the Optimizer makes it of a Mul",
        "g r", layer="BatchNorm", tflite="MUL and ADD by constants; MUL by one number",
        signed="signed; unsigned with RELU, RELU6", restriction="last axis"),
    Row("4.8", "BiasAdd", "RNE((q + b) * M * 2^-N) - zp_y: Compass's own, which loses the data's weight", "g",
        tflite="none (ADD of a vector is Add of a Constant)", signed="signed",
        restriction="one bias a place of the axis"),
    Row("4.14, 4.35", "Convolution2D, GroupConvolution", "section 3", "g r", layer="Convolution", tflite="CONV_2D",
        signed="signed; unsigned with RELU, RELU6", restriction="constant weights; fused RELU, RELU6"),
    Row("4.15", "ConvTranspose2D", "section 3, x + zp_x scattered, zp_x * sum(w) taken off the bias", "g r",
        layer="ConvTranspose", tflite="TRANSPOSE_CONV", signed="as Convolution", restriction="group 1"),
    Row("4.22", "DepthwiseConvolution", "section 3, per channel", "g r",
        layer="DepthwiseConv; Convolution of groups where the multiplier is not 1", tflite="DEPTHWISE_CONV_2D",
        signed="as Convolution", restriction="as Convolution"),
    Row("4.32", "FullyConnected", "section 3", "g r", tflite="FULLY_CONNECTED", signed="as Convolution",
        restriction="as Convolution"),
    Row("4.42", "MatMul", "(x + zp_x) @ (y + zp_y), r = s_z / (s_x * s_y)", "g r v", tflite="BATCH_MATMUL"),
    Row("-", "(volumes)", "section 3, kz by kz", "r", layer="Convolution3D", tflite="CONV_3D",
        signed="as Convolution", restriction="constant weights; of 16 bits the Optimizer adds in float32, in an "
        "unknown order; test_more_layers.py"),
)
# fmt: on
