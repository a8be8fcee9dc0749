"""Each layer type as nodes of the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tflq.converters.openvino.ir import Layer, Source
from tflq.converters.openvino.reader import filters
from tflq.converters.openvino.reader.graph import Codes, Reading
from tflq.converters.passes.patterns import TO_LAST
from tflq.errors import UnsupportedError
from tflq.graph import FakeQuantize
from tflq.interpreter.kernels.openvino.levels import require_sound

Rule = Callable[[Reading, Layer, Source], None]

_CLAMPS = {(0.0, 6.0): "relu6", (-1.0, 1.0): "relu_n1_to_1", (0.0, 1.0): "relu_0_to_1"}


def read_layer(reading: Reading, number: int) -> None:
    """Add one layer to the graph.

    Raises:
        UnsupportedError: a type or form of layer that is not read.
        GraphError, ValueError: data that contradict each other.
    """
    layer, source = reading.network.layers[number], Source(number)
    rule = _RULES.get(layer.type)
    if rule is None:
        raise UnsupportedError(f"layers of this type are not read; known are {', '.join(sorted(_RULES))}")
    counts = {"Parameter": 0, "Const": 0, "FakeQuantize": 5}
    if layer.type in counts and len(layer.sources) != counts[layer.type]:
        raise ValueError(f"it has {len(layer.sources)} inputs; {counts[layer.type]} are needed")
    if layer.type not in counts and not layer.sources:
        raise ValueError("it has no inputs")
    if layer.type != "Result" and len(layer.outputs) != 1:
        raise UnsupportedError(f"it has {len(layer.outputs)} outputs; layers with 1 are read")
    try:
        rule(reading, layer, source)
    except KeyError as error:
        raise ValueError(f"attribute {error} is missing") from None
    except IndexError:
        raise ValueError(f"it has too few inputs ({len(layer.sources)}) or axes") from None


def _parameter(reading: Reading, layer: Layer, source: Source) -> None:
    reading.input(layer, source)


def _const(reading: Reading, layer: Layer, source: Source) -> None:
    assert layer.value is not None  # the reader of files has put it there
    reading.constants[source] = layer.value


def _result(reading: Reading, layer: Layer, _source: Source) -> None:
    reading.output(layer)


def _convert(reading: Reading, layer: Layer, source: Source) -> None:
    before, kind = layer.sources[0], layer.outputs[0].element_type
    if before in reading.constants:
        value = reading.constants[before]
        if kind == "f32" and value.dtype.kind in "iu":
            reading.compressed[source] = Codes(value, np.zeros((), np.float32))
        else:
            reading.constants[source] = value.astype({"f32": np.float32, "i32": np.int32, "i64": np.int64}[kind])
        return
    is_last = reading.is_last(before)
    t = reading.in_last(before) if is_last else reading.in_plain(before)
    reading.add("cast", [t], source, is_last)


def _arithmetic(operator: str) -> Rule:
    def rule(reading: Reading, layer: Layer, source: Source) -> None:
        first, second = layer.sources
        if reading.is_constant(first) and reading.is_constant(second):
            reading.compressed[source] = _compressed(reading, operator, first, second)
            return
        rank = len(reading.shape(source))
        is_last = rank == 4 and any(reading.is_last(s) for s in layer.sources)
        operands = [_operand(reading, s, rank, is_last) for s in layer.sources]
        reading.add(operator, operands, source, is_last)

    return rule


def _compressed(reading: Reading, operator: str, first: Source, second: Source) -> Codes:
    """Take one step of (code - zero point) * scale."""
    codes, value = reading.compressed.get(first), np.asarray(reading.constant(second), np.float32)
    if codes is None or codes.scale is not None or operator not in ("sub", "mul"):
        raise UnsupportedError(
            "both inputs are constants, and no compressed weights: fold them before the model is saved"
        )
    if operator == "mul":
        return Codes(codes.codes, codes.zero_point, value)
    return Codes(codes.codes, codes.zero_point + value)


def _operand(reading: Reading, source: Source, rank: int, is_last: bool) -> int:
    shape = reading.shape(source)
    if reading.is_constant(source) and len(shape) != rank:
        value = reading.constant(source).reshape((1,) * (rank - len(shape)) + shape)
        laid = value.transpose(TO_LAST) if is_last else value
        return reading.add_constant(f"{reading.network.layers[source.layer].name}/broadcast", laid)
    if len(shape) != rank:
        raise UnsupportedError(f"inputs of {len(shape)} and {rank} axes; computed ones need as many")
    return reading.in_last(source) if is_last else reading.in_plain(source)


def _fake_quantize(reading: Reading, layer: Layer, source: Source) -> None:
    x, *bounds = layer.sources
    rank = len(reading.shape(x))
    levels = layer.data["levels"]
    if not (levels.isascii() and levels.isdecimal()) or len(levels) > 9:
        raise ValueError(f"levels is '{levels[:20]}'; a whole number of at least 2 is allowed")
    values = [np.asarray(reading.constant(s), np.float32) for s in bounds]
    require_sound(FakeQuantize(int(levels), *values), "FakeQuantize")
    if reading.is_constant(x):
        filters.quantized_constant(reading, source, reading.constant(x), FakeQuantize(int(levels), *values))
        return
    flat = [_per_channel(value, reading.shape(x)) for value in values]
    rule = FakeQuantize(int(levels), *flat)
    is_last = reading.is_last(x) or (rank == 4 and any(v.size > 1 for v in flat))
    if rank not in (2, 4) and any(v.size > 1 for v in flat):
        raise UnsupportedError(f"bounds per channel of a value with {rank} axes; read are 2 and 4")
    t = reading.in_last(x) if is_last else reading.in_plain(x)
    reading.add("fake_quantize", [t], source, is_last, rule)


def _per_channel(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return a bound as one number or one a channel (axis 1)."""
    padded = (1,) * (len(shape) - value.ndim) + value.shape
    if value.size > 1 and padded != (1, *shape[1:2], *(1 for _ in shape[2:])):
        raise UnsupportedError(f"bounds of shape {value.shape}; one number, or one for each channel, is read")
    return value.reshape(-1)


