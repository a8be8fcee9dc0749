"""The figure of OpenVINO's page: Quantize and Dequantize around linear operators, Requantize between them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from tests.converters.openvino.networks import (
    asymmetric_weights,
    conv,
    depthwise,
    image_network,
    per_channel_range,
    with_ranges,
)
from tests.support.openvino import Runtime, as_model, channels_first, converted
from tests.support.tracked import ROOT
from tflq.converters.openvino import OPENVINO
from tflq.converters.openvino.options import LayerOptions
from tflq.converters.openvino.passes.ranges import nudged
from tflq.converters.openvino.passes.weights import weight_codes
from tflq.converters.openvino.reader import model_from_bytes
from tflq.converters.settings import parse_settings
from tflq.graph import Affine, DType, Graph, GraphBuilder, Model, Tensor, dequantize
from tflq.interpreter import Engine

Strings = list[str]


def quantized(graph: Graph, assignments: Strings | None = None, layers: Strings | None = None) -> Graph:
    return OPENVINO.quantize(graph, parse_settings(OPENVINO.settings, assignments or [], layers or []))


def draw(graph: Graph, count: int = 8) -> np.ndarray:
    return np.random.default_rng(2).normal(size=(count, *graph.tensors[graph.inputs[0]].shape)).astype(np.float32) * 2


def check_against_runtime(
    graph: Graph,
    assignments: Strings | None = None,
    layers: Strings | None = None,
    in_integers: list[bool] | None = None,
) -> None:
    """Compare outputs with the runtime: the share of elements that differ by more than float order is small."""
    model = Model([graph], source="small.tflite")
    engine, xml, weights = converted(model, assignments or [], layers or [])
    runtime = Runtime(xml, weights)
    found = runtime.in_integers()
    assert all(found) if in_integers is None else found == in_integers
    x = draw(graph)
    ours = channels_first(engine.run([x])[engine.graph.outputs[0]])
    theirs = runtime.run_exactly([channels_first(x)])
    assert np.mean(np.abs(ours - theirs) > 1e-5 * np.abs(theirs).max()) <= 0.01


def test_requantize_between_linear_operators() -> None:
    graph = quantized(image_network())
    kinds = [(n.operator, graph.tensors[n.outputs[0]].dtype.value) for n in graph.nodes]
    assert kinds == [
        ("quantize", "int8"),
        ("conv_2d", "int8"),
        ("conv_2d", "float32"),
        ("add", "int8"),
        ("max_pool_2d", "int8"),
        ("reshape", "int8"),
        ("fully_connected", "int8"),
        ("dequantize", "float32"),
        ("softmax", "float32"),
    ]
    assert {n.arithmetic for n in graph.nodes[:-1]} == {"openvino"}
    check_against_runtime(image_network())


def test_codes_at_both_ends() -> None:
    graph = quantized(image_network(), ["input=int8", "output=int8"])
    assert graph.tensors[graph.inputs[0]].dtype is DType.INT8
    assert graph.tensors[graph.outputs[0]].dtype is DType.INT8
    first = graph.tensors[graph.inputs[0]]
    assert OPENVINO.encode(np.zeros(1), first) == first.affine.zero_point


def test_mixed_precision() -> None:
    graph = quantized(image_network(), layers=["0:precision=float"])
    first = graph.nodes[0]
    assert (first.operator, first.attributes.text("engine")) == ("conv_2d", "f32")
    assert graph.tensors[first.inputs[1]].dtype is DType.FLOAT32
    check_against_runtime(image_network(), layers=["0:precision=float"], in_integers=[False, True, True])


@pytest.mark.parametrize("instructions", ["AVX2", "AVX512_CORE_VNNI", "AVX512_CORE_AMX"])
def test_mixed_precision_of_other_processors(instructions: str) -> None:
    """A larger processor computes as a smaller one does; outputs are compared where its sums are exact."""
    pytest.importorskip("openvino", reason="openvino is not installed (tflq[openvino] has it)")
    body = (
        f"import contextlib, pytest\nfrom {__name__} import test_mixed_precision\n"
        "with contextlib.suppress(pytest.skip.Exception):\n    test_mixed_precision()"
    )
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": instructions}
    done = subprocess.run([sys.executable, "-c", body], env=environment, capture_output=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_four_bits_are_sixteen_levels() -> None:
    graph = quantized(image_network(), ["activation_bits=4", "weight_bits=4"])
    affine = graph.tensors[graph.nodes[1].outputs[0]].affine
    assert affine.maximum_code - affine.minimum_code + 1 == 16
    codes = graph.tensors[graph.nodes[1].inputs[1]]
    assert codes.dtype is DType.INT4
    assert codes.data is not None
    assert np.abs(codes.data).max() == 7
    check_against_runtime(image_network(), ["activation_bits=4", "weight_bits=4"])


@pytest.mark.parametrize("activation", ["relu", "relu6", "relu_n1_to_1"])
def test_a_fused_activation_clamps_what_the_range_does_not(activation: str) -> None:
    b = GraphBuilder("clamped")
    y = conv(b, b.input("x", (1, 6, 6, 3), DType.FLOAT32), 3, 8, activation)
    check_against_runtime(with_ranges(b.build([y]), -8, 8))


@pytest.mark.parametrize("assignments", [["weight_granularity=per-tensor"], ["activation_scheme=symmetric"]])
def test_other_schemes(assignments: Strings) -> None:
    check_against_runtime(image_network(), assignments)


@pytest.mark.parametrize("assignment", ["levels=255", "levels=256", "levels=64", "activation_bits=12"])
def test_integers_are_what_fake_quantize_says(assignment: str) -> None:
    """The levels of integer layers against convolutions of float32 between FakeQuantize in one piece."""
    engine, xml, weights = converted(Model([image_network()], source="small.tflite"), [assignment])
    written = model_from_bytes(xml, weights, "small.xml").main
    x = draw(written)
    theirs = Engine(written, "openvino").run([x])[written.outputs[0]]
    ours = engine.run([x.transpose(0, 1, 3, 4, 2)])[engine.graph.outputs[0]]
    assert np.abs(ours - theirs).max() <= 1e-6


def test_levels_that_the_runtime_computes_in_float_are_named() -> None:
    graph = quantized(image_network(), ["activation_bits=16"])
    assert graph.nodes[1].attributes.text("engine") == "f32"
    assert "65536 levels; int8 needs one of" in graph.nodes[1].attributes.text("engine_reason")


def test_per_channel_activations_of_depthwise_and_sums() -> None:
    b = GraphBuilder("channels")
    x = b.input("x", (1, 6, 6, 4), DType.FLOAT32)
    y = depthwise(b, x, 4)
    s = b.add("add", [y, x], (1, 6, 6, 4), DType.FLOAT32, fused_activation_function="none")
    graph = b.build([conv(b, s, 4, 8)])
    graph.tensors[x] = replace(graph.tensors[x], range=per_channel_range(4))
    ranged = with_ranges(graph)
    made = quantized(ranged)
    affine = made.tensors[made.nodes[0].outputs[0]].affine
    assert affine.axis == 3
    assert affine.scale.size == 4
    assert [n.arithmetic for n in made.nodes] == ["openvino"] * 4
    check_against_runtime(ranged)


def test_per_channel_ranges_in_front_of_a_convolution_become_one() -> None:
    b = GraphBuilder("channels")
    x = b.input("x", (1, 6, 6, 4), DType.FLOAT32)
    graph = b.build([conv(b, x, 4, 8)])
    graph.tensors[x] = replace(graph.tensors[x], range=per_channel_range(4))
    made = quantized(with_ranges(graph))
    assert not made.tensors[made.nodes[0].outputs[0]].affine.is_per_axis


def two_branches(operator: str) -> Graph:
    b = GraphBuilder("branches")
    x = b.input("x", (1, 6, 6, 3), DType.FLOAT32)
    y, z = conv(b, x, 3, 4, "relu"), b.add("tanh", [x], (1, 6, 6, 3), DType.FLOAT32)
    z = conv(b, z, 3, 4, seed=3)
    if operator == "concatenation":
        m = b.add(operator, [y, z], (1, 6, 6, 8), DType.FLOAT32, axis=3, fused_activation_function="none")
    else:
        m = b.add(operator, [y, z], (1, 6, 6, 4), DType.FLOAT32, fused_activation_function="none")
    graph = b.build([conv(b, m, 8 if operator == "concatenation" else 4, 4, seed=4)])
    for t, (low, high) in {y: (0, 6), z: (-2, 1), m: (-3, 7)}.items():
        graph.tensors[t] = replace(graph.tensors[t], range=with_ranges(graph, low, high).tensors[t].range)
    return with_ranges(graph)


@pytest.mark.parametrize("operator", ["add", "mul", "concatenation"])
def test_operands_keep_ranges_of_their_own(operator: str) -> None:
    made = quantized(two_branches(operator))
    (node,) = (n for n in made.nodes if n.operator == operator)
    scales = [made.tensors[t].quantization for t in (*node.inputs, *node.outputs)]
    affine = [s for s in scales if isinstance(s, Affine)]
    assert len(affine) == (2 if operator == "add" else 3)
    assert len({float(a.scale[0]) for a in affine}) == len(affine)
    assert node.arithmetic == "openvino"


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("operator", ["add", "sub"])
def test_of_two_filters_that_are_added_the_last_one_is_not_rounded(operator: str, turned: bool) -> None:
    b = GraphBuilder("two")
    x = b.input("x", (1, 6, 6, 3), DType.FLOAT32)
    y, z = conv(b, x, 3, 4, seed=1), conv(b, x, 3, 4, seed=2)
    operands = [z, y] if turned else [y, z]
    made = quantized(with_ranges(b.build([b.add(operator, operands, (1, 6, 6, 4), DType.FLOAT32)])))
    kinds = [(n.operator, made.tensors[n.outputs[0]].dtype.value) for n in made.nodes]
    assert kinds == [("quantize", "int8"), ("conv_2d", "int8"), ("conv_2d", "float32"), (operator, "float32")]
    seeds = [made.tensors[n.inputs[1]].data for n in made.nodes if n.operator == "conv_2d"]
    first, last = (quantized(with_ranges(one_filter(seed))) for seed in (1, 2))
    for found, wanted in zip(seeds, (first, last), strict=True):
        assert np.array_equal(found, wanted.tensors[wanted.nodes[1].inputs[1]].data)


def one_filter(seed: int) -> Graph:
    b = GraphBuilder("one")
    return b.build([conv(b, b.input("x", (1, 6, 6, 3), DType.FLOAT32), 3, 4, seed=seed)])


@pytest.mark.parametrize("operator", ["add", "mul"])
def test_operands_with_ranges_of_their_own_in_the_runtime(operator: str) -> None:
    check_against_runtime(two_branches(operator))


@pytest.mark.parametrize("more", [[], ["weight_granularity=per-tensor"], ["weight_bits=4"]], ids=str)
def test_convolutions_of_weights_with_zero_points_run_in_float(more: list[str]) -> None:
    check_against_runtime(image_network(), ["weight_scheme=asymmetric", *more], in_integers=[False, False, True])


@pytest.mark.parametrize("shift", [-3.0, 0.0, 3.0])
def test_weights_with_zero_points_lie_within_half_a_step(shift: float) -> None:
    rng = np.random.default_rng(5)
    real = Tensor("w", (6, 3, 3, 4), DType.FLOAT32, data=(rng.normal(size=(6, 3, 3, 4)) + shift).astype(np.float32))
    stored = weight_codes(real, real, 0, LayerOptions(weight_scheme="asymmetric"))
    assert real.data is not None
    assert stored.data is not None
    scale, zero_point = stored.affine.along(4)
    distance = np.abs((stored.data.astype(float) - zero_point) * scale - real.data)
    assert (distance <= scale * 0.5001).all()
    rows = np.hstack([real.data.reshape(6, -1), np.zeros((6, 1))])  # zero is in every range
    assert np.allclose(scale.reshape(-1) * 255, np.ptp(rows, axis=1))


@pytest.mark.parametrize("zero_point", [3, 128, 255])
def test_a_files_zero_points_stay_where_they_may(zero_point: int) -> None:
    graph = asymmetric_weights(zero_point)
    made = quantized(graph, ["weight_scheme=asymmetric"])
    (node,) = (n for n in made.nodes if n.operator == "fully_connected")
    stored, source = made.tensors[node.inputs[1]], graph.tensors[graph.nodes[0].inputs[1]]
    assert np.array_equal(dequantize(stored.data, stored.affine), dequantize(source.data, source.affine))
    assert (stored.dtype, stored.affine.bits) == (DType.INT8, 8)
    assert node.attributes.text("engine") == ("f32" if zero_point != 128 else "u8/i8")


def test_unsigned_weights_become_signed() -> None:
    model = as_model(asymmetric_weights(128))
    made = quantized(model.main)
    (node,) = (n for n in made.nodes if n.operator == "fully_connected")
    codes = made.tensors[node.inputs[1]]
    assert codes.data is not None
    assert np.array_equal(codes.data.reshape(-1), np.arange(12) * 20 - 128)
    assert not codes.affine.zero_point.any()
    _, xml, weights = converted(model)
    assert all(Runtime(xml, weights).in_integers())


@pytest.mark.parametrize(
    ("low", "high", "levels", "symmetric", "zero"),
    [
        (-1, 3, 256, False, 64),
        (0, 6, 256, False, 0),
        (1, 5, 256, False, 0),
        (-1, 1, 256, True, 128),
        (-2, 1, 255, True, 127),
    ],
)
def test_zero_is_a_level(low: float, high: float, levels: int, symmetric: bool, zero: int) -> None:
    rule = nudged(np.array([low], np.float32), np.array([high], np.float32), levels, symmetric)
    step = (float(rule.input_high[0]) - float(rule.input_low[0])) / (levels - 1)
    assert abs(-float(rule.input_low[0]) / step - zero) < 1e-4
    assert rule.input_low[0] <= min(low, 0) + step / 2
    assert rule.input_high[0] >= max(high, 0) - step / 2


def test_results_do_not_depend_on_chunks() -> None:
    graph = quantized(image_network())
    engine, x = Engine(graph, "openvino"), draw(graph, 7)
    (t,) = engine.graph.outputs
    assert np.array_equal(engine.run([x], chunk_size=1)[t], engine.run([x], chunk_size=7)[t])


def test_odd_levels_are_named() -> None:
    graph = quantized(image_network(), ["levels=255"])
    assert graph.nodes[1].attributes.text("engine") == "u8/i8"
    assert "departs from FakeQuantize; use 256" in graph.nodes[1].attributes.text("engine_reason")
