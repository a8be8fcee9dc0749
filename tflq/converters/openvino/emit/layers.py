"""The layers of the IR that ONNX's operators become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tflq.converters.exchange.emitter import FLOAT32, INT64, Value
from tflq.converters.openvino.emit.writer import NUMPY, Attributes, Results, Row, Writer, require_element
from tflq.converters.openvino.ir import Value as Port
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array
from tflq.interpreter.kernels.openvino.levels import CODES


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

    def row(e: Writer, inputs: Sequence[Value | None], results: Results, given: Attributes) -> list[Port]:
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


def _clip(e: Writer, inputs: Sequence[Value | None], results: Results, _: Attributes) -> list[Port]:
    low, high = (float(e.constants[v.name].flat[0]) for v in inputs[1:] if v is not None)
    return e.layer("Clamp", inputs[:1], results, min=low, max=high)


def _cast(e: Writer, inputs: Sequence[Value | None], results: Results, _: Attributes) -> list[Port]:
    return e.layer("Convert", inputs, results, destination_type=require_element(results[0][1]))


def _reciprocal(e: Writer, inputs: Sequence[Value | None], results: Results, _: Attributes) -> list[Port]:
    power = e.number("power", np.array(-1, np.float32))
    return e.layer("Power", [inputs[0], power], results, auto_broadcast=NUMPY)


def _reshape(e: Writer, inputs: Sequence[Value | None], results: Results, _: Attributes) -> list[Port]:
    if not e.is_named:
        return e.layer("Reshape", inputs, results, special_zero=False)
    assert inputs[0] is not None
    return [e.reshape_port(e.port(inputs[0]), results[0][0], e.layer_name("Reshape"))]


def _transpose(e: Writer, inputs: Sequence[Value | None], results: Results, given: Attributes) -> list[Port]:
    order = given["perm"]
    assert isinstance(order, tuple)
    axes = [int(a) for a in order]
    if not e.is_named:
        return e.layer("Transpose", [inputs[0], e.whole("order", axes)], results)
    assert inputs[0] is not None
    return [e.move_axes(e.port(inputs[0]), axes, e.layer_name("Transpose"))]


def _split(e: Writer, inputs: Sequence[Value | None], results: Results, given: Attributes) -> list[Port]:
    return e.layer("VariadicSplit", [inputs[0], e.whole("axis", int(str(given["axis"]))), inputs[1]], results)


def _slice(e: Writer, inputs: Sequence[Value | None], results: Results, _: Attributes) -> list[Port]:
    x, start, stop, axes, step = inputs
    return e.layer("Slice", [x, start, stop, step, axes], results)


def _gather(e: Writer, inputs: Sequence[Value | None], results: Results, given: Attributes) -> list[Port]:
    return e.layer("Gather", [*inputs, e.whole("axis", int(str(given["axis"])))], results, batch_dims=0)


def _scatter(e: Writer, inputs: Sequence[Value | None], results: Results, given: Attributes) -> list[Port]:
    reduction = "sum" if given["reduction"] == "add" else "none"
    return e.layer("ScatterNDUpdate", inputs, results, reduction=reduction)


def _pad(e: Writer, inputs: Sequence[Value | None], results: Results, _: Attributes) -> list[Port]:
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

    def row(e: Writer, inputs: Sequence[Value | None], results: Results, given: Attributes) -> list[Port]:
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


def _topk(e: Writer, inputs: Sequence[Value | None], results: Results, given: Attributes) -> list[Port]:
    assert inputs[1] is not None
    if not e.integers(inputs[1])[0]:
        raise UnsupportedError("the 0 largest values; OpenVINO's TopK takes 1 or more")
    count = e.whole("count", e.integers(inputs[1])[0])
    options = {"axis": given["axis"], "mode": "max", "sort": "value", "stable": True, "index_element_type": "i64"}
    return e.layer("TopK", [inputs[0], count], results, **options)


def _resize(e: Writer, inputs: Sequence[Value | None], results: Results, given: Attributes) -> list[Port]:
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


def _window(given: Attributes) -> dict[str, object]:
    """Return strides, dilations and padding as the IR names them."""
    pads, strides = given["pads"], given["strides"]
    assert isinstance(pads, tuple)
    half = len(pads) // 2
    dilations = given.get("dilations", (1,) * half)
    return {"strides": strides, "dilations": dilations, "pads_begin": pads[:half], "pads_end": pads[half:]}


def _transposed_convolution(
    e: Writer, inputs: Sequence[Value | None], results: Results, given: Attributes
) -> list[Port]:
    more = {"auto_pad": "explicit", "output_padding": given["output_padding"]}
    return e.layer("ConvolutionBackpropData", inputs, results, **_window(given), **more)


def _convolution(e: Writer, inputs: Sequence[Value | None], results: Results, given: Attributes) -> list[Port]:
    x, weights, *bias = inputs
    groups, window = int(str(given["group"])), {**_window(given), "auto_pad": "explicit"}
    if not e.is_named:
        if groups != 1:
            raise UnsupportedError(f"{groups} groups; the IR's layer of volumes has one")
        return e.layer("Convolution", inputs, results, **window)
    if groups == 1 and e.node.operator != "depthwise_conv_2d":
        sums = e.layer("Convolution", [x, _filter(e, weights)], results, **window)
    else:
        sums = e.layer("GroupConvolution", [x, _filter(e, weights, groups)], results, **window)
    return _add_bias(e, sums, results, bias)


def _product(e: Writer, inputs: Sequence[Value | None], results: Results, _: Attributes) -> list[Port]:
    """Return MatMul of rows and transposed weights, plus the bias.

    The plug-in (2026.4.1) fuses products in a row with levels between them into one kernel, and returns other numbers
    if one upstream has no bias or the same bias for all outputs. So a bias is written there, its first number one
    float32 step larger: 2^-126 for 0, which moves no level.
    """
    x, weights, *bias = inputs
    sums = e.layer("MatMul", [x, _filter(e, weights)], results, transpose_a=False, transpose_b=True)
    is_distinct = e.output().dtype in CODES
    if is_distinct and not bias:
        bias = [e.number("bias", np.zeros(results[0][0][1], np.float32))]
    return _add_bias(e, sums, results, bias, is_distinct)


def _filter(e: Writer, weights: Value | None, groups: int = 0) -> Port:
    """Return weights as f32, or i8 -> Convert -> Multiply, which runs in int8.

    A Subtract precedes the Multiply if there are zero points. With groups, [O, ...] is written as [G, O/G, ...].
    """
    assert weights is not None
    array = e.constants.get(weights.name)
    if array is None:
        return e.port(weights)
    scales: tuple[int, ...] = (array.shape[0], *(1,) * (array.ndim - 1))
    if groups:
        scales = (groups, array.shape[0] // groups, *scales[1:])
        array = array.reshape(*scales[:2], *array.shape[1:])
    name, affine = f"{e.node.name}/weights", e.tensor(e.node.inputs[1]).quantization
    if not isinstance(affine, Affine):
        return e.reals(name, array)
    scales = scales if affine.scale.size > 1 else (1,) * array.ndim
    port = e.builder.constant(name, array.astype(np.int8))
    port = e.builder.add("Convert", f"{name}/f32", [port], array.shape, destination_type="f32")
    if affine.zero_point.any():
        zero = e.reals(f"{name}/zero_point", np.broadcast_to(affine.zero_point, affine.scale.size).reshape(scales))
        port = e.builder.add("Subtract", f"{name}/less", [port, zero], array.shape, auto_broadcast=NUMPY)
    scale = e.reals(f"{name}/scale", affine.scale.reshape(scales))
    return e.builder.add("Multiply", f"{name}/reals", [port, scale], array.shape, auto_broadcast=NUMPY)


def _add_bias(
    e: Writer, sums: list[Port], results: Results, bias: Sequence[Value | None], is_distinct: bool = False
) -> list[Port]:
    if not bias or bias[0] is None:
        return sums
    name, array, rank = f"{e.node.name}/bias", e.constants.get(bias[0].name), len(results[0][0])
    shape = (1, results[0][0][1], *(1,) * (rank - 2))
    if array is None:
        port = e.reshape_port(e.port(bias[0]), shape, name)
    else:
        port = e.reals(name, _make_distinct(array.reshape(shape)) if is_distinct else array.reshape(shape))
    return e.layer("Add", [sums[0], port], results, "biased", auto_broadcast=NUMPY)


def _make_distinct(bias: Array) -> Array:
    """Return a bias [1, O] in which not all numbers are the same."""
    first = bias[0, 0]
    if bias.shape[1] == 1 or (bias != first).any():
        return bias
    larger = np.nextafter(first, np.float32(np.inf)) if first else np.finfo(np.float32).tiny
    return np.where(np.arange(bias.shape[1]) == 0, larger, bias)


def _pool(kind: str, **more: object) -> Row:
    def row(e: Writer, inputs: Sequence[Value | None], results: Results, given: Attributes) -> list[Port]:
        window = _window(given)
        ends = {key: window[key] for key in ("pads_begin", "pads_end")}
        how = {"kernel": given["kernel_shape"], "strides": given["strides"], "rounding_type": "floor"}
        return e.layer(kind, inputs, results, **how, **ends, auto_pad="explicit", **more)

    return row


def _slope(e: Writer, inputs: Sequence[Value | None], results: Results, given: Attributes) -> list[Port]:
    return e.layer("PRelu", [inputs[0], e.number("slope", np.array([given["alpha"]], np.float32))], results)


def _divide(e: Writer, inputs: Sequence[Value | None], results: Results, _: Attributes) -> list[Port]:
    of_integers = {} if e.is_named else {"m_pythondiv": False}
    return e.layer("Divide", inputs, results, auto_broadcast=NUMPY, **of_integers)


def _suppression(e: Writer, inputs: Sequence[Value | None], results: Results, _: Attributes) -> list[Port]:
    boxes, scores, *limits = inputs
    scalars = [e.number(f"limit_{i}", e.constants[v.name].reshape(())) for i, v in enumerate(limits) if v is not None]
    most = results[0][0][0]
    three = [results[0], ((most, 3), np.dtype(np.float32)), ((1,), INT64)]
    options = {"box_encoding": "corner", "sort_result_descending": False, "output_type": "i64"}
    return e.layer("NonMaxSuppression", [boxes, scores, *scalars], three, **options)[:1]


def _recurrent(kind: str) -> Row:
    def row(e: Writer, inputs: Sequence[Value | None], results: Results, given: Attributes) -> list[Port]:
        activations = given["activations"]
        assert isinstance(activations, tuple)
        names = [str(a).lower() for a in activations]
        return e.layer(
            kind, inputs, results, hidden_size=given["hidden_size"], direction="forward", activations=",".join(names)
        )

    return row


ROWS: Mapping[str, Row] = {
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
    "AveragePool": _pool("AvgPool", **{"exclude-pad": True}),
    "Clip": _clip,
    "Concat": _renamed("Concat", axis="axis"),
    "Conv": _convolution,
    "ConvTranspose": _transposed_convolution,
    "CumSum": lambda e, i, r, g: e.layer("CumSum", i, r, exclusive=bool(g["exclusive"]), reverse=bool(g["reverse"])),
    "DepthToSpace": lambda e, i, r, g: e.layer("DepthToSpace", i, r, block_size=g["blocksize"], mode="blocks_first"),
    "Div": _divide,
    "Elu": _same("Elu", alpha=1.0),
    "Equal": _pair("Equal"),
    "Expand": _same("Broadcast", mode="numpy"),
    "FloorMod": _pair("FloorMod"),
    "Gather": _gather,
    "GatherND": _renamed("GatherND", batch_dims="batch_dims"),
    "Gelu": lambda e, i, r, g: e.layer(
        "Gelu", i, r, approximation_mode="TANH" if g["approximate"] == "tanh" else "ERF"
    ),
    "Gemm": _product,
    "Greater": _pair("Greater"),
    "GreaterOrEqual": _pair("GreaterEqual"),
    "Less": _pair("Less"),
    "HardSwish": _same("HSwish"),
    "LeakyRelu": _slope,
    "LSTMSequence": _recurrent("LSTMSequence"),
    "LessOrEqual": _pair("LessEqual"),
    "LogSoftmax": _renamed("LogSoftmax", axis="axis"),
    "MatMul": _same("MatMul", transpose_a=False, transpose_b=False),
    "Max": _pair("Maximum"),
    "MaxPool": _pool("MaxPool"),
    "Min": _pair("Minimum"),
    "Mul": _pair("Multiply"),
    "Neg": _same("Negative"),
    "NonMaxSuppression": _suppression,
    "NonZero": _same("NonZero", output_type="i64"),
    "Not": _same("LogicalNot"),
    "Or": _pair("LogicalOr"),
    "Pad": _pad,
    "PRelu": _same("PRelu"),
    "Pow": _pair("Power"),
    "Reciprocal": _reciprocal,
    "RNNSequence": _recurrent("RNNSequence"),
    "ReduceAll": _reduced("ReduceLogicalAnd"),
    "ReduceAny": _reduced("ReduceLogicalOr"),
    "Relu": _same("ReLU"),
    "Reshape": _reshape,
    "Resize": _resize,
    "ReverseSequence": _renamed("ReverseSequence", batch_axis="batch_axis", seq_axis="time_axis"),
    "Round": _same("Round", mode="half_to_even"),
    "ScatterND": _scatter,
    "Shape": _same("ShapeOf", output_type="i64"),
    "Slice": _slice,
    "Softmax": _renamed("SoftMax", axis="axis"),
    "SpaceToDepth": lambda e, i, r, g: e.layer("SpaceToDepth", i, r, block_size=g["blocksize"], mode="blocks_first"),
    "Split": _split,
    "Sub": _pair("Subtract"),
    "TopK": _topk,
    "Transpose": _transpose,
    "Where": _pair("Select"),
    "Xor": _pair("LogicalXor"),
}
