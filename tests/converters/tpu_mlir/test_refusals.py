"""What BM1684X cannot take: one line with the layer, what was found and the way out; nothing is written."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.converters.tpu_mlir.networks import FLOAT, IMAGE, WINDOW, binary, quantized, ranged, run, unary
from tests.support.command import tflq
from tests.support.data import data_path
from tests.support.float_networks import built
from tests.support.tracked import ROOT
from tflq.cli import main
from tflq.converters.tpu_mlir.check import problems_of
from tflq.errors import FormatError, InputError, OptionError, TflqError, UnsupportedError
from tflq.graph import DType, Graph, GraphBuilder
from tflq.interpreter import lower

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
ONE = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}


def refused(graph: Graph, *sets: str, layers: tuple[str, ...] = (), kind: type[TflqError] = UnsupportedError) -> str:
    with pytest.raises(kind) as caught:
        lower(quantized(graph, sets, layers), "tpu_mlir")
    message = str(caught.value)
    assert "\n" not in message
    return message


def convolution(weights: np.ndarray, bias: np.ndarray, **ranges: tuple[float, float]) -> Graph:
    constants = (weights.reshape(2, 1, 1, 2).astype(np.float32), bias.astype(np.float32))
    return unary("conv_2d", {**ONE, **ranges}, *constants, **WINDOW)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_weights_that_are_not_finite(bad: float) -> None:
    message = refused(convolution(np.array([1, bad, 0.3, 2]), np.zeros(2)))
    assert message.startswith("operator 0 (conv_2d 'CONV_2D_0_0'): 1 weights are infinite or not a number")
    assert "1 biases are infinite" in refused(convolution(np.ones(4), np.array([bad, 0])))


def test_plain_integers_that_are_moved() -> None:
    b = GraphBuilder("moved")
    x, order = b.input("x", (1, 2, 3), DType.INT32), b.constant("order", np.array([0, 2, 1], np.int32))
    message = refused(b.build([b.add("transpose", [x, order], (1, 3, 2), DType.INT32)]))
    assert message.startswith("operator 0 (transpose 'TRANSPOSE_0_0'): ")
    assert "reads 'x', plain int32" in message


def test_truth_values_that_are_moved() -> None:
    b = GraphBuilder("moved")
    x, shape = b.input("x", (1, 2, 3), DType.BOOL), b.constant("shape", np.array([1, 6], np.int32))
    message = refused(b.build([b.add("reshape", [x, shape], (1, 6), DType.BOOL)]))
    assert "it reads 'x', truth values; only LOGICAL_AND of two and SELECT do" in message


def test_products_that_cannot_be_negative() -> None:
    """A range below 0 on such a product is not written into the table; one that a sum gives it ends TPU-MLIR."""
    ranges = {"a": (0.0, 1.0), "b": (0.0, 2.0), "y": (-1.5, 1.0)}
    graph = lower(quantized(binary("mul", ranges)), "tpu_mlir")
    product = next(t for t in graph.tensors if t.name == "y_Mul")
    assert not product.affine.signed
    assert np.isclose(product.affine.scale[0], 1 / 255)
    b = GraphBuilder("joined")
    x, y = (b.input(name, IMAGE, FLOAT) for name in ("a", "b"))
    z = b.add("mul", [x, y], IMAGE, FLOAT)
    least = b.add("minimum", [z, b.input("c", IMAGE, FLOAT)], IMAGE, FLOAT)
    graph = b.build([least])
    names = {"a": (0.0, 1.0), "b": (0.0, 2.0), "c": (-1.5, 1.0)}
    names |= {graph.tensors[z].name: (0.0, 2.0), graph.tensors[least].name: (-1.5, 1.0)}
    assert "has a range below 0, at which TPU-MLIR ends" in refused(ranged(graph, names))
    quantized(ranged(graph, names), layers=("0:mode=F16",))


def test_weights_of_zero() -> None:
    assert np.all(
        run(quantized(convolution(np.zeros(4), np.zeros(2))), [np.ones((1, *IMAGE), np.float32)])["y_Conv"] == 0
    )
    constants = (np.zeros((3, 32), np.float32),)
    graph = unary("fully_connected", ONE, *constants)
    assert "all weights are 0" in refused(graph)


@pytest.mark.parametrize("mode", ["true", "false"])
def test_ranges_without_a_scale(mode: str) -> None:
    for low in (-np.inf, np.nan):
        message = refused(convolution(np.ones(4), np.zeros(2), y=(low, 1.0)), f"asymmetric={mode}")
        assert "tensor 'y' has the range " in message
        assert "no scale above 0" in message


def test_ranges_that_do_not_hold_zero_are_widened() -> None:
    for high in (-1.0, -2.0):
        graph = quantized(convolution(np.ones(4), np.zeros(2), y=(-2.0, high)), ["asymmetric=true"])
        (y,) = (t for t in graph.tensors if t.name == "y_Conv")
        assert (float(y.affine.scale[0]), int(y.affine.zero_point[0])) == (2 / 255, 127)


def test_missing_ranges() -> None:
    graph = binary("add", {"a": (-1, 1)})
    assert "2 tensors have no range: 'b', 'y'; calibrate the model" in refused(graph)


def test_three_of_the_tensors_without_a_range_are_named() -> None:
    b = GraphBuilder("chain")
    t = b.input("x", (1, 4), DType.FLOAT32)
    for _ in range(3):  # a logistic has a type of its own
        t = b.add("logistic", [b.add("exp", [t], (1, 4), DType.FLOAT32)], (1, 4), DType.FLOAT32)
    assert "4 tensors have no range: 'x', 'exp_0', 'exp_2' and 1 more; calibrate" in refused(b.build([t]))


def test_means_of_images_are_pools_and_others_float16() -> None:
    for axes, kind in (([1, 2], "INT8"), ([2, 1], "INT8"), ([-3, -2], "INT8"), ([1], "F16"), ([2, 3], "F16")):
        graph = quantized(unary("mean", ONE, np.array(axes, np.int32), keep_dims=True))
        (node,) = (n for n in graph.nodes if n.operator == "mean")
        assert node.attributes.text("engine") == kind


def test_a_bias_is_an_int32_of_32_bits() -> None:
    graph = quantized(convolution(np.array([1, -1, 0.3, 2]), np.array([0.1, 0.2])))
    (bias,) = (t for t in graph.tensors if t.name.endswith("_bias"))
    assert (bias.dtype, bias.affine.bits, bias.affine.signed) == (DType.INT32, 32, True)
    real = bias.data * bias.affine.scale
    assert np.all(np.abs(real - [0.1, 0.2]) <= bias.affine.scale / 2)


def test_a_bias_beyond_32_bits() -> None:
    assert "channel 1: the bias becomes 5" in refused(convolution(np.full(4, 0.3), np.array([0, 1e9])))


def test_ratios_without_a_multiplier() -> None:
    message = refused(convolution(np.full(4, 0.3), np.zeros(2), y=(-1e-12, 1e-12)))
    assert "operator 1 (conv_2d 'CONV_2D_0_0')" in message
    assert "bring the ranges of input, weights and output closer together" in message


def test_fused_activations() -> None:
    assert "fused activation tanh" in refused(binary("add", {}, "tanh"))


def test_a_minimum_of_one_element() -> None:
    """TPU-MLIR compares a number with the quantized value; a number beyond all quantized values is not refused."""
    for number, is_refused in ((0.5, True), (254.0, True), (255.0, False), (1e12, False)):
        b = GraphBuilder("least")
        x = b.input("x", (1, 1), FLOAT)
        y = b.add("minimum", [x, b.constant("number", np.float32(number))], (1, 1), FLOAT)
        graph = ranged(b.build([y]), {"x": (0.0, 3.0), "minimum_0": (0.0, 3.0)})
        if is_refused:
            assert f"the minimum of one element and {number:g}" in refused(graph)
        else:
            assert np.array_equal(
                run(quantized(graph), [np.array([[[2.0]]], np.float32)])["minimum_0_Min"].ravel(), [170]
            )


@pytest.mark.parametrize("operator", ["relu", "relu6"])
def test_rectifiers_behind_a_concatenation(operator: str) -> None:
    """They go in front of it, as TPU-MLIR has them; where others read the concatenation, too, they are refused."""
    for is_shared in (False, True):
        b = GraphBuilder("concat")
        x = b.input("x", IMAGE, FLOAT)
        joined = b.add("concatenation", [x, x], (1, 4, 4, 4), FLOAT, axis=3)
        y = b.add(operator, [joined], (1, 4, 4, 4), FLOAT)
        names = {"x": (-1, 2), "concatenation_0": (-1, 2), f"{operator}_1": (0, 2)}
        graph = ranged(b.build([y, joined] if is_shared else [y]), names)
        if is_shared:
            message = refused(graph)
            assert "it follows a concatenation" in message
            assert "put it in front" in message
        else:
            nodes = [n.operator for n in quantized(graph).nodes]
            assert nodes.index("concatenation") > nodes.index(operator)


def test_slopes() -> None:
    assert "a slope is not finite" in refused(unary("prelu", ONE, np.float32([0.5, np.inf])))
    assert "alpha is -0.5; slopes from 0 are known" in refused(unary("leaky_relu", ONE, alpha=-0.5))


@pytest.mark.parametrize(("largest", "is_taken"), [(127.9, True), (128.0, False), (2.0**-25, True), (2.0**-26, False)])
def test_slopes_beyond_8_bits_and_a_shift(largest: float, is_taken: bool) -> None:
    graph = unary("prelu", ONE, np.float32([-largest, largest / 2]))
    if is_taken:
        lower(quantized(graph), "tpu_mlir")
    else:
        assert "the largest slope is" in refused(graph)


def test_strides_of_pools() -> None:
    b = GraphBuilder("pool")
    x = b.input("x", (1, 40, 40, 1), FLOAT)
    options = {"filter_height": 2, "filter_width": 2, "padding": "valid", "stride_h": 16, "stride_w": 1}
    y = b.add("average_pool_2d", [x], (1, 3, 39, 1), FLOAT, **options)
    assert "a stride of 16; TPU-MLIR's code generation takes up to 15" in refused(b.build([y]))


def test_all_unknown_operators_at_once() -> None:
    b = GraphBuilder("odd")
    x = b.input("x", (1, 4), FLOAT)
    y = b.add("lgamma", [b.add("tanh", [b.add("erfc", [x], (1, 4), FLOAT)], (1, 4), FLOAT)], (1, 4), FLOAT)
    message = refused(b.build([y]))
    assert "operator 0 (erfc 'ERFC_0_0'): no mapping to BM1684X" in message
    assert "operator 2 (lgamma 'LGAMMA_0_2')" in message


def test_layers_that_do_not_exist() -> None:
    assert "matches no operator" in refused(unary("tanh", ONE), layers=("9:mode=F16",), kind=OptionError)


def test_modes_of_fused_rectifiers() -> None:
    b = GraphBuilder("sum")
    x = b.input("x", IMAGE, FLOAT)
    y = b.add("relu", [b.add("add", [x, x], IMAGE, FLOAT)], IMAGE, FLOAT)
    graph = ranged(b.build([y]), {"x": (-1, 1), "relu_1": (0, 2)})
    message = refused(graph, layers=("relu:mode=F16",), kind=OptionError)
    assert "mode=F16, but it is fused into ADD_0_0, which has mode=INT8" in message
    assert quantized(graph, [], ["*:mode=F16"])


def test_without_the_package_onnx(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    for target in ("tpu-mlir", "onnx"):
        assert main(["convert", str(DIGITS), "-t", target, "-o", str(tmp_path / "out")]) == 2
        assert "pip install 'tflq[onnx]'" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []
    assert main(["demo"]) == 0
    assert re.search(r"^tpu-mlir .* not compared$", capsys.readouterr().out, re.MULTILINE)


def test_tables_that_cannot_be_used(tmp_path: Path) -> None:
    graph = unary("tanh", ONE)
    table = tmp_path / "table"
    assert "cannot be read" in refused(graph, f"calibration_table={table}", kind=InputError)
    table.write_bytes(b"\xff\xfe\x00")
    assert "is no text" in refused(graph, f"calibration_table={table}", kind=FormatError)
    table.write_text("x 1 -1 1\n")
    assert "1 tensors have no range: 'y'" in refused(graph, f"calibration_table={table}")


@pytest.mark.parametrize(
    ("text", "message"),
    [("nobody 1 -1 1\n", "table: names no tensor of the network; it has"), ("# c\nx 1 -1\n", "line 2: found 3 fields")],
)
def test_the_command_writes_nothing_for_a_wrong_table(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "table").write_text(text)
    arguments = ("-t", "tpu-mlir", "-s", "calibration_table=table", "-o", "out")
    assert message in tflq("convert", DIGITS, *arguments, cwd=tmp_path).refused()
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


def test_a_tensor_that_is_always_zero_has_the_least_threshold() -> None:
    graph = quantized(convolution(np.ones(4), np.zeros(2), y=(0.0, 0.0)))
    (y,) = (t for t in graph.tensors if t.name == "y_Conv")
    assert (y.dtype, float(y.affine.scale[0])) == (DType.UINT8, 1e-5 / 255)


def test_the_command_refuses_a_float_model_without_calibration(tmp_path: Path) -> None:
    model = data_path("models", "kws_ref_model_float32.tflite")
    line = tflq("convert", model, "-t", "tpu-mlir", "-o", "out", cwd=tmp_path).refused()
    assert "tensors have no range" in line
    assert list(tmp_path.iterdir()) == []


def test_ranges_of_one_tensor_only() -> None:
    graph = ranged(binary("mul", {}), {"a": (-1, 1), "b": (-1, 1), "y": (-1, 1)})
    assert quantized(graph, ["asymmetric=true"])


@pytest.mark.parametrize("is_scaled", [False, True])
@pytest.mark.parametrize("is_biased_behind", [False, True])
def test_heads_of_attention_that_are_one_layer(is_biased_behind: bool, is_scaled: bool) -> None:
    """TPU-MLIR's simulator ends there; with the biases behind the reshapes it keeps the layers."""
    rng = np.random.default_rng(8)
    b = GraphBuilder("heads")
    x = b.input("x", (4, 6), FLOAT)
    found = []
    for name in "qk":
        weights = b.constant(f"w{name}", rng.standard_normal((6, 6)).astype(np.float32))
        bias = b.constant(name, np.ones(6, np.float32))
        given = [x, weights, -1 if is_biased_behind else bias]
        t = b.add("fully_connected", given, (4, 6), FLOAT, fused_activation_function="none")
        t = b.add("reshape", [t, b.constant(f"s{name}", np.array([1, 4, 2, 3], np.int32))], (1, 4, 2, 3), FLOAT)
        if is_biased_behind:
            ones = b.constant(f"b{name}", rng.standard_normal((2, 3)).astype(np.float32))
            t = b.add("add", [t, ones], (1, 4, 2, 3), FLOAT, fused_activation_function="none")
        order = np.array([0, 2, 1, 3], np.int32)
        found.append(b.add("transpose", [t, b.constant(f"o{name}", order)], (1, 2, 4, 3), FLOAT))
    scores = b.add("batch_matmul", found, (1, 2, 4, 4), FLOAT, adj_x=False, adj_y=True)
    if is_scaled:
        root = b.constant("root", np.array(0.5, np.float32))
        scores = b.add("mul", [root, scores], (1, 2, 4, 4), FLOAT, fused_activation_function="none")
    y = b.add("softmax", [scores], (1, 2, 4, 4), FLOAT, beta=1.0)
    problems = "; ".join(problems_of(b.build([y])))
    assert ("attention of several heads" in problems) is not is_biased_behind


@pytest.mark.parametrize(
    ("name", "mode", "words", "ways"),
    [
        ("softsign", "F16", "(softsign '", "mode=INT8, or keep"),
        ("softsign", "F32", "(softsign '", "mode=INT8, or keep"),
        ("normalized, gamma True, beta True", "F32", "(layer_normalization '", "mode=INT8 or F16, or keep"),
    ],
)
def test_layers_without_a_rule_in_reals(name: str, mode: str, words: str, ways: str) -> None:
    message = refused(built(name)[0], layers=(f"*:mode={mode}",))
    assert message.startswith("operator ")
    assert words in message
    assert f"mode={mode}, in which its rule in TPU-MLIR is not known; give it {ways} it outside" in message
