"""`convert` names each fault of TPU-MLIR that a network meets, and no other."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converters.tpu_mlir.networks import IMAGE, binary, quantized, ranged, unary
from tflq.converters.tpu_mlir import TPU_MLIR
from tflq.graph import DType, Graph, GraphBuilder
from tflq.interpreter import lower

SIGNED, UNSIGNED = (-1.0, 3.0), (0.0, 3.0)
NUMBER = np.float32(0.5)


def faults(graph: Graph, *sets: str) -> str:
    return "; ".join(TPU_MLIR.departures(lower(quantized(graph, sets), "tpu_mlir")).values())


@pytest.mark.parametrize("operator", ["maximum", "minimum"])
def test_extremes_with_one_number(operator: str) -> None:
    """The zero point is lost in the asymmetric mode, if there is one."""
    for range_, asymmetric, is_lost in ((SIGNED, "true", True), (UNSIGNED, "true", False), (SIGNED, "false", False)):
        graph = unary(operator, {"x": range_, "y": range_}, np.array(NUMBER))
        assert ("(1)" in faults(graph, f"asymmetric={asymmetric}")) == is_lost


@pytest.mark.parametrize("operator", ["maximum", "minimum"])
def test_extremes_of_two_scales(operator: str) -> None:
    graph = binary(operator, {"a": SIGNED, "b": (-2.0, 2.0), "y": SIGNED})
    assert faults(graph) == ""
    graph.outputs = (*graph.outputs, graph.inputs[0])
    b = GraphBuilder("shared")
    x, z = (b.input(name, IMAGE, DType.FLOAT32) for name in ("a", "b"))
    y, other = b.tensor("y", IMAGE, DType.FLOAT32), b.tensor("t", IMAGE, DType.FLOAT32)
    b.node(operator, [x, z], [y])
    b.node("tanh", [x], [other])
    shared = ranged(b.build([y, other]), {"a": SIGNED, "b": (-2.0, 2.0), "y": SIGNED, "t": (-1.0, 1.0)})
    assert "(2)" in faults(shared)


def test_absolute_values() -> None:
    for asymmetric in ("false", "true"):
        found = faults(unary("abs", {"x": (-1.0, 3.0), "y": (0.0, 3.0)}), f"asymmetric={asymmetric}")
        assert ("(4)" in found) == (asymmetric == "true")


def test_inverses() -> None:
    b = GraphBuilder("inverse")
    x = b.input("x", IMAGE, DType.FLOAT32)
    y = b.tensor("y", IMAGE, DType.FLOAT32)
    b.node("div", [b.constant("one", np.array(1, np.float32)), x], [y])
    assert "(5)" in faults(ranged(b.build([y]), {"x": (0.5, 2.0), "y": (0.5, 2.0)}))
    assert faults(unary("div", {"x": SIGNED, "y": SIGNED}, np.array(2, np.float32))) == ""


def test_convolutions_of_values_near_0() -> None:
    for reach, is_replaced in ((1e-4, True), (1.0, False)):
        b = GraphBuilder("tiny")
        x = b.input("x", IMAGE, DType.FLOAT32)
        weights = b.constant("w", np.array([[[[1.5, -0.5]]], [[[0.25, 2.5]]]], np.float32))
        y = b.tensor("y", IMAGE, DType.FLOAT32)
        bias = b.constant("b", np.array([1.0, -0.5], np.float32))
        b.node("conv_2d", [x, weights, bias], [y], padding="valid", stride_h=1, stride_w=1)
        graph = ranged(b.build([y]), {"x": (-reach, reach), "y": (-3.0, 3.0)})
        assert ("(9)" in faults(graph)) == is_replaced


@pytest.mark.parametrize(("options", "is_other"), [({}, True), ({"half_pixel_centers": True}, False)])
def test_bilinear_resizes(options: dict[str, bool], is_other: bool) -> None:
    b = GraphBuilder("resize")
    x = b.input("x", IMAGE, DType.FLOAT32)
    y = b.tensor("y", (1, 8, 8, 2), DType.FLOAT32)
    b.node("resize_bilinear", [x, b.constant("size", np.array([8, 8], np.int32))], [y], **options)
    assert ("(11)" in faults(ranged(b.build([y]), {"x": SIGNED, "y": SIGNED}))) == is_other
