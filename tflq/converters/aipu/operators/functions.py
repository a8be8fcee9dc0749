"""Functions of one input: Activation, tables, Abs, Negative, Sign, Cast, Softmax, LogSoftmax.

Source: docs/rules/aipu/values.md, docs/rules/aipu/operators.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tflq.converters.aipu import emitted as ir
from tflq.converters.aipu.descriptor import (
    Layer,
    OutputType,
    Row,
    always,
    by_range,
    follows_input,
    like,
    never,
    plain,
    typed,
)
from tflq.converters.aipu.operators.linear import changed_by, slopes
from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.passes.activations import as_written
from tflq.converters.aipu.ranges import type_of_range
from tflq.converters.aipu.translation import Translation
from tflq.graph import Attributes, DType, Graph, Node, Operands
from tflq.graph.attributes import Attribute
from tflq.graph.operators import RECTIFIER_BOUNDS
from tflq.interpreter.kernels.aipu.activation import CLIP, LEAKY, RECTIFIERS, SLOPE_SHIFT, Fused
from tflq.interpreter.kernels.aipu.curve import SCALE
from tflq.interpreter.kernels.aipu.multiplier import type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import affine_of, bits_of, is_plain, offset_of, reciprocal, scale_of
from tflq.interpreter.kernels.aipu.softmax import (
    ADJUST,
    FAST_EXP,
    LARGEST_AXIS,
    LOWEST,
    METHOD,
    FastSoftmaxParams,
    LogSoftmaxParams,
)
from tflq.schemas.aipu import Value

_LIMITED = (CLIP, "HARDSIGMOID")
_UNSIGNED_METHODS = (*RECTIFIERS, "SIGMOID", "SOFTPLUS")


def _activation_signed(node: Node, _operands: Operands) -> bool:
    method = node.attributes.text("method")
    return node.attributes.real("clip_min") < 0 if method in _LIMITED else method not in _UNSIGNED_METHODS


def _changed(layer: ir.Lowered) -> ir.Emitted:
    fused = layer.param("fused")
    assert isinstance(fused, Fused)
    return ir.Emitted(changed=changed_by(fused))


_LEVELS = ir.Computed(_changed)
_METHODS: dict[str, tuple[ir.Part, ...]] = {
    "RELU": (ir.Factors(ir.LINEAR),),
    "RELU6": (ir.Factors(ir.CURVED),),
    "CLIP": (ir.Factors(ir.ADDITIVE), _LEVELS),
    "LEAKYRELU": (ir.Factors(ir.LINEAR), _LEVELS),
    "HARDSIGMOID": (ir.Lut(),),
    "SWISH": (ir.Lut(),),
    "PRELU": (ir.Fixed({"negative_slope_shift": SLOPE_SHIFT}), ir.Factors(ir.CURVED)),
}
_CURVE = (ir.Lut(), ir.Fixed(changed={"alpha": None, "gamma": None}))


def _activation(node: Node) -> Sequence[ir.Part]:
    return _METHODS.get(node.attributes.text("method"), _CURVE)


def _is_leaky(node: Node) -> bool:
    return node.attributes.get("method") == LEAKY


def _periodic(_node: Node, operands: Operands, options: LayerOptions) -> tuple[OutputType, ...]:
    """At 16 bits always -1..1."""
    if options.activation_bits > 8:
        return (typed(affine_of(np.float32(SCALE), 0, options.activation_bits, True, True)),)
    return (by_range(operands.output(), True, options),)


def _negative(_node: Node, operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...]:
    """s_y = s_x; zp_y = 1 - zp_x, for unsigned values -zp_x - (2^(bits - 1) - 1), always signed.

    Source: Compass Optimizer, ops/neg.py.
    """
    x = operands.input(0)
    highest = (1 << (x.affine.bits - 1)) - 1
    zp = 1 - offset_of(x) if x.affine.signed else -offset_of(x) - highest
    return (typed(affine_of(reciprocal(x.affine), zp, x.affine.bits, True)),)


def _paper_negative(_node: Node, operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...] | None:
    """zp_y = -zp_x of signed values; those of unsigned ones would not fit."""
    x = operands.input(0)
    if not x.affine.signed:
        return None
    return (typed(affine_of(reciprocal(x.affine), -offset_of(x), x.affine.bits, True)),)


def _cast(_node: Node, operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...]:
    """Integers stay as they are; real numbers become integers of at most 32 bits, at scale 1."""
    x, wanted = operands.input(0), operands.output().dtype
    return (like(x) if is_plain(x) else plain(min(32, wanted.bits), wanted.is_signed),)


def _emit_cast(layer: ir.Lowered) -> ir.Emitted:
    if not layer.multipliers("rescale"):
        return ir.Emitted(changed={"to_dtype": layer.operands.output().dtype.value})
    is_one = abs(float(scale_of(layer.operands.input(0))) - 1) <= float(np.finfo(np.float32).eps)
    return ir.Emitted(changed={"ignore_scale_zp": is_one, "clip_mode": "SATURATION"})


def _softmax(node: Node, operands: Operands, options: LayerOptions) -> tuple[OutputType, ...] | None:
    """FAST_EXP has no zero point."""
    is_fast = node.attributes.text(METHOD, "") == FAST_EXP
    return (by_range(operands.output(), False, options, True),) if is_fast else None


def _paper_softmax(_node: Node, _operands: Operands, options: LayerOptions) -> tuple[OutputType, ...]:
    """s_y = 2^bits - 1, zp_y = 0."""
    bits = options.activation_bits
    return (typed(affine_of(np.float32((1 << bits) - 1), 0, bits, False)),)


_BY_TABLE = (ir.Lut(dtype=np.uint32), ir.Fixed({METHOD: "LUT"}), ir.Factors(ir.CURVED))
_BY_POWERS = (
    ir.Lut("log2_lut", "logarithms", np.int16),
    ir.Lut("pow2_lut", "powers", np.uint16),
    ir.Factors(ir.ADDITIVE, "uint16", names="input_{0}_{1}"),
    ir.Number("pow2_out_q", "top"),
    ir.Number(ADJUST, "adjust"),
    ir.Fixed({METHOD: FAST_EXP}),
)


def _emit_softmax(layer: ir.Lowered) -> ir.Emitted:
    return ir.emitted_by(_BY_POWERS if isinstance(layer.node.params, FastSoftmaxParams) else _BY_TABLE, layer)


def _read_softmax(file: ir.FromFile) -> ir.Params:
    if file.keys.get(METHOD) != FAST_EXP:
        return ir.read_parts(_BY_TABLE, file)
    return {**ir.read_parts(_BY_POWERS, file), "is_fast": np.ones(1, np.int64)}


def _log_softmax(_node: Node, operands: Operands, options: LayerOptions) -> tuple[OutputType, ...]:
    """Always -16..0, signed, of the input's width, with all quantized values."""
    bits = bits_of(operands.input(0))
    affine = type_of_range(LOWEST, 0, bits, True, options.is_symmetric, options.restricted)
    return (typed(replace(affine, narrow_range=False)),)


