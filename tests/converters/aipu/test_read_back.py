"""What is read of a quantized IR: every tensor with the type, the scale and the zero point that it was written with."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converters.aipu.recording import ranged, settings_of
from tests.converters.aipu.test_recorded import NOT_READ_BACK, RECORDED, with_inner_ranges
from tflq.converters.aipu import AIPU, graph_of, network_of
from tflq.converters.calibration import calibrate
from tflq.converters.settings import parse_settings
from tflq.graph import Affine
from tflq.graph.parsing import parse_graph
from tflq.interpreter import Engine, lower
from tflq.schemas.aipu import read_network, write_network

CASES = [(n, mode) for n, one in RECORDED["layers"].items() if n not in NOT_READ_BACK for mode in one["modes"]]


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_tensors_are_read_as_they_were_written(name: str, mode: str) -> None:
    graph = ranged(with_inner_ranges("layers", name), RECORDED["layers"][name]["modes"][mode]["ranges"])
    made = lower(AIPU.quantize(graph, parse_settings(AIPU.settings, settings_of(mode))), AIPU.arithmetic)
    read = graph_of(read_network(*write_network(network_of(made))))
    ours = {tensor.name: tensor for tensor in made.tensors}
    for tensor in read.tensors:
        other = ours[tensor.name]
        assert (tensor.dtype, tensor.shape) == (other.dtype, other.shape), tensor.name
        if not isinstance(tensor.quantization, Affine) or not isinstance(other.quantization, Affine):
            continue
        if read.nodes[0].operator in ("basic_lstm", "gru_v1", "gru_v3") and tensor.is_constant:
            continue  # their weights are in blocks, each with its own scale
        found, wanted = tensor.affine, other.affine
        assert np.allclose(found.scale, wanted.scale, rtol=1e-6), tensor.name
        zero = found.zero_point.astype(np.int64) - wanted.zero_point.astype(np.int64)
        assert not np.any(zero), tensor.name
        assert found.signed == wanted.signed, tensor.name
        assert tensor.is_constant or found.bits == wanted.bits, tensor.name


TWO_AXES = """graph g {
input %x: float32[1,4,3,12]
const %a: int32[2] = [2, 3]
const %g: float32[3,12] = random(1)
const %b: float32[3,12] = random(2)
const %e: float32[] = 0.001
%m: float32[1,4,1,1] = mean(%x, %a) {keep_dims=True}
%d: float32[1,4,3,12] = squared_difference(%x, %m)
%v: float32[1,4,1,1] = mean(%d, %a) {keep_dims=True}
%ve: float32[1,4,1,1] = add(%v, %e) {fused_activation_function="none"}
%r: float32[1,4,1,1] = rsqrt(%ve)
%rg: float32[1,4,3,12] = mul(%r, %g) {fused_activation_function="none"}
%xr: float32[1,4,3,12] = mul(%x, %rg) {fused_activation_function="none"}
%mr: float32[1,4,3,12] = mul(%m, %rg) {fused_activation_function="none"}
%s: float32[1,4,3,12] = sub(%b, %mr) {fused_activation_function="none"}
%z: float32[1,4,3,12] = add(%xr, %s) {fused_activation_function="none"}
output %z
}
"""
"""A norm over two axes with a factor and a shift for each element of both."""


def test_a_norm_over_two_axes_with_scales_of_channels_is_read_back() -> None:
    """Twelve scales belong to the last axis of weights of shape (3, 12)."""
    graph = parse_graph(TWO_AXES)
    samples = np.random.default_rng(1).normal(size=(4, 1, 4, 3, 12)).astype(np.float32)
    settings = parse_settings(AIPU.settings, ["weights=per_channel"])
    quantized = lower(AIPU.quantize(calibrate(graph, [samples]), settings), AIPU.arithmetic)
    assert [node.operator for node in quantized.nodes] == ["layer_norm"]
    files = write_network(network_of(quantized))
    back = lower(graph_of(read_network(*files)), AIPU.arithmetic)
    assert write_network(network_of(back)) == files
    codes = AIPU.encode(samples, quantized.tensors[quantized.inputs[0]])
    (ours,), (theirs,) = (Engine(g).run([codes]).values() for g in (quantized, back))
    assert np.array_equal(ours, theirs)
