"""Lengths: Reduce L1 and L2, Reciprocal, and what the Parser makes of them; values are the Optimizer's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.aipu_layers import MODES, Output, float_layer, run_layer
from tflq.cli import main
from tflq.converters.aipu import AIPU
from tflq.converters.aipu.translate import translate
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import model_to_bytes
from tflq.errors import UnsupportedError
from tflq.graph import DType, Graph, GraphBuilder, Model, Range
from tflq.interpreter import Engine, lower

LARGEST = 5.913592338562012
"""Of the input's range, symmetric."""


@pytest.mark.parametrize(
    ("settings", "codes", "wanted"),
    [
        (
            [],
            [[-59, -37, -76, -84], [-47, 23, -56, -18], [-23, -31, -25, -1], [4, -23, 7, 22], [-9, -29, -29, -20]],
            [214, 127, 74, 52, 75],
        ),
        (
            ["activations=asymmetric", "activation_bits=16", "lut_items_in_bits=10"],
            [[-15202, -9548, -19634, -21600], [-12133, 6033, -14290, -4544], [902, -5792, 1762, 5704]],
            [55323, 32628, 13506],
        ),
    ],
)
def test_l2_as_the_optimizer_has_it(settings: list[str], codes: list[list[int]], wanted: list[int]) -> None:
    """The rows hold the largest sum of the tool's tensor, which decides how many bits all sums lose."""
    output = Output((len(codes), 1), (0.0, 7.329503059387207))
    x = np.zeros((1, *np.shape(codes)), np.float32)
    graph = float_layer("reduce", [x], [output], hidden=[(0.0, 54.116287)], axis=(1,), method="L2")
    limits = (np.asarray([limit], np.float32) for limit in (-LARGEST, LARGEST))
    graph.tensors[0] = replace(graph.tensors[0], range=Range(*limits))
    lowered = lower(AIPU.quantize(graph, parse_settings(AIPU.settings, settings)), AIPU.arithmetic)
    found = Engine(lowered).run([np.asarray([codes], lowered.tensors[0].dtype.storage)], list(lowered.outputs))
    assert found[lowered.outputs[0]].ravel().tolist() == wanted


def test_l2_of_whole_numbers_is_refused() -> None:
    """The Optimizer makes no table there, and stops."""
    graph = float_layer("reduce", [np.ones((1, 2, 4), np.int32)], [Output((2, 1), (0.0, 4.0))], axis=(1,), method="L2")
    with pytest.raises(UnsupportedError, match="L2 of whole numbers"):
        run_layer(graph, [np.ones((1, 2, 4), np.int32)], MODES["symmetric"])


@pytest.mark.parametrize("mode", ["symmetric", "asymmetric"])
def test_l1(mode: str) -> None:
    x = np.random.default_rng(8).normal(0, 2, (3, 5, 7)).astype(np.float32)
    graph = float_layer("reduce", [x], [Output((5, 1), (0.0, 30.0))], axis=(1,), method="L1")
    ran = run_layer(graph, [x], MODES[mode])
    wanted = np.abs(ran.inputs[0]).sum(axis=2, keepdims=True)
    assert np.abs(ran.outputs[0] - wanted).max() <= (0.5 + 1e-3) * ran.steps[0]


def test_round_of_a_restricted_range_is_read_a_place_beside() -> None:
    """Its table has 256 points over 254 steps, and the place of the lowest value is 1, as in the tool."""
    x = np.zeros((1, 12), np.float32)
    graph = float_layer("round", [x], [Output((12,), (-8.257378578186035, 8.832035064697266))])
    limits = (np.asarray([limit], np.float32) for limit in (-8.386903762817383, 8.870389938354492))
    graph.tensors[0] = replace(graph.tensors[0], range=Range(*limits))
    settings = parse_settings(AIPU.settings, ["activation_range=restricted"])
    lowered = lower(AIPU.quantize(graph, settings), AIPU.arithmetic)
    codes = np.array([[-47, 23, -55, -18, -23, -31, -25, -1, 3, -22, 7, 22]], np.int8)
    found = Engine(lowered).run([codes], list(lowered.outputs))[lowered.outputs[0]]
    assert found.ravel().tolist() == [-43, 29, -58, -14, -29, -29, -29, 0, 0, -14, 14, 29]


