"""Each layer type as nodes of the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tflq.converters.openvino.ir import Layer, Source
from tflq.converters.openvino.reader import filters, windows
from tflq.converters.openvino.reader.graph import Codes, Reading
from tflq.converters.passes.patterns import TO_LAST
from tflq.errors import UnsupportedError
from tflq.graph import FakeQuantize
from tflq.interpreter.kernels.openvino.conversions import require_sound

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
    codes = reading.compressed.get(first)
    value = reading.constant(second)
    if codes is not None and codes.scale is None and operator == "sub":
        return Codes(codes.codes, np.asarray(value, np.float32))
    if codes is not None and codes.scale is None and operator == "mul":
        return Codes(codes.codes, codes.zero_point, np.asarray(value, np.float32))
    raise UnsupportedError("both inputs are constants, and no compressed weights: fold them before the model is saved")


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
        filters.quantised_constant(reading, source, reading.constant(x), FakeQuantize(int(levels), *values))
        return
    flat = [_per_channel(value, rank) for value in values]
    rule = FakeQuantize(int(levels), *flat)
    is_last = reading.is_last(x) or (rank == 4 and any(v.size > 1 for v in flat))
    if rank not in (2, 4) and any(v.size > 1 for v in flat):
        raise UnsupportedError(f"bounds per channel of a value with {rank} axes; read are 2 and 4")
    t = reading.in_last(x) if is_last else reading.in_plain(x)
    reading.add("fake_quantize", [t], source, is_last, rule)


def _per_channel(value: np.ndarray, rank: int) -> np.ndarray:
    """Return a bound as one number or one a channel (axis 1)."""
    padded = (1,) * (rank - value.ndim) + value.shape
    if value.size > 1 and (len(padded) != rank or value.size != padded[1]):
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
    "AvgPool": windows.average_pool,
    "Clamp": _clamp,
    "Concat": windows.concat,
    "Const": _const,
    "Convert": _convert,
    "Convolution": filters.convolution,
    "Elu": _elu,
    "FakeQuantize": _fake_quantize,
    "GroupConvolution": filters.group_convolution,
    "MatMul": filters.matmul,
    "MaxPool": windows.max_pool,
    **dict.fromkeys(("PReLU", "PRelu"), _prelu),
    "Pad": windows.pad,
    "Parameter": _parameter,
    "ReduceMean": windows.reduce_mean,
    "Reshape": windows.reshape,
    "Result": _result,
    "Transpose": windows.transpose,
}