def _unary(operator: str) -> Rule:
    def rule(reading: Reading, layer: Layer, source: Source) -> None:
        (x,) = layer.sources
        is_last = reading.is_last(x)
        reading.add(operator, [reading.in_last(x) if is_last else reading.in_plain(x)], source, is_last)

    return rule


def _clamp(reading: Reading, layer: Layer, source: Source) -> None:
    bounds = (float(layer.data["min"]), float(layer.data["max"]))
    if bounds not in _CLAMPS:
        raise UnsupportedError(f"a clamp to {bounds[0]:g}..{bounds[1]:g}; read are {', '.join(_CLAMPS.values())}")
    _unary(_CLAMPS[bounds])(reading, layer, source)


def _elu(reading: Reading, layer: Layer, source: Source) -> None:
    if float(layer.data["alpha"]) != 1.0:
        raise UnsupportedError(f"alpha {layer.data['alpha'][:20]}; 1 is read")
    _unary("elu")(reading, layer, source)


def _softmax(reading: Reading, layer: Layer, source: Source) -> None:
    (x,) = layer.sources
    rank = len(reading.shape(x))
    axis = int(layer.data.get("axis", "1")) % max(rank, 1)
    if axis != (1 if rank == 4 else rank - 1):
        raise UnsupportedError(f"axis {axis} of {rank}; the channels' one is read")
    t = reading.in_last(x)
    reading.add("softmax", [t], source, rank == 4, attributes={"beta": 1.0})


def _prelu(reading: Reading, layer: Layer, source: Source) -> None:
    x, slope = layer.sources
    value = np.asarray(reading.constant(slope), np.float32).reshape(-1)
    alpha = reading.add_constant(f"{layer.name}/slope", value)
    reading.add("prelu", [reading.in_last(x), alpha], source, True)


def _reduce_mean(reading: Reading, layer: Layer, source: Source) -> None:
    """ReduceMean; over height and width with channels last."""
    x, given = layer.sources
    rank = len(reading.shape(x))
    axes = sorted({int(a) % max(rank, 1) for a in reading.constant(given).reshape(-1)})
    keep = layer.data.get("keep_dims", "false") == "true"
    is_last = reading.is_last(x) and (keep or axes == [2, 3])
    mapped = sorted(TO_LAST.index(a) for a in axes) if is_last else axes
    t = reading.in_last(x) if is_last else reading.in_plain(x)
    constant = reading.add_constant(f"{layer.name}/axes", np.array(mapped, np.int32))
    reading.add("mean", [t, constant], source, is_last, attributes={"keep_dims": keep})


