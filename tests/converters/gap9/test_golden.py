"""Every parameter, constant and intermediate tensor of the vendor's tool."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.gap9_golden import CASES, Golden, GoldenNode, golden
from tflq.graph import Affine, Array, Node

FILTERS = ("conv2d", "linear")


@pytest.fixture(params=CASES, ids=lambda case: ".".join(case))
def case(request: pytest.FixtureRequest) -> Golden:
    return golden(*request.param)


def assert_type(given: Affine, expected: dict[str, Any], where: str, dtype: type[np.floating] = np.float64) -> None:
    assert np.array_equal(given.scale.astype(dtype), np.asarray(expected["scale"], dtype)), where
    assert given.zero_point.tolist() == expected["zero_point"], where
    assert (given.bits, given.signed) == (expected["bits"], expected["signed"]), where


def vendor_layout(node: Node, weights: Array, is_ne16: bool) -> Array:
    """Ours are [O, H, W, I], depthwise [C, 1, H, W]; the vendor's are [O, I, H, W] on NE16, [O, H, W, I] on SQ8."""
    if node.operator == "depthwise_conv_2d":
        return weights if is_ne16 else np.moveaxis(weights, 1, 3)
    return np.moveaxis(weights, 3, 1) if node.operator == "conv_2d" and is_ne16 else weights


def filters(case: Golden) -> list[tuple[GoldenNode, Node]]:
    return [(n, case.ours(n.name)) for n in case.nodes() if n.operator in FILTERS]


def test_types(case: Golden) -> None:
    entry = next(e for e in case.entries["nodes"] if e["op"] == "input")
    assert_type(case.graph.tensors[case.graph.inputs[0]].affine, entry["quant"]["out_qs"][0], "input")
    for node in case.nodes():
        ours = case.ours(node.name)
        assert_type(case.graph.tensors[ours.outputs[0]].affine, node.fields["quant"]["out_qs"][0], node.name)
        # What a filter hands to its own activation has no integers: NNTool leaves its scale unrounded there.
        kind = np.float32 if node.name.endswith("_activation") else np.float64
        assert_type(case.graph.tensors[ours.inputs[0]].affine, node.fields["quant"]["in_qs"][0], node.name, kind)


def test_nothing_else_is_inserted(case: Golden) -> None:
    theirs = {n.name for n in case.nodes()}
    extra = {n.name for n in case.graph.nodes} - theirs
    assert all("RESHAPE" in name for name in extra), extra


def test_multipliers_and_shifts(case: Golden) -> None:
    for node, ours in filters(case):
        expected = node.fields["quant"]["mul_biases_q"]
        rescaling = ours.params.filter.rescaling
        assert rescaling.mul_bias.multiplier.tolist() == expected["value"], node.name
        assert rescaling.shift.tolist() == expected["norm"], node.name
        assert np.array_equal(rescaling.mul_bias.ratio, expected["scale"]), node.name


def test_weights_and_biases(case: Golden) -> None:
    for node, ours in filters(case):
        _, (weights, _), (bias, _) = node.outer["inputs"][:3]
        params = ours.params.filter
        is_ne16 = case.constant_type(weights)["dtype"] == "uint8"
        stored = vendor_layout(ours, params.weights + params.weight_zero_point, is_ne16)
        assert np.array_equal(stored, case.arrays[f"const/{weights}"]), node.name
        assert np.array_equal(params.rescaling.bias, case.arrays[f"const/{bias}"]), node.name
        expected = case.constant_type(weights)["scale"]
        assert np.array_equal(case.graph.tensors[ours.inputs[1]].affine.scale, expected), node.name


def test_elementwise_multipliers(case: Golden) -> None:
    for node in case.nodes():
        quant, params = node.fields["quant"], case.ours(node.name).params
        if node.operator == "add":
            assert params.scaled == quant["scaled_idx"]
            first = quant["scale_in_mul_biases_q"]
            assert params.input_mul_bias.multiplier.tolist() == first["value"]
            assert params.input_mul_bias.shift.tolist() == first["norm"]
            assert params.bias == quant["add_bias_offset"][0]
        if node.operator in ("add", "mul", "global_average_pool"):
            last = quant["scale_mul_biases_q"]
            own = params.average if node.operator == "global_average_pool" else params
            assert own.mul_bias.multiplier.tolist() == last["value"]
            assert own.mul_bias.shift.tolist() == last["norm"]


def test_every_tensor(case: Golden) -> None:
    given = case.values[case.graph.inputs[0]]
    assert np.array_equal(given.reshape(-1), case.arrays["tensor/input_1"].reshape(-1))
    for node in case.nodes():
        ours = case.values[case.ours(node.name).outputs[0]]
        expected = case.arrays[node.tensor_key]
        assert ours.dtype == expected.dtype, node.name
        assert np.array_equal(ours.reshape(-1), expected.reshape(-1)), node.name
    output = case.values[case.graph.outputs[0]]
    assert np.array_equal(output.reshape(-1), case.arrays["output_q"].reshape(-1))
