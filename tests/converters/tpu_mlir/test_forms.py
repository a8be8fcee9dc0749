"""Which written-out forms become one operator, and what is one step away from being refused and is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.converters.tpu_mlir.networks import FLOAT, WINDOW, binary, quantized, rewritten, unary
from tflq.converters.tpu_mlir.check import problems_of
from tflq.converters.tpu_mlir.passes.constants import _quantized
from tflq.converters.tpu_mlir.passes.expand import expand
from tflq.converters.tpu_mlir.passes.fusions import fuse_softsign
from tflq.converters.tpu_mlir.passes.recognize import recognize_layer_normalization
from tflq.graph import Affine, DType, Graph, GraphBuilder, Range

ROWS = (1, 5, 8)


def normalized(of_itself: bool, mean_over: int = 2, variance_over: int = 2) -> Graph:
    """Return (x - m) / sqrt(mean((x - m)^2) + eps), m the mean of x or of another tensor, over one axis each."""
    b = GraphBuilder("rows")
    x, z = (b.input(name, ROWS, FLOAT) for name in "xz")
    singles = {1: (1, 1, 8), 2: (1, 5, 1)}
    axes = {axis: b.constant(f"axes{axis}", np.array([axis], np.int32)) for axis in singles}
    single = singles[variance_over]
    mean = b.add("mean", [x if of_itself else z, axes[mean_over]], singles[mean_over], FLOAT, keep_dims=True)
    square = b.add("squared_difference", [x, mean], ROWS, FLOAT)
    variance = b.add("mean", [square, axes[variance_over]], single, FLOAT, keep_dims=True)
    epsilon = b.constant("epsilon", np.array(1e-3, np.float32))
    inverse = b.add("rsqrt", [b.add("add", [variance, epsilon], single, FLOAT)], single, FLOAT)
    difference = b.add("sub", [x, mean], ROWS, FLOAT)
    return b.build([b.add("mul", [difference, inverse], ROWS, FLOAT), b.add("relu", [z], ROWS, FLOAT)])


def softsign(one_first: bool) -> Graph:
    b = GraphBuilder("softsign")
    x, one = b.input("x", ROWS, FLOAT), b.constant("one", np.array(1, np.float32))
    magnitude = b.add("abs", [x], ROWS, FLOAT)
    total = b.add("add", [one, magnitude] if one_first else [magnitude, one], ROWS, FLOAT)
    return b.build([b.add("div", [x, total], ROWS, FLOAT)])


@pytest.mark.parametrize("of_itself", [True, False])
def test_rows_are_normalized_by_their_own_mean(of_itself: bool) -> None:
    graph = normalized(of_itself)
    operators = [n.operator for n in rewritten(graph, recognize_layer_normalization).nodes]
    assert operators == (["layer_normalization", "relu"] if of_itself else [n.operator for n in graph.nodes])


@pytest.mark.parametrize(("mean_over", "variance_over"), [(1, 2), (2, 1), (1, 1)])
def test_means_of_other_axes_are_no_normalization_of_rows(mean_over: int, variance_over: int) -> None:
    graph = normalized(True, mean_over, variance_over)
    assert [n.operator for n in rewritten(graph, recognize_layer_normalization).nodes] == [
        n.operator for n in graph.nodes
    ]


@pytest.mark.parametrize("is_negated", [True, False])
@pytest.mark.parametrize("has_gamma", [True, False])
def test_a_scaled_row_without_beta(is_negated: bool, has_gamma: bool) -> None:
    """x * s - m * s is a normalization, x * s + m * s is none; s = gamma / sqrt(v + eps)."""
    b = GraphBuilder("rows")
    x, single, axes = b.input("x", ROWS, FLOAT), (1, 5, 1), b.constant("axes", np.array([2], np.int32))
    mean = b.add("mean", [x, axes], single, FLOAT, keep_dims=True)
    variance = b.add("mean", [b.add("squared_difference", [x, mean], ROWS, FLOAT), axes], single, FLOAT, keep_dims=True)
    epsilon = b.constant("epsilon", np.array(1e-3, np.float32))
    s, shape = b.add("rsqrt", [b.add("add", [variance, epsilon], single, FLOAT)], single, FLOAT), single
    if has_gamma:
        s, shape = b.add("mul", [s, b.constant("gamma", np.ones(8, np.float32))], ROWS, FLOAT), ROWS
    factor = b.add("neg", [mean], single, FLOAT) if is_negated else mean
    scaled, shift = b.add("mul", [x, s], ROWS, FLOAT), b.add("mul", [factor, s], shape, FLOAT)
    graph = b.build([b.add("add", [scaled, shift], ROWS, FLOAT)])
    found = [n.operator for n in rewritten(graph, recognize_layer_normalization).nodes]
    assert (found == ["layer_normalization"]) is is_negated


@pytest.mark.parametrize("one_first", [True, False])
def test_the_one_of_a_softsign_stands_on_either_side(one_first: bool) -> None:
    assert [n.operator for n in rewritten(expand(softsign(one_first)), fuse_softsign).nodes] == ["softsign"]


@pytest.mark.parametrize("graph", [binary("div", {}), unary("pow", {}, np.array(2, np.float32))], ids=["div", "pow"])
def test_pairs_that_are_taken(graph: Graph) -> None:
    assert problems_of(graph) == ()


def test_a_power_of_two_activations_is_not() -> None:
    (problem,) = problems_of(binary("pow", {}))
    assert "a power other than of one constant exponent" in problem


@pytest.mark.parametrize(("activation", "threshold"), [("none", 8.0), ("relu", 8.0), ("relu6", 6.0)])
def test_a_clamp_ends_the_calibrated_range(activation: str, threshold: float) -> None:
    constants = np.ones((2, 1, 1, 2), np.float32), np.zeros(2, np.float32)
    ranges = {"x": (-4.0, 4.0), "y": (0.0, 8.0)}
    graph = quantized(unary("conv_2d", ranges, *constants, **WINDOW, fused_activation_function=activation))
    (y,) = (graph.tensors[t] for t in graph.nodes[-1].inputs if graph.tensors[t].dtype.is_integer)
    assert np.isclose(y.affine.scale[0], threshold / 255)


@pytest.mark.parametrize("bias", [-(2**31), 2**31 - 1])
def test_a_bias_at_the_end_of_int32_is_taken(bias: int) -> None:
    x = Affine.per_tensor(np.float64(1), 0, 8)
    made = _quantized(np.ones((1, 1)), np.array([bias], np.float64), 0, np.ones(1), DType.INT8, x)
    assert made.bias.tolist() == [bias]


AREA = np.array([1, 2], np.int32)


@pytest.mark.parametrize(
    ("operator", "constant", "x", "y", "low", "high"),
    [
        ("mul", np.array(2, np.float32), (-1.0, 3.0), (-1.5, 5.0), -2.0, 6.0),
        ("mul", np.array(-2, np.float32), (-1.0, 3.0), (-1.5, 5.0), -6.0, 2.0),
        ("div", np.array(0.5, np.float32), (-1.0, 3.0), (-1.5, 5.0), -2.0, 6.0),
        ("neg", None, (-1.0, 3.0), (-1.5, 5.0), -3.0, 1.0),
        ("mean", AREA, (0.0, 4.0), (-1.0, 3.0), 0.0, 3.0),
        ("mean", AREA, (-1.0, 4.0), (0.0, 3.0), -0.3, 3.0),
        ("mean", AREA, (-1.0, 4.0), (-2.0, 3.0), -2.0, 3.0),
    ],
)
def test_ranges_that_follow_the_input(
    operator: str, constant: np.ndarray | None, x: tuple[float, float], y: tuple[float, float], low: float, high: float
) -> None:
    """docs/rules/tpu_mlir.md#ranges-that-are-unified-first, steps 2 and 9: ForwardMulConst and KeepSignPattern of
    TPU-MLIR."""
    options = {"keep_dims": True} if operator == "mean" else {"fused_activation_function": "none"}
    given = [] if constant is None else [constant]
    graph = quantized(unary(operator, {"x": x, "y": y}, *given, **options), ["asymmetric=true"])
    (found,) = (graph.tensors[t].affine for t in graph.nodes[-1].inputs if graph.tensors[t].dtype.is_integer)
    assert float(found.scale[0]) == pytest.approx((high - low) / 255, rel=1e-6)
    assert int(found.zero_point[0]) == (0 if low == 0 else round(-128 - low / (high - low) * 255))


def test_ranges_of_channels_count_as_one() -> None:
    graph = binary("squared_difference", {})
    reach = {"a": ([-1, -2], [3, 1]), "b": ([-1, -1], [1, 1]), "y": ([0, 0], [1, 4])}
    for t, tensor in enumerate(graph.tensors):
        low, high = (np.array(ends, np.float32) for ends in reach[tensor.name])
        graph.tensors[t] = replace(tensor, range=Range(low, high))
    lines = {line.name: (line.minimum, line.maximum) for line in quantized(graph).extra.table.lines}
    assert lines["a"] == (-2.0, 3.0)
    assert (-2.0, 2.0) in lines.values()  # the difference, whose square is 4 at most