def _emit_log_softmax(layer: ir.Lowered) -> ir.Emitted:
    """The table and both factors are real numbers; M / 2^N says 1."""
    params, kind = layer.node.params, type_of_multiplier(bits_of(layer.operands.output()))
    assert isinstance(params, LogSoftmaxParams)
    one: dict[str, Value] = {"shift_value": 0, "shift_type": "int8", "scale_value": 1, "scale_type": kind}
    return ir.Emitted({"lut_exp": params.table}, {"quantize_scale": tuple(map(float, params.factors)), **one})


def _read_log_softmax(file: ir.FromFile) -> ir.Params:
    factors = file.keys.get("quantize_scale")
    given: ir.Params = {"factors": np.asarray(factors, np.float32)} if isinstance(factors, tuple) else {}
    return {**given, **ir.Lut("lut_exp").read(file)}


def map_method(method: str, **keys: Attribute) -> Callable[[Translation, Node], None]:
    """Return the rule of an Activation with a method."""
    return lambda work, node: work.append(node, "activation", {}, Attributes({"method": method, **keys}))


def map_named(operator: str, suffix: str = "") -> Callable[[Translation, Node], None]:
    """Return the rule of a layer with the operands of the node and a suffix of its name."""
    return lambda work, node: work.add(
        node, operator, [work.operand(t) for t in node.inputs], node.outputs, suffix=suffix
    )


def map_leaky(work: Translation, node: Node) -> None:
    """Map LEAKY_RELU."""
    slope = as_written(node.attributes.real("alpha"))
    keys: dict[str, Attribute] = {
        "method": "LEAKYRELU",
        "negative_slope_type": "float32",
        "negative_slope_value": slope,
    }
    work.append(node, "activation", {}, Attributes(keys))


