"""What is read of a quantized IR: every tensor with the type, the scale and the zero point that it was written with."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converters.aipu.recording import ranged, settings_of
from tests.converters.aipu.test_recorded import NOT_READ_BACK, RECORDED, with_inner_ranges
from tflq.converters.aipu import AIPU, graph_of, network_of
from tflq.converters.settings import parse_settings
from tflq.graph import Affine
from tflq.interpreter import lower
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