def _reshape(reading: Reading, layer: Layer, source: Source) -> None:
    """Reshape, in the file's order of elements."""
    shape = reading.shape(source)
    if int(np.prod(shape)) != int(np.prod(reading.shape(layer.sources[0]))):
        raise ValueError(f"{reading.shape(layer.sources[0])} has no shape {shape}")
    target = reading.add_constant(f"{layer.name}/shape", np.array(shape, np.int32))
    reading.add("reshape", [reading.in_plain(layer.sources[0]), target], source)


def _transpose(reading: Reading, layer: Layer, source: Source) -> None:
    """Transpose; from N C H W to N H W C it is the change of layout that a value may have made already."""
    x, order = layer.sources
    axes = tuple(int(a) for a in reading.constant(order).reshape(-1))
    if sorted(axes) != list(range(len(reading.shape(x)))):
        raise ValueError(f"order {axes} for {len(reading.shape(x))} axes")
    if axes == TO_LAST:
        reading.plain[source] = reading.in_last(x)
        return
    if axes == (0, 3, 1, 2) and not reading.is_last(x):
        reading.last[source] = reading.in_plain(x)
        return
    constant = reading.add_constant(f"{layer.name}/axes", np.array(axes, np.int32))
    reading.add("transpose", [reading.in_plain(x), constant], source)


def _concat(reading: Reading, layer: Layer, source: Source) -> None:
    """Concat."""
    rank = len(reading.shape(source))
    axis = int(layer.data["axis"]) % max(rank, 1)
    is_last = any(reading.is_last(s) for s in layer.sources)
    operands = [reading.in_last(s) if is_last else reading.in_plain(s) for s in layer.sources]
    reading.add(
        "concatenation",
        operands,
        source,
        is_last,
        attributes={"axis": TO_LAST.index(axis) if is_last else axis, "fused_activation_function": "none"},
    )


def _pad(reading: Reading, layer: Layer, source: Source) -> None:
    """Pad with a constant."""
    if layer.data.get("pad_mode") != "constant":
        raise UnsupportedError(f"pad_mode {layer.data.get('pad_mode', '')[:20]}; constant is read")
    x, begin, end, *fill = layer.sources
    is_last = reading.is_last(x)
    amounts = np.stack([reading.constant(begin).reshape(-1), reading.constant(end).reshape(-1)], axis=1)
    if is_last:
        amounts = amounts[list(TO_LAST)]
    t = reading.in_last(x) if is_last else reading.in_plain(x)
    inputs = [t, reading.add_constant(f"{layer.name}/pads", amounts.astype(np.int32))]
    value = float(reading.constant(fill[0]).flat[0]) if fill else 0.0
    if value:
        inputs.append(reading.add_constant(f"{layer.name}/fill", np.float32(value).reshape(())))
    reading.add("padv2" if value else "pad", inputs, source, is_last)


_UNARY = {
    "Abs": "abs",
    "Exp": "exp",
    "HSwish": "hard_swish",
    "Log": "log",
    "ReLU": "relu",
    "Sigmoid": "logistic",
    "Sqrt": "sqrt",
    "Tanh": "tanh",
}
_ARITHMETIC = {
    "Add": "add",
    "Divide": "div",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Multiply": "mul",
    "Subtract": "sub",
}
_RULES: Mapping[str, Rule] = {
    **{kind: _unary(name) for kind, name in _UNARY.items()},
    **{kind: _arithmetic(name) for kind, name in _ARITHMETIC.items()},
    **dict.fromkeys(("SoftMax", "Softmax"), _softmax),
    "AvgPool": filters.average_pool,
    "Clamp": _clamp,
    "Concat": _concat,
    "Const": _const,
    "Convert": _convert,
    "Convolution": filters.convolution,
    "Elu": _elu,
    "FakeQuantize": _fake_quantize,
    "GroupConvolution": filters.group_convolution,
    "MatMul": filters.matmul,
    "MaxPool": filters.max_pool,
    **dict.fromkeys(("PReLU", "PRelu"), _prelu),
    "Pad": _pad,
    "Parameter": _parameter,
    "ReduceMean": _reduce_mean,
    "Reshape": _reshape,
    "Result": _result,
    "Transpose": _transpose,
}