def map_prelu(work: Translation, node: Node) -> None:
    """Slopes of each element behind the batch as they are, else as many as values; below 4 axes first ones go.

    Source: Compass Parser, middle_passes.py, reshape_prelu_slope; back_passes.py, rename_activations.
    """
    slopes = np.asarray(work.source.tensors[node.inputs[1]].data)
    shape = work.shape(node.inputs[0])
    whole = slopes if slopes.shape == shape[1:] else np.broadcast_to(slopes, shape)
    if whole.ndim in (2, 3) and whole.shape[0] == 1:
        whole = whole[0, 0] if whole.shape[1:-1] == (1,) else whole[0]
    work.append(node, "activation", {"negative_slope": whole}, Attributes({"method": "PRELU"}))


def map_gelu(work: Translation, node: Node) -> None:
    """Map GELU."""
    approximate = "TANH" if node.attributes.boolean("approximate", False) else "NONE"
    work.append(node, "activation", {}, Attributes({"method": "GELU", "approximate": approximate}))


def map_limited(work: Translation, node: Node) -> None:
    """Map RELU_0_TO_1, RELU_N1_TO_1."""
    low, high = RECTIFIER_BOUNDS[node.operator]
    assert high is not None
    work.append(node, "activation", {}, Attributes({"method": "CLIP", "clip_min": low, "clip_max": high}))


def map_cast(work: Translation, node: Node) -> None:
    """Map CAST."""
    to = work.source.tensors[node.outputs[0]].dtype
    keys = {"to_dtype": (DType.UINT8 if to is DType.BOOL else to).value}
    work.append(node, "cast", {}, Attributes({**keys, "clip_mode": "TRUNCATION", "ignore_scale_zp": True}))


def map_log_softmax(work: Translation, node: Node) -> None:
    """Map LOG_SOFTMAX."""
    work.append(node, "log_softmax", {}, Attributes({"axis": len(work.shape(node.inputs[0])) - 1}))


def map_softmax(work: Translation, node: Node) -> None:
    """Map SOFTMAX."""
    work.append(node, "softmax", {}, Attributes({"axis": len(work.source.tensors[node.inputs[0]].shape) - 1}))


def refuse_softmax(graph: Graph, node: Node) -> str:
    """Return why SOFTMAX cannot be mapped; empty if it can."""
    shape = graph.tensors[node.inputs[0]].shape
    terms = shape[-1] if shape else 1
    if node.attributes.real("beta", 1.0) != 1.0:
        return f"beta is {node.attributes.real('beta')}; allowed is 1: multiply in front of it"
    return f"softmax over {terms} terms; allowed are {LARGEST_AXIS}" if terms > LARGEST_AXIS else ""


def refuse_cast(graph: Graph, node: Node) -> str:
    """Return why CAST cannot be mapped; empty if it can."""
    types = [graph.tensors[t].dtype for t in (node.inputs[0], node.outputs[0])]
    if any(t.is_integer or t is DType.BOOL for t in types):
        return ""
    return f"from {types[0].value} to {types[1].value}; allowed is from or to integers: take it out"


LAYERS = {
    **{name.lower(): Layer(name, never, emitted=(ir.Lut(),)) for name in ("BNLL", "Exp", "Rsqrt", "Sqrt", "Square")},
    **{name.lower(): Layer(name, follows_input, emitted=(ir.Lut(),)) for name in ("Reciprocal", "Round")},
    "abs": Layer("Abs", never, emitted=(ir.Factors(ir.CURVED),)),
    "activation": Layer("Activation", _activation_signed, emitted=_activation, constants=slopes, has_width=_is_leaky),
    "cast": Layer("Cast", types=_cast, emitted=(ir.Factors(ir.LINEAR, "uint16"), ir.Computed(_emit_cast))),
    "crelu": Layer("CRELU", never, emitted=(ir.Factors(ir.CURVED),)),
    "erf": Layer("Erf", always, emitted=(ir.Lut(),)),
    **{name.lower(): Layer(name, always, emitted=(ir.Lut(),)) for name in ("Ceil", "Floor", "Log")},
    "log_softmax": Layer(
        "LogSoftmax", types=_log_softmax, emitted=(ir.Computed(_emit_log_softmax, _read_log_softmax),)
    ),
    "negative": Layer("Negative", types=_negative, paper_types=_paper_negative),
    "sign": Layer("Sign", types=lambda _, o, __: (plain(o.input(0).affine.bits, True),)),
    "softmax": Layer("Softmax", never, _softmax, _paper_softmax, (ir.Computed(_emit_softmax, _read_softmax),)),
    **{
        name.lower(): Layer(
            name, types=_periodic, emitted=(ir.Lut(), ir.Factors(ir.CURVED, "uint16")), needs_range=True
        )
        for name in ("Cosine", "Sine")
    },
}

