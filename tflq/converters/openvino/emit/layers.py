"""ONNX's operators as layers of the IR, for the rules of tflq/converters/exchange."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tflq.converters.exchange.emitter import FLOAT32, INT64, Emitter, ExchangeAttribute, Kind, Value
from tflq.converters.openvino.emit.writer import NUMPY, Writer
from tflq.converters.openvino.ir import Value as Port
from tflq.converters.openvino.ir import dtype_of, element_type
from tflq.errors import UnsupportedError
from tflq.graph import Array

Results = Sequence[tuple[tuple[int, ...], Kind]]
Given = Mapping[str, ExchangeAttribute]
_OWN = ("FloorMod", "Gelu", "LSTMSequence", "ReduceAny", "ScatterND:add")


class Layers(Emitter):
    """Adds layers to the IR of a writer."""

    def __init__(self, writer: Writer) -> None:
        self.graph = writer.graph
        self.writer = writer
        self._ports: dict[str, Port] = {}
        self.constants: dict[str, Array] = {}

    def has(self, kind: str) -> bool:
        """Whether the IR has an operator that ONNX has not, or not in every opset."""
        return kind in _OWN

    def held(self, t: int) -> Value:
        """Return a tensor as it is there; constants in the model's own layout."""
        tensor = self.tensor(t)
        if tensor.data is not None:
            return self.number(tensor.name, tensor.data)
        if t in self.writer.values:
            return self._value(self.writer.values[t], True)
        return self._value(self.writer.plain[t], False)

    def laid(self, t: int, first: bool) -> Value:
        """Return a tensor in a layout."""
        return self._value(self.writer.read(t) if first else self.writer.read_plain(t), first)

    def number(self, name: str, array: Array) -> Value:
        """Add a constant."""
        _require(array.dtype)
        value = self._value(self.writer.builder.constant(self._named(name), array), False)
        self.constants[value.name] = array
        return value

    def weights(self, t: int, array: Array, axis: int) -> Value:  # noqa: ARG002 - they are real numbers here
        """Add a constant, rearranged."""
        return self.number(self.tensor(t).name, array)

    def several(
        self, kind: str, inputs: Sequence[Value | None], results: Results, first: bool, **attributes: ExchangeAttribute
    ) -> list[Value]:
        """Add the layers of an operator."""
        for _, dtype in results:
            _require(dtype)
        row = _ROWS.get(kind)
        if row is None:
            raise UnsupportedError(f"no layer of the IR is known for {kind}")
        ports = row(self, inputs, results, attributes)
        return [self._value(port, first) for port in ports]

    def put(self, t: int, value: Value) -> None:
        """Let a tensor be this value."""
        place = self.writer.values if value.is_first or value.rank != 4 else self.writer.plain
        place[t] = self.port(value)

    def port(self, value: Value) -> Port:
        """Return where a value comes from."""
        return self._ports[value.name]

    def integers(self, value: Value) -> list[int]:
        """Return the numbers of a constant."""
        return [int(v) for v in self.constants[value.name].reshape(-1)]

    def layer(self, kind: str, inputs: Sequence[Value | Port | None], results: Results, **data: object) -> list[Port]:
        """Add one layer; `data` are its attributes, as Python has them."""
        ports = [self.port(v) if isinstance(v, Value) else v for v in inputs if v is not None]
        shapes = [(shape, _require(dtype)) for shape, dtype in results]
        return self.writer.builder.add_several(
            kind, self._named(kind), ports, shapes, {k: _text(v) for k, v in data.items()}
        )

    def _named(self, name: str) -> str:
        return f"{self.node.name}/{name}"

    def _value(self, port: Port, first: bool) -> Value:
        name = f"{port.source.layer}.{port.source.output}"
        self._ports[name] = port
        return Value(name, port.shape, dtype_of(port.element_type), first and len(port.shape) == 4)


def _require(dtype: Kind) -> str:
    try:
        return element_type(dtype)
    except KeyError:
        raise UnsupportedError(
            f"a value of {dtype}; float32, int8, uint8, int32, int64 and bool can be written"
        ) from None


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


