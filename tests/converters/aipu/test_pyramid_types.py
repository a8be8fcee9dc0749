"""Which type PyramidROIAlign writes: of boxes in 0..1, of pixels, and of maps that have scales of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.converters.aipu.single_layers import OneLayer
from tflq.converters.aipu import AIPU, graph_of, network_of
from tflq.converters.settings import parse_settings
from tflq.errors import UnsupportedError
from tflq.graph import Graph, Range
from tflq.interpreter import lower

MAPS = ((1, 16, 12, 2), (1, 8, 6, 2), (1, 4, 3, 2), (1, 2, 2, 2))
KEYS = {
    "resize_width": 3,
    "resize_height": 2,
    "image_width": 48,
    "image_height": 64,
    "sample": (2, 2),
    "spatial_scale_value": (0.25, 0.125, 0.0625, 0.03125),
    "coordinate_transformation_mode": "OUTPUT_HALF_PIXEL",
}
LIMITS = ((-1.0, 3.0), (-2.0, 2.5), (-0.5, 6.0), (0.0, 2.0))


def _quantized(limits: tuple[tuple[float, float], ...], settings: tuple[str, ...], **keys: object) -> Graph:
    layer = OneLayer("pyramid_roi_align", ((1, 5, 4), *MAPS), ((5, 2, 3, 2),), {**KEYS, **keys})
    graph = graph_of(layer.network())
    for t, (low, high) in zip((*graph.inputs, *graph.outputs), ((0.0, 1.0), *limits, (-4.0, 5.0)), strict=True):
        found = Range(np.array([low], np.float32), np.array([high], np.float32))
        graph.tensors[t] = replace(graph.tensors[t], range=found)
    return AIPU.quantize(graph, parse_settings(AIPU.settings, settings))


@pytest.mark.parametrize("mode", ["symmetric", "asymmetric"])
@pytest.mark.parametrize("bits", ["8", "16"])
def test_boxes_in_0_to_1_take_the_first_map_without_its_zero_point(mode: str, bits: str) -> None:
    settings = (f"activations={mode}", f"activation_bits={bits}")
    for limits in (((-1.0, 3.0),) * 4, ((0.0, 2.0),) * 4):
        graph = _quantized(limits, settings, proposal_normalized=True)
        first, found = graph.tensors[graph.inputs[1]], graph.tensors[graph.outputs[0]]
        assert (found.dtype, found.affine.scale[0]) == (first.dtype, first.affine.scale[0])
        assert found.affine.zero_point.tolist() == [0]
        lowered = lower(graph, AIPU.arithmetic)
        (layer,) = (one for one in network_of(lowered).layers if one.type == "PyramidROIAlign")
        boxes = 1 / float(graph.tensors[graph.inputs[0]].affine.scale[0])
        assert layer.entries["box_input_qvalue"] == round(np.log2(boxes))


@pytest.mark.parametrize(("limits", "is_signed"), [(LIMITS, True), (((0.0, 3.0),) * 4, False)])
def test_boxes_in_pixels_have_an_own_range(limits: tuple[tuple[float, float], ...], is_signed: bool) -> None:
    graph = _quantized(limits, ("activations=symmetric",), proposal_normalized=False)
    found = graph.tensors[graph.outputs[0]]
    assert found.dtype.value == ("int8" if is_signed else "uint8")
    assert float(found.affine.scale[0]) == pytest.approx(10 / 255 if is_signed else 5 / 255, rel=1e-6)


@pytest.mark.parametrize("mode", ["symmetric", "asymmetric"])
def test_maps_of_scales_of_their_own_share_the_upper_median(mode: str) -> None:
    graph = _quantized(LIMITS, (f"activations={mode}",), proposal_normalized=True, canonical_size=16.0)
    sizes = sorted((graph.tensors[t] for t in graph.inputs[1:]), key=lambda t: float(t.affine.scale[0]))
    found = graph.tensors[graph.outputs[0]]
    assert (found.dtype, found.affine) == (sizes[2].dtype, sizes[2].affine)


def test_boxes_in_0_to_1_need_maps_of_one_scale() -> None:
    with pytest.raises(
        UnsupportedError, match=r"maps have the scales 42\.5, 51, 21\.25, 127\.5; allowed is one for all"
    ):
        lower(_quantized(LIMITS, ("activations=symmetric",), proposal_normalized=True), AIPU.arithmetic)
