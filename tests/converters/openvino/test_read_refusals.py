"""What no rule of the reader takes, each beside a neighbor that it takes: words that name what is there."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tflq.converters.openvino.ir import Builder, Layer, Source, Value
from tflq.converters.openvino.ir.files import network_to_bytes
from tflq.converters.openvino.reader import model_from_bytes
from tflq.errors import FormatError, TflqError, UnsupportedError
from tflq.graph import Array

Given = tuple[int, ...] | Array
WINDOW = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "auto_pad": "explicit"}
AXES = {"axis": "1"}


def whole(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def reals(*shape: int) -> Array:
    return np.ones(shape, np.float32)


def files(
    kind: str, given: list[Given], shape: tuple[int, ...], result: str = "f32", **data: str
) -> tuple[bytes, bytes]:
    """Return an IR of one layer; shapes are inputs of the network, arrays constants."""
    b, values = Builder("one"), list[Value]()
    for i, each in enumerate(given):
        values.append(b.constant(f"c{i}", each) if isinstance(each, np.ndarray) else b.parameter(f"x{i}", each))
    b.result("y", b.add(kind, "layer", values, shape, result, **{k.replace("_of_", "-"): v for k, v in data.items()}))
    return network_to_bytes(b.build())


X2, X4 = (3, 4), (1, 3, 5, 4)
TAKEN: dict[str, tuple[str, list[Given], tuple[int, ...], dict[str, str]]] = {
    "relu": ("ReLU", [X2], X2, {}),
    "softmax of rows": ("SoftMax", [X2], X2, {"axis": "1"}),
    "softmax of rows from behind": ("SoftMax", [X2], X2, {"axis": "-1"}),
    "softmax of images": ("SoftMax", [X4], X4, {"axis": "1"}),
    "softmax of images from behind": ("SoftMax", [X4], X4, {"axis": "-3"}),
    "softmax as it is": ("SoftMax", [X4], X4, {}),
    "clamp": ("Clamp", [X2], X2, {"min": "0", "max": "6"}),
    "elu": ("Elu", [X2], X2, {"alpha": "1"}),
    "reshape": ("Reshape", [X2, whole(4, 3)], (4, 3), {"special_zero": "false"}),
    "transpose": ("Transpose", [X2, whole(1, 0)], (4, 3), {}),
    "pad": ("Pad", [X2, whole(0, 1), whole(0, 0)], (3, 5), {"pad_mode": "constant"}),
    "product": ("MatMul", [X2, reals(4, 5)], (3, 5), {"transpose_a": "false", "transpose_b": "false"}),
    "product as it is": ("MatMul", [X2, reals(4, 5)], (3, 5), {}),
    "sum": ("Add", [X2, X2], X2, {"auto_broadcast": "numpy"}),
    "sum with a row": ("Add", [X4, reals(4)], X4, {"auto_broadcast": "numpy"}),
    "filter": ("Convolution", [X4, reals(2, 3, 1, 1)], (1, 2, 5, 4), WINDOW),
    "groups": ("GroupConvolution", [X4, reals(3, 1, 1, 1, 1)], X4, WINDOW),
    "concatenation": ("Concat", [X2, X2], (3, 8), AXES),
    "mean": ("ReduceMean", [X2, whole(1)], (3,), {"keep_dims": "false"}),
    "mean from behind": ("ReduceMean", [X2, whole(-1)], (3,), {"keep_dims": "false"}),
    "slopes": ("PRelu", [X2, reals(4)], X2, {}),
    "levels": ("FakeQuantize", [X2, *(np.float32([[v]]) for v in (0, 1, 0, 1))], X2, {"levels": "256"}),
    "levels of channels": (
        "FakeQuantize", [X2, *(np.full((1, 4), v, np.float32) for v in (0, 1, 0, 1))], X2, {"levels": "256"}),
}  # fmt: skip
Change = tuple[str, type[TflqError], str, dict[str, object]]
REFUSED: list[Change] = [
    ("relu", UnsupportedError, "layers of this type are not read; known are Abs, Add, ", {"kind": "Erf"}),
    ("relu", FormatError, "it has no inputs", {"given": []}),
    ("softmax of rows", UnsupportedError, "axis 0 of 2; the channels' one is read", {"axis": "0"}),
    ("softmax of images", UnsupportedError, "axis 3 of 4; the channels' one is read", {"axis": "-1"}),
    ("softmax of images", UnsupportedError, "axis 2 of 4; the channels' one is read", {"axis": "2"}),
    ("clamp", UnsupportedError, "a clamp to 0..7; read are relu6, relu_n1_to_1, relu_0_to_1", {"max": "7"}),
    ("clamp", UnsupportedError, "a clamp to -1..6; read are", {"min": "-1"}),
    ("clamp", FormatError, "attribute 'max' is missing", {"max": None}),
    ("elu", UnsupportedError, "alpha 0.5; 1 is read", {"alpha": "0.5"}),
    ("elu", FormatError, "attribute 'alpha' is missing", {"alpha": None}),
    ("reshape", FormatError, "(3, 4) has no shape (4, 4)", {"shape": (4, 4)}),
    ("filter", FormatError, "it has too few inputs (1) or axes", {"given": [X4]}),
    ("transpose", FormatError, "order (0, 0) for 2 axes", {"given": [X2, whole(0, 0)]}),
    ("transpose", FormatError, "order (1, 0) for 4 axes", {"given": [X4, whole(1, 0)], "shape": X4}),
    ("transpose", FormatError, "order (1, 2) for 2 axes", {"given": [X2, whole(1, 2)]}),
    ("transpose", UnsupportedError, "'x1' is computed at run time; a constant is needed", {"given": [X2, (2,)]}),
    ("pad", UnsupportedError, "pad_mode reflect; constant is read", {"pad_mode": "reflect"}),
    ("pad", UnsupportedError, "pad_mode ; constant is read", {"pad_mode": None}),
    ("product", UnsupportedError, "a product of two computed values, or of transposed ones; constant weights are read",
     {"transpose_a": "true", "given": [(4, 3), reals(4, 5)]}),
    ("product", UnsupportedError, "a product of two computed values", {"given": [X2, (4, 5)]}),
    ("product", UnsupportedError, "a product of two computed values", {"given": [(2, 3, 4), reals(2, 4, 5)],
                                                                       "shape": (2, 3, 5)}),
    ("sum", UnsupportedError, "inputs of 1 and 2 axes; computed ones need as many", {"given": [X2, (4,)]}),
    ("sum", UnsupportedError, "inputs of 2 and 4 axes; computed ones need as many",
     {"given": [X4, (5, 4)], "shape": X4}),
    ("filter", UnsupportedError, "weights of 3 axes; convolutions of images are read", {"given": [X4, reals(2, 3, 1)]}),
    ("filter", UnsupportedError, "weights of 5 axes; convolutions of images are read",
     {"given": [X4, reals(2, 3, 1, 1, 1)]}),
    ("groups", UnsupportedError, "weights of 4 axes; convolutions of images are read",
     {"given": [X4, reals(3, 1, 1, 1)]}),
    ("filter", UnsupportedError, "'x1' is computed at run time; a constant is needed", {"given": [X4, (2, 3, 1, 1)]}),
    ("concatenation", FormatError, "attribute 'axis' is missing", {"axis": None}),
    ("levels", FormatError, "it has 4 inputs; 5 are needed", {"given": [X2, *(np.float32([[v]]) for v in (0, 1, 0))]}),
    ("levels", FormatError, "levels is '2.5'; a whole number of at least 2 is allowed", {"levels": "2.5"}),
    ("levels", FormatError, "levels is '-4'; a whole number of at least 2 is allowed", {"levels": "-4"}),
    ("levels of channels", UnsupportedError, "bounds of shape (1, 3); one number, or one for each channel, is read",
     {"given": [X2, *(np.full((1, 3), v, np.float32) for v in (0, 1, 0, 1))]}),
    ("levels of channels", UnsupportedError, "bounds of shape (3, 1); one number, or one for each channel, is read",
     {"given": [X2, *(np.full((3, 1), v, np.float32) for v in (0, 1, 0, 1))]}),
    ("levels of channels", UnsupportedError, "bounds of shape (1, 1, 4); one number, or one for each channel, is read",
     {"given": [X2, *(np.full((1, 1, 4), v, np.float32) for v in (0, 1, 0, 1))]}),
]  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_taken(name: str) -> None:
    kind, given, shape, data = TAKEN[name]
    graph = model_from_bytes(*files(kind, given, shape, **data), "one.xml").main
    assert [graph.tensors[t].shape for t in graph.outputs] == [shape]


@pytest.mark.parametrize(("name", "error", "words", "changed"), REFUSED)
def test_what_is_refused(name: str, error: type[TflqError], words: str, changed: dict[str, object]) -> None:
    kind, given, shape, data = TAKEN[name]
    whole_row: dict[str, object] = {"kind": kind, "given": given, "shape": shape, **data, **changed}
    stated = {key: value for key, value in whole_row.items() if value is not None}
    content = files(**stated)  # type: ignore[arg-type]
    place = rf"line \d+(: |, )layer 'layer' \({stated['kind']}\): "
    with pytest.raises(error, match=f"^one.xml(, |: ){place}{re.escape(words)}"):
        model_from_bytes(*content, "one.xml")


def test_all_layers_that_are_not_read_at_once() -> None:
    """What stands behind one of them is not judged."""
    b = Builder("several")
    x = b.parameter("x", X2)
    first = b.add("Erf", "first", [x], X2)
    behind = b.add("Sin", "behind", [first], X2)
    b.result("y", b.add("Cos", "second", [x], X2))
    b.result("z", behind)
    with pytest.raises(UnsupportedError) as caught:
        model_from_bytes(*network_to_bytes(b.build()), "several.xml")
    assert re.findall(r"layer '(\w+)'", str(caught.value)) == ["first", "second"]


@pytest.mark.parametrize("count", [1, 2])
def test_layers_of_several_outputs(count: int) -> None:
    b = Builder("several")
    made = b.add_several("ReLU", "layer", [b.parameter("x", X2)], [(X2, "f32")] * count, {})
    b.result("y", made[0])
    content = network_to_bytes(b.build())
    if count == 1:
        assert model_from_bytes(*content, "several.xml").main.outputs
    else:
        with pytest.raises(UnsupportedError, match="it has 2 outputs; layers with 1 are read"):
            model_from_bytes(*content, "several.xml")


@pytest.mark.parametrize(("kind", "is_taken"), [("f32", True), ("i8", True), ("u8", True), ("i32", True), ("i64", True),
                                                ("f16", False), ("boolean", False)])  # fmt: skip
def test_types_of_inputs(kind: str, is_taken: bool) -> None:
    b = Builder("types")
    x = b.parameter("x", X2, kind)
    b.result("y", b.add("Reshape", "layer", [x, b.constant("s", whole(4, 3))], (4, 3), kind, special_zero="false"))
    content = network_to_bytes(b.build())
    if is_taken:
        assert model_from_bytes(*content, "types.xml").main.inputs
    else:
        with pytest.raises(UnsupportedError, match=f"values of {kind}; read are f32, i8, u8, i32, i64$"):
            model_from_bytes(*content, "types.xml")


@pytest.mark.parametrize("scale", [(0.5,), (0.5, 0.25), (0.5, 0.25, 1)])
@pytest.mark.parametrize("bad", [None, 0.0, -1.0, np.inf, np.nan])
def test_scales_of_compressed_weights(scale: tuple[float, ...], bad: float | None) -> None:
    values = np.array(scale if bad is None else (*scale[:-1], bad), np.float32).reshape(-1, 1)
    b = Builder("scales")
    w = b.add("Convert", "real", [b.constant("w", np.ones((2, 3), np.int8))], (2, 3), destination_type="f32")
    w = b.add("Multiply", "scaled", [w, b.constant("s", values)], (2, 3), auto_broadcast="numpy")
    product = b.add("MatMul", "product", [b.parameter("x", (1, 3)), w], (1, 2), transpose_a="false", transpose_b="true")
    b.result("y", product)
    content = network_to_bytes(b.build())
    if len(scale) == 3:
        with pytest.raises(UnsupportedError, match=r"scales of shape \(3, 1\); one, or one a channel \(2\), is read"):
            model_from_bytes(*content, "scales.xml")
    elif bad is None:
        graph = model_from_bytes(*content, "scales.xml").main
        (affine,) = (t.affine for t in graph.tensors if t.quantization is not None)
        assert affine.scale.tolist() == list(scale)
        assert affine.axis == (0 if len(scale) > 1 else None)
    else:
        with pytest.raises(FormatError, match=f"weights have scale {bad}; scales are positive and finite"):
            model_from_bytes(*content, "scales.xml")


def test_a_layer_that_names_what_is_not_there() -> None:
    """A constant of no layer in front stays an error of the file, not of Python."""
    b = Builder("odd")
    b.result("y", b.add("ReLU", "layer", [b.parameter("x", X2)], X2))
    network = b.build()
    layers = [replace(one, sources=(Source(0), Source(0))) if one.type == "ReLU" else one for one in network.layers]
    assert all(isinstance(one, Layer) for one in layers)
    with pytest.raises(TflqError, match="layer 'layer'"):
        model_from_bytes(*network_to_bytes(replace(network, layers=tuple(layers))), "odd.xml")