Row = Callable[[Layers, Sequence[Value | None], Results, Given], list[Port]]


def _same(kind: str, **data: object) -> Row:
    return lambda e, inputs, results, _: e.layer(kind, inputs, results, **data)


def _pair(kind: str, **data: object) -> Row:
    return _same(kind, auto_broadcast=NUMPY, **data)


def _renamed(kind: str, **names: str) -> Row:
    """Return a row whose attributes are ONNX's under other names."""
    return lambda e, inputs, results, given: e.layer(
        kind, inputs, results, **{new: given[old] for new, old in names.items()}
    )


def _reduced(kind: str) -> Row:
    return lambda e, inputs, results, given: e.layer(kind, inputs, results, keep_dims=bool(given["keepdims"]))


def _extreme(kind: str) -> Row:
    """Return the row of ReduceMax and ReduceMin, of real numbers with a layer behind it that changes nothing.

    The plug-in (2026.4.1) computes other values where a FakeQuantize stands directly behind a reduction in float32.
    Where axes stay, the layer is max(x, -FLT_MAX); else a Reshape.
    """

    def row(e: Layers, inputs: Sequence[Value | None], results: Results, given: Given) -> list[Port]:
        x, axes = inputs
        assert x is not None
        assert axes is not None
        if x.dtype != FLOAT32 or given["keepdims"]:
            found = e.layer(kind, inputs, results, keep_dims=bool(given["keepdims"]))
            if x.dtype != FLOAT32:
                return found
            least = e.number("least", np.array(np.finfo(np.float32).min, np.float32))
            return e.layer("Maximum", [found[0], least], results, auto_broadcast=NUMPY)
        gone = e.integers(axes)
        kept = tuple(1 if a in gone else size for a, size in enumerate(x.shape))
        found = e.layer(kind, inputs, [(kept, x.dtype)], keep_dims=True)
        return e.layer("Reshape", [found[0], e.whole("shape", results[0][0])], results, special_zero=False)

    return row


def _clip(e: Layers, inputs: Sequence[Value | None], results: Results, _: Given) -> list[Port]:
    low, high = (float(e.constants[v.name]) for v in inputs[1:] if v is not None)
    return e.layer("Clamp", inputs[:1], results, min=low, max=high)


def _cast(e: Layers, inputs: Sequence[Value | None], results: Results, _: Given) -> list[Port]:
    return e.layer("Convert", inputs, results, destination_type=_require(results[0][1]))


def _reciprocal(e: Layers, inputs: Sequence[Value | None], results: Results, _: Given) -> list[Port]:
    power = e.number("power", np.array(-1, np.float32))
    return e.layer("Power", [inputs[0], power], results, auto_broadcast=NUMPY)


def _transpose(e: Layers, inputs: Sequence[Value | None], results: Results, given: Given) -> list[Port]:
    order = given["perm"]
    assert isinstance(order, tuple)
    return e.layer("Transpose", [inputs[0], e.whole("order", [int(a) for a in order])], results)


def _split(e: Layers, inputs: Sequence[Value | None], results: Results, given: Given) -> list[Port]:
    return e.layer("VariadicSplit", [inputs[0], e.whole("axis", int(str(given["axis"]))), inputs[1]], results)


def _slice(e: Layers, inputs: Sequence[Value | None], results: Results, _: Given) -> list[Port]:
    x, start, stop, axes, step = inputs
    return e.layer("Slice", [x, start, stop, step, axes], results)


def _gather(e: Layers, inputs: Sequence[Value | None], results: Results, given: Given) -> list[Port]:
    return e.layer("Gather", [*inputs, e.whole("axis", int(str(given["axis"])))], results, batch_dims=0)


def _scatter(e: Layers, inputs: Sequence[Value | None], results: Results, given: Given) -> list[Port]:
    reduction = "sum" if given["reduction"] == "add" else "none"
    return e.layer("ScatterNDUpdate", inputs, results, reduction=reduction)


