"""Types and keys of NMS: at which scale boxes come out, what stands for no threshold (the Optimizer's ops/nms.py)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.converters.aipu.single_layers import OneLayer, given
from tflq.converters.aipu import AIPU, graph_of, network_of
from tflq.converters.settings import parse_settings
from tflq.graph import Graph, Range
from tflq.interpreter import lower

KEYS = {"method": "HARD", "max_output_size": 3, "iou_threshold": 0.5, "soft_nms_sigma": 0.0}


def _quantized(largest: float, *settings: str, smallest: float = 0.0, **keys: object) -> Graph:
    inputs = ((1, 4, 4), (1, 1), (1, 1), (1, 4))
    draws = (given([0, 0, 1, 1]), given([4]), given([1]), given([0.25]))
    layer = OneLayer("nms", inputs, ((1, 3, 4), (1, 1), (1, 3), (1, 3)), {**KEYS, **keys}, draws=draws)
    graph = graph_of(layer.network())
    for place, limits in ((0, (smallest, largest)), (1, (0, 4)), (2, (0, 1)), (3, (0, 1))):
        t = graph.inputs[place]
        graph.tensors[t] = replace(graph.tensors[t], range=Range(*(np.array([v], np.float32) for v in limits)))
    return AIPU.quantize(graph, parse_settings(AIPU.settings, settings))


SIZES = {"image_height": 90, "image_width": 120}


@pytest.mark.parametrize(
    ("largest", "keys", "scale"),
    [
        (1.0, {}, 255.0),
        (0.5, {}, 510.0),
        (1.0, SIZES, 255.0),
        (1.0, {**SIZES, "center_point_box": 0}, 255.0),
        (1.0, {**SIZES, "center_point_box": 1}, 120.0),
        (1.0, {"image_height": 300, "image_width": 20, "center_point_box": 1}, 300.0),
        (1.0, {"image_height": 300, "center_point_box": 1}, 255.0),
        (1.0, {"image_width": 300, "center_point_box": 1}, 255.0),
        (2.0, {**SIZES, "center_point_box": 1}, 120.0),
        (2.0, {"image_height": 128, "image_width": 1, "center_point_box": 1}, 1.0),
        (2.0, {"image_height": 127, "image_width": 1, "center_point_box": 1}, 127.0),
        (2.0, {}, 1.0),
        (5.0, {}, 51.0),
        (400.0, {}, 1.0),
        (1.0625, {}, 240.0),
        (1.09375, {}, 1.0),
    ],
)
def test_the_scale_of_boxes(largest: float, keys: dict[str, int], scale: float) -> None:
    """D is the input's scale, or the larger side; it stays where it is at most the whole part of that scale, or where
    boxes lie within 0..1; else boxes are in pixels.
    """
    graph = _quantized(largest, **keys)
    found = graph.tensors[graph.outputs[0]].affine
    assert 1 / float(found.scale[0]) == pytest.approx(scale, rel=1e-6)
    assert found.zero_point.tolist() == [0]


def test_boxes_of_which_some_are_far_below_0() -> None:
    """What decides is the largest coordinate that was seen, not the largest that the type holds."""
    for largest, scale in ((1.0, 63.75), (1.0625, 1.0)):
        graph = _quantized(largest, smallest=-2.0)
        assert 1 / float(graph.tensors[graph.outputs[0]].affine.scale[0]) == pytest.approx(scale, rel=1e-6)


@pytest.mark.parametrize(("smallest", "mode"), [(0.0, "symmetric"), (-0.5, "symmetric"), (-0.5, "asymmetric")])
def test_boxes_keep_their_sign_and_their_width(smallest: float, mode: str) -> None:
    for bits, name in (("8", "int8"), ("16", "int16")):
        graph = _quantized(1.0, f"activations={mode}", f"activation_bits={bits}", smallest=smallest)
        boxes, count, scores, indices = (graph.tensors[t] for t in graph.outputs)
        assert boxes.dtype.value == ("" if smallest < 0 else "u") + name
        assert boxes.affine.zero_point.tolist() == [0]
        assert (count.dtype.value, indices.dtype.value) == ("uint16", "uint16")
        assert [t.affine.scale.tolist() for t in (count, indices)] == [[1.0], [1.0]]
        assert scores.affine == graph.tensors[graph.inputs[3]].affine


@pytest.mark.parametrize(
    ("threshold", "bits", "found"),
    [(0.5, "8", 128), (0.0, "8", 0), (1.5, "8", 255), (None, "8", -1), (0.5, "16", 32768)],
)
def test_the_threshold_of_scores(threshold: float | None, bits: str, found: int) -> None:
    """clamp(RNE(threshold * s)); where none is given, one less than every score."""
    keys = {} if threshold is None else {"score_threshold": threshold}
    graph = lower(_quantized(1.0, f"activation_bits={bits}", **keys), AIPU.arithmetic)
    (layer,) = (one for one in network_of(graph).layers if one.type == "NMS")
    assert layer.entries["score_threshold"] == found
    assert (layer.entries["iou_threshold"], layer.entries["iou_thresh_shift"]) == (128, 8)
    assert layer.entries["areas_shift"] == 13