def _normalized(limit: float = 1e12) -> Graph:
    """Keras' UnitNormalization."""
    b = GraphBuilder("m")
    x = b.input("x", (1, 6), DType.FLOAT32)
    axis = b.constant("axis", np.array([1], np.int32))
    y = b.add("square", (x,), (1, 6), DType.FLOAT32)
    y = b.add("sum", (y, axis), (1, 1), DType.FLOAT32, keep_dims=True)
    root = b.tensor("root", (1, 1), DType.FLOAT32)
    b.node("rsqrt", (y,), (root,))
    y = b.add("minimum", (root, b.constant("limit", np.float32(limit))), (1, 1), DType.FLOAT32)
    return b.build((b.add("mul", (x, y), (1, 6), DType.FLOAT32, fused_activation_function="none"),))


def test_unit_normalization_becomes_the_parsers_layers() -> None:
    graph = translate(_normalized(), "m", faults=True)
    assert [node.operator for node in graph.nodes] == ["reduce", "reciprocal", "constant", "eltwise", "mul"]
    length, reciprocal = graph.nodes[:2]
    assert (length.name, length.attributes["method"], reciprocal.name) == ("root_sqrt", "L2", "root")
    assert [graph.tensors[t].name for t in length.intermediates or ()] == ["root_sqrt/power2_sum"]


def test_a_limit_beyond_32_bits_goes() -> None:
    """The Optimizer's Eltwise would compute 0 with it."""
    assert [node.operator for node in translate(_normalized(), "m").nodes] == ["reduce", "reciprocal", "mul"]
    assert "eltwise" in [node.operator for node in translate(_normalized(100.0), "m").nodes]


def test_convert_names_what_it_leaves_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples = np.random.default_rng(3).uniform(0.5, 2, (6, 1, 6)).astype(np.float32)
    np.save(tmp_path / "x.npy", samples)
    words = "left out, because no value reaches its limit; the Optimizer, whose 32 bits do not hold the limit, computes"
    for limit, settings, is_named in (
        (1e12, [], True),
        (1e12, ["-s", "parser_faults=true"], False),
        (100.0, [], False),
    ):
        (tmp_path / "m.tflite").write_bytes(model_to_bytes(Model([_normalized(limit)])))
        command = ["convert", str(tmp_path / "m.tflite"), "-t", "aipu", "--calibrate", str(tmp_path / "x.npy")]
        assert main([*command, *settings, "--force", "-o", str(tmp_path / "a")]) == 0
        shown = " ".join("".join(capsys.readouterr()).split())
        assert shown.count(words) == is_named


def test_two_roots_of_one_square() -> None:
    """The squares go into the first root alone, as in the Parser's graph."""
    b = GraphBuilder("m")
    x = b.input("x", (1, 4, 6), DType.FLOAT32)
    square = b.add("square", (x,), (1, 4, 6), DType.FLOAT32)
    roots = []
    for axes, shape in (((2,), (1, 4, 1)), ((1, 2), (1, 1, 1))):
        places = b.constant(f"axes{len(axes)}", np.array(axes, np.int32))
        sums = b.add("sum", (square, places), shape, DType.FLOAT32, keep_dims=True)
        roots.append(b.add("sqrt", (sums,), shape, DType.FLOAT32))
    graph = translate(b.build(roots), "m")
    assert [node.attributes.get("method", node.operator) for node in graph.nodes] == ["L2", "square", "SUM", "sqrt"]


def test_a_quotient_by_a_length_is_one_layer() -> None:
    b = GraphBuilder("m")
    x = b.input("x", (1, 6), DType.FLOAT32)
    axis = b.constant("axis", np.array([1], np.int32))
    y = b.add("square", (x,), (1, 6), DType.FLOAT32)
    y = b.add("sum", (y, axis), (1, 1), DType.FLOAT32, keep_dims=True)
    y = b.add("sqrt", (y,), (1, 1), DType.FLOAT32)
    y = b.add("add", (y, b.constant("e", np.float32(1e-3))), (1, 1), DType.FLOAT32, fused_activation_function="none")
    y = b.add("div", (x, y), (1, 6), DType.FLOAT32, fused_activation_function="none")
    (node,) = translate(b.build((y,)), "m").nodes
    assert (node.operator, node.attributes["method"]) == ("normalization", "L2")
    assert node.attributes.real("epsilon") == pytest.approx(1e-3)