def _pad(e: Layers, inputs: Sequence[Value | None], results: Results, _: Given) -> list[Port]:
    x, amounts, *fill = inputs
    assert x is not None
    assert amounts is not None
    pads = e.integers(amounts)
    number = e.constants.get(fill[0].name) if fill and fill[0] is not None else np.zeros((), x.dtype)
    if number is None or float(np.float32(number)) != float(number):
        # The plug-in takes the value as float32, and zero for one that is computed.
        raise UnsupportedError("a padding of integers by a value that float32 does not hold, or that is computed")
    ends = [e.whole("begin", pads[: x.rank]), e.whole("end", pads[x.rank :])]
    return e.layer("Pad", [x, *ends, *(fill or [e.like(x, "value", 0)])], results, pad_mode="constant")


def _place(mode: str) -> Row:
    """Return the row of ArgMax and ArgMin: the place that TopK of 1 gives, the first of equal ones."""

    def row(e: Layers, inputs: Sequence[Value | None], results: Results, given: Given) -> list[Port]:
        x, axis = inputs[0], int(str(given["axis"]))
        assert x is not None
        shape = tuple(1 if a == axis else size for a, size in enumerate(x.shape))
        both = [(shape, x.dtype), (shape, INT64)]
        found = e.layer(
            "TopK",
            [x, e.whole("k", 1)],
            both,
            axis=axis,
            mode=mode,
            sort="value",
            stable=True,
            index_element_type="i64",
        )
        return e.layer("Reshape", [found[1], e.whole("shape", results[0][0])], results, special_zero=False)

    return row


def _topk(e: Layers, inputs: Sequence[Value | None], results: Results, given: Given) -> list[Port]:
    assert inputs[1] is not None
    if not e.integers(inputs[1])[0]:
        raise UnsupportedError("the 0 largest values; OpenVINO's TopK takes 1 or more")
    count = e.whole("count", e.integers(inputs[1])[0])
    options = {"axis": given["axis"], "mode": "max", "sort": "value", "stable": True, "index_element_type": "i64"}
    return e.layer("TopK", [inputs[0], count], results, **options)


def _resize(e: Layers, inputs: Sequence[Value | None], results: Results, given: Given) -> list[Port]:
    assert inputs[3] is not None
    sizes = [e.whole("size", e.integers(inputs[3])[2:]), e.whole("axes", [2, 3])]
    return e.layer(
        "Interpolate",
        [inputs[0], *sizes],
        results,
        mode="nearest" if given["mode"] == "nearest" else "linear_onnx",
        shape_calculation_mode="sizes",
        coordinate_transformation_mode=given["coordinate_transformation_mode"],
        nearest_mode=given.get("nearest_mode", "floor"),
        antialias=False,
        pads_begin="0",
        pads_end="0",
        cube_coeff=-0.75,
    )


def _convolution(kind: str) -> Row:
    """Return the row of Conv and ConvTranspose without groups."""

    def row(e: Layers, inputs: Sequence[Value | None], results: Results, given: Given) -> list[Port]:
        if given.get("group", 1) != 1:
            raise UnsupportedError(f"{given['group']} groups; the IR's layer of volumes has one")
        pads, strides = given["pads"], given["strides"]
        assert isinstance(pads, tuple)
        assert isinstance(strides, tuple)
        half = len(pads) // 2
        more = {"output_padding": given["output_padding"]} if "output_padding" in given else {}
        dilations = given.get("dilations", (1,) * half)
        window = {"strides": strides, "dilations": dilations, "pads_begin": pads[:half], "pads_end": pads[half:]}
        return e.layer(kind, inputs, results, **window, auto_pad="explicit", **more)

    return row


def _suppression(e: Layers, inputs: Sequence[Value | None], results: Results, _: Given) -> list[Port]:
    boxes, scores, *limits = inputs
    scalars = [e.number(f"limit_{i}", e.constants[v.name].reshape(())) for i, v in enumerate(limits) if v is not None]
    most = results[0][0][0]
    three = [results[0], ((most, 3), np.dtype(np.float32)), ((1,), INT64)]
    options = {"box_encoding": "corner", "sort_result_descending": False, "output_type": "i64"}
    return e.layer("NonMaxSuppression", [boxes, scores, *scalars], three, **options)[:1]


