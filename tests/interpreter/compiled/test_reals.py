"""Real numbers in compiled C: QUANTIZE on both sides of each threshold, DEQUANTIZE, sums that become real, ADD."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.support import c_compiler
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder
from tflq.interpreter import Engine
from tflq.interpreter.compiled.reals import ByLine, ByThresholds, by_thresholds
from tflq.interpreter.layers.reals import RealLine
from tflq.interpreter.registry import kernel

SHAPES = ((1, 5, 3, 1), (1, 2, 9, 4), (1, 1, 1, 40), (37,))


def quantizer(seed: int) -> Graph:
    """A QUANTIZE, of an image or not."""
    rng = np.random.default_rng(seed)
    shape, dtype = SHAPES[seed % len(SHAPES)], (DType.INT8, DType.UINT8)[seed // 4 % 2]
    scale = np.float32(2.0 ** rng.integers(-6, 3) if seed % 3 else 2.0 ** rng.uniform(-12, 6))
    zero_point = int(rng.integers(dtype.minimum, dtype.maximum + 1))
    builder = GraphBuilder("quantizer")
    x = builder.input("x", shape, DType.FLOAT32)
    affine = Affine.per_tensor(scale, zero_point, 8, dtype.is_signed)
    return builder.build([builder.add("quantize", [x], shape, dtype, affine)])


def numbers(graph: Graph, seed: int) -> Array:
    """Any float32 numbers: ties and their neighbors, any bits, infinities, NaN."""
    rng, affine = np.random.default_rng(seed), graph.tensors[graph.outputs[0]].affine
    size = int(np.prod(graph.tensors[graph.inputs[0]].shape))
    ties = ((np.arange(-300, 300) / 2) * np.float64(affine.scale[0])).astype(np.float32)
    beside = [np.nextafter(ties, np.float32(end)) for end in (-np.inf, np.inf)]
    bits = rng.integers(0, 1 << 32, 2000, np.uint32).view(np.float32)
    every = np.concatenate([ties, *beside, bits, np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan], np.float32)])
    every = every[rng.permutation(every.size)]
    return np.resize(every, (-(-every.size // size), *graph.tensors[graph.inputs[0]].shape))


@pytest.mark.parametrize("arithmetic", ["tpu_mlir", "openvino"])
@pytest.mark.parametrize("seed", range(12))
def test_compiled_results_are_the_kernels(arithmetic: str, seed: int) -> None:
    c_compiler.compiler()
    graph = quantizer(seed - seed // 4 % 2 * 4 if arithmetic == "openvino" else seed)  # its integers are signed
    plain = Engine(graph, arithmetic)
    compiled = Engine(graph, arithmetic, backend="c")
    x, (y,) = numbers(graph, seed), graph.outputs
    assert np.array_equal(compiled.run([x])[y], plain.run([x])[y])
    assert not compiled.in_numpy()


def rounded(x: np.ndarray, scale: float, offset: float) -> np.ndarray:
    return np.clip(np.rint(np.nan_to_num(x.astype(np.float64) * scale, nan=0.0) + offset), 0, 255).astype(np.int64)


@pytest.mark.parametrize(
    ("rule", "is_found"),
    [
        (lambda x: (x > 0).astype(np.int64), False),  # one step: no line goes through it alone
        (lambda x: np.where(x > 0, 255, 0), False),
        (lambda x: rounded(x, 1e30, 7), True),
        (lambda x: rounded(x, 1e-37, 200), False),  # thresholds beyond float32
        (lambda x: rounded(x, 1.0, -1e4), True),
    ],
)
def test_rules_of_few_or_far_thresholds(rule: Callable[[np.ndarray], np.ndarray], is_found: bool) -> None:
    found = by_thresholds(rule)
    assert (found is not None) == is_found
    x = np.random.default_rng(5).integers(0, 1 << 32, 20000, np.uint32).view(np.float32)
    x = x[~np.isnan(x)]
    if found is not None:
        assert np.array_equal(found.of(x), rule(x))


def test_a_rule_whose_steps_are_no_line_is_refused() -> None:
    def square(x: np.ndarray) -> np.ndarray:
        return rounded(np.sign(x) * x.astype(np.float64) ** 2, 0.02, 90)

    assert by_thresholds(square) is None


def test_a_line_is_believed_only_where_it_is_the_rule() -> None:
    def rule(x: np.ndarray) -> np.ndarray:
        return np.clip(np.rint(np.nan_to_num(x * np.float32(0.1), nan=0.0)), -128, 127).astype(np.int64) + 128

    right = RealLine(np.float32(0.1).item(), 0.0, 128, is_away=False)
    assert isinstance(by_thresholds(rule, right), ByLine)
    next_scale = np.nextafter(np.float32(0.1), np.float32(1)).item()
    for change in ({"is_away": True}, {"offset": 1e-7}, {"zero": 127}, {"scale": next_scale}):
        assert isinstance(by_thresholds(rule, replace(right, **change)), ByThresholds), change


@pytest.mark.parametrize("arithmetic", ["tpu_mlir", "openvino"])
@pytest.mark.parametrize("seed", range(6))
def test_lines_that_params_name_are_found(arithmetic: str, seed: int) -> None:
    graph = Engine(quantizer(seed % 4), arithmetic).graph
    (node,) = graph.nodes
    y = graph.tensors[graph.outputs[0]]
    quantize = kernel(arithmetic, "quantize")

    def rule(x: np.ndarray) -> np.ndarray:
        return np.asarray(quantize.run(node.params, x)[0].astype(np.int64) - y.dtype.minimum)

    line = node.params.line
    assert isinstance(by_thresholds(rule, replace(line, zero=line.zero - y.dtype.minimum)), ByLine)


@pytest.mark.parametrize("arithmetic", ["tflite", "tpu_mlir", "openvino"])
@pytest.mark.parametrize("seed", range(4))
def test_real_numbers_of_every_quantized_value(arithmetic: str, seed: int) -> None:
    c_compiler.compiler()
    rng = np.random.default_rng(seed)
    builder, shape = GraphBuilder("dequantizer"), SHAPES[seed]
    affine = Affine.per_tensor(np.float32(2.0 ** rng.uniform(-9, 3)), int(rng.integers(-128, 128)), 8, True)
    x = builder.input("x", shape, DType.INT8, affine)
    graph = builder.build([builder.add("dequantize", [x], shape, DType.FLOAT32)])
    plain, compiled = Engine(graph, arithmetic), Engine(graph, arithmetic, backend="c")
    values = np.resize(np.arange(-128, 128, dtype=np.int8), (-(-256 // int(np.prod(shape))), *shape))
    (y,) = graph.outputs
    assert np.array_equal(compiled.run([values])[y].view(np.int32), plain.run([values])[y].view(np.int32))
    assert not compiled.in_numpy()


@pytest.mark.parametrize("seed", range(24))
def test_sums_that_become_real_numbers_and_are_added_to(seed: int) -> None:
    """A convolution or product whose output is real, plain or clamped, then ADD of it and quantized values."""
    c_compiler.compiler()
    rng = np.random.default_rng(seed)
    height, width, inputs, outputs = (int(n) for n in rng.integers((1, 1, 1, 1), (9, 9, 9, 70)))

    def affine(low: float, high: float) -> Affine:
        return Affine.per_tensor(np.float32(2.0 ** rng.uniform(low, high)), int(rng.integers(-128, 128)), 8, True)

    builder = GraphBuilder("reals")
    shape, side = (1, height, width, outputs), int(rng.integers(1, 4))
    x = builder.input("x", (1, height, width, inputs), DType.INT8, affine(-7, -3))
    other = builder.input("other", shape, DType.INT8, affine(-7, 2))
    scales = (2.0 ** rng.uniform(-9, -5, outputs)).astype(np.float32)
    weights = rng.integers(-127, 128, (outputs, side, side, inputs)).astype(np.int8)
    w = builder.constant("w", weights, Affine(scales, np.zeros(outputs, np.int64), 0, 8, True))
    bias = builder.constant("b", rng.normal(size=outputs).astype(np.float32))
    act = str(rng.choice(["none", "relu", "relu6"]))
    windows = {"stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1, "padding": "same"}
    real = builder.add("conv_2d", [x, w, bias], shape, DType.FLOAT32, fused_activation_function=act, **windows)
    operands = [real, other] if seed % 2 else [other, real]
    act = str(rng.choice(["none", "relu", "relu6"]))
    total = builder.add("add", operands, shape, DType.INT8, affine(-5, -1), fused_activation_function=act)
    graph = builder.build([real, total] if seed % 3 else [total])
    plain, compiled = Engine(graph, "openvino"), Engine(graph, "openvino", backend="c")
    samples = [rng.integers(-128, 128, (40, *graph.tensors[t].shape)).astype(np.int8) for t in graph.inputs]
    expected, found = plain.run(samples), compiled.run(samples)
    for t in graph.outputs:
        assert np.array_equal(found[t], expected[t])
    assert not compiled.in_numpy()


def test_sums_on_halves_go_to_the_even_level() -> None:
    """Every sum of a product 0.5 k and quantized values lies on a whole number or a half of the output's levels."""
    c_compiler.compiler()
    builder = GraphBuilder("ties")
    half, one = Affine.per_tensor(np.float32(0.5), 3, 8, True), Affine.per_tensor(np.float32(1), -5, 8, True)
    x, other = builder.input("x", (1, 256), DType.INT8, half), builder.input("other", (1, 256), DType.INT8, half)
    weights = builder.constant("w", np.eye(256, dtype=np.int8), Affine.per_tensor(np.float32(1), 0, 8, True))
    real = builder.add("fully_connected", [x, weights], (1, 256), DType.FLOAT32, fused_activation_function="none")
    y = builder.add("add", [real, other], (1, 256), DType.INT8, one, fused_activation_function="none")
    graph = builder.build([y])
    plain, compiled = Engine(graph, "openvino"), Engine(graph, "openvino", backend="c")
    values = np.arange(-128, 128, dtype=np.int8)
    samples = [np.tile(values, (256, 1, 1)), np.repeat(values, 256).reshape(256, 1, 256)]
    assert np.array_equal(compiled.run(samples)[y], plain.run(samples)[y])
    assert not compiled.in_numpy()