# fmt: off
DOCS = (
    Row("4.1", "Abs", "RNE(abs(x + zp_x) * M * 2^-N) - zp_y, r = s_y / s_x", "g r v", tflite="ABS"),
    Row("4.9", "BNLL", "table of max(x, 0) + ln(1 + exp(-abs x))", "g v"),
    Row("4.10", "Cast", "integers as they are; real numbers RNE((x + zp_x) * M * 2^-N), beyond 16 bits cut toward "
        "zero, r = 1 / s_x in 15 bits", "g r", tflite="CAST", signed="of the wanted type, s = 1",
        restriction="not from real to real numbers; up to 16 bits rounds, where TFLite truncates"),
    Row("4.11", "Clip", "u = clamp(RNE((x + zp_x) * M * 2^-(N - 8)), limits at 256 s_y), RNE(u / 256) - zp_y",
        "g r v", layer="Activation CLIP", tflite="MINIMUM with MAXIMUM, RELU_0_TO_1, RELU_N1_TO_1",
        signed="unsigned where clip_min >= 0"),
    Row("4.16, 4.63", "Cosine, Sine",
        "table; at 16 bits a table of one period at RNE((x + zp_x) * M * 2^-N) mod n, s_y = 32767", "g r",
        tflite="COS, SIN", signed="signed", restriction="input and output of one width"),
    Row("4.17", "Crelu", "RNE(max(+-(x + zp_x), 0) * M * 2^-N) - zp_y side by side", "g v", layer="CRELU",
        tflite="none (NEG, CONCATENATION, RELU stay)"),
    Row("4.29, 4.36, 4.61, 4.62, 4.67, 4.68, 4.74", "Elu, HardSwish, Selu, Sigmoid, Softplus, Softsign, Tanh",
        "table", "g(HARD_SWISH, SELU_LAYER, SOFTSIGN, TANH) r v", layer="Activation",
        tflite="ELU, HARD_SWISH, LOGISTIC, TANH; EXP, ADD 1, LOG is Softplus; GELU beside the paper's",
        signed="signed; Sigmoid, Softplus unsigned"),
    Row("4.30, 4.40, 4.60, 4.72, 4.73", "Exp, Log, Rsqrt, Sqrt, Square", "table",
        "g(EXP, ROUND, SQUARE, LAYERNORM) r v",
        tflite="EXP, LOG, RSQRT, SQRT, SQUARE; beside the paper's FLOOR, CEIL, ROUND",
        signed="unsigned; Log, Floor, Ceil signed; Round follows the input"),
    Row("-", "(reciprocal)", "table", "v", layer="Reciprocal", tflite="RSQRT of a SUM of squares: L2 and Reciprocal",
        signed="follows the input", restriction="test_more_layers.py"),
    Row("4.39", "LeakyRelu", "max(v, 0) + RNE(min(v, 0) * RNE(alpha * 2^b) * 2^-b), then M * 2^-N", "g r v",
        layer="Activation LEAKYRELU", tflite="LEAKY_RELU", signed="signed"),
    Row("4.47", "Negative",
        "-(x + zp_x) - zp_y, s_y = s_x, zp_y = 1 - zp_x, of unsigned quantized values -zp_x - (2^(bits - 1) - 1)",
        "g r v", tflite="NEG", signed="signed"),
    Row("4.52", "Prelu", "max(v, 0) + RNE(min(v, 0) * RNE(slope * 2^12) * 2^-12), then M * 2^-N", "g r v",
        layer="Activation PRELU", tflite="PRELU", signed="signed", restriction="constant slopes"),
    Row("4.54, 4.55", "Relu, Relu6", "RNE(max(x + zp_x, 0) * M * 2^-N) - zp_y, r = s_y / s_x", "g(RELU) r v",
        layer="Activation", tflite="RELU, RELU6", signed="unsigned"),
    Row("4.64", "Sign", "-1, 0, 1 of x + zp_x", "g r v", tflite="SIGN", signed="signed, s = 1"),
    Row("4.66", "Softmax", "e = t[x - max + 2^b - 1], R = trunc(M * 2^L / sum e), RNE(e * R * 2^-(N + L)) - zp_y; "
        "inside a network FAST_EXP, section 9", "g r v", layer="Softmax, quantize_method=LUT", tflite="SOFTMAX",
        restriction="4096 terms, beta 1"),
    Row("-", "(log of softmax)", "RNE(f32((x - max) * s_y / s_x - s_y * ln(sum t))) - zp_y, t float32", "g r",
        layer="LogSoftmax", tflite="LOG_SOFTMAX", signed="signed, range -16..0"),
    Row("-", "(error function)", "table", "v", layer="Erf", restriction="test_more_layers.py"),
)
# fmt: on