def _recurrent(kind: str) -> Row:
    def row(e: Layers, inputs: Sequence[Value | None], results: Results, given: Given) -> list[Port]:
        activations = given["activations"]
        assert isinstance(activations, tuple)
        names = [str(a).lower() for a in activations]
        return e.layer(
            kind, inputs, results, hidden_size=given["hidden_size"], direction="forward", activations=",".join(names)
        )

    return row


_ROWS: dict[str, Row] = {
    **{kind: _same(kind) for kind in ("Abs", "Atan", "Cos", "Erf", "Exp", "Floor", "Log", "Sigmoid", "Sign", "Sin")},
    **{kind: _same(kind) for kind in ("Sqrt", "Tanh", "Tile")},
    **{kind: _reduced(kind) for kind in ("ReduceMean", "ReduceProd", "ReduceSum")},
    **{kind: _extreme(kind) for kind in ("ReduceMax", "ReduceMin")},
    "Add": _pair("Add"),
    "And": _pair("LogicalAnd"),
    "ArgMax": _place("max"),
    "ArgMin": _place("min"),
    "Cast": _cast,
    "Ceil": _same("Ceiling"),
    "Clip": _clip,
    "Concat": _renamed("Concat", axis="axis"),
    "Conv": _convolution("Convolution"),
    "ConvTranspose": _convolution("ConvolutionBackpropData"),
    "CumSum": lambda e, i, r, g: e.layer("CumSum", i, r, exclusive=bool(g["exclusive"]), reverse=bool(g["reverse"])),
    "DepthToSpace": lambda e, i, r, g: e.layer("DepthToSpace", i, r, block_size=g["blocksize"], mode="blocks_first"),
    "Div": _pair("Divide", m_pythondiv=False),
    "Equal": _pair("Equal"),
    "Expand": _same("Broadcast", mode="numpy"),
    "FloorMod": _pair("FloorMod"),
    "Gather": _gather,
    "GatherND": _renamed("GatherND", batch_dims="batch_dims"),
    "Gelu": lambda e, i, r, g: e.layer(
        "Gelu", i, r, approximation_mode="TANH" if g["approximate"] == "tanh" else "ERF"
    ),
    "Greater": _pair("Greater"),
    "GreaterOrEqual": _pair("GreaterEqual"),
    "Less": _pair("Less"),
    "LSTMSequence": _recurrent("LSTMSequence"),
    "LessOrEqual": _pair("LessEqual"),
    "LogSoftmax": _renamed("LogSoftmax", axis="axis"),
    "MatMul": _same("MatMul", transpose_a=False, transpose_b=False),
    "Max": _pair("Maximum"),
    "Min": _pair("Minimum"),
    "Mul": _pair("Multiply"),
    "Neg": _same("Negative"),
    "NonMaxSuppression": _suppression,
    "NonZero": _same("NonZero", output_type="i64"),
    "Not": _same("LogicalNot"),
    "Or": _pair("LogicalOr"),
    "Pad": _pad,
    "Pow": _pair("Power"),
    "Reciprocal": _reciprocal,
    "RNNSequence": _recurrent("RNNSequence"),
    "ReduceAll": _reduced("ReduceLogicalAnd"),
    "ReduceAny": _reduced("ReduceLogicalOr"),
    "Relu": _same("ReLU"),
    "Reshape": _same("Reshape", special_zero=False),
    "Resize": _resize,
    "ReverseSequence": _renamed("ReverseSequence", batch_axis="batch_axis", seq_axis="time_axis"),
    "Round": _same("Round", mode="half_to_even"),
    "ScatterND": _scatter,
    "Shape": _same("ShapeOf", output_type="i64"),
    "Slice": _slice,
    "SpaceToDepth": lambda e, i, r, g: e.layer("SpaceToDepth", i, r, block_size=g["blocksize"], mode="blocks_first"),
    "Split": _split,
    "Sub": _pair("Subtract"),
    "TopK": _topk,
    "Transpose": _transpose,
    "Where": _pair("Select"),
    "Xor": _pair("LogicalXor"),
}
