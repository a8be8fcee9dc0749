"""Layers of two-stage detectors beside their float definition, within what their bits allow.

Quantized values stand for whole numbers of pixels where boxes are in pixels, so that only the layer's own rounding
shows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.aipu_boxes import internal_values
from tests.support.aipu_layers import MODES, Limits, Output, Ran, float_layer, limits_of, run_layer
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array
from tflq.graph.attributes import Attribute

Doubles = NDArray[np.float64]
SYMMETRIC, WIDE = MODES["symmetric"], MODES["16 bits"]


def _boxes(rng: np.random.Generator, count: int, side: int, smallest: int) -> Array:
    """Return boxes [1, 1, count, 4] of whole numbers, y0 x0 y1 x1, one of them the whole image."""
    start = rng.integers(0, side - smallest, (count, 2))
    end = start + rng.integers(smallest, side, (count, 2))
    boxes = np.concatenate([start, np.minimum(end, side)], axis=1)
    boxes[0] = (0, 0, side, side)
    return boxes[None, None].astype(np.float32)


def _decoded(anchors: Doubles, deltas: Doubles, deviations: tuple[float, ...], window: float) -> Doubles:
    """Return Mask R-CNN's apply_box_deltas and clip_boxes: anchors and boxes y0, x0, y1, x1."""
    size, center = anchors[..., 2:] - anchors[..., :2], (anchors[..., 2:] + anchors[..., :2]) / 2
    moved = center + deltas[..., :2] / deviations[:2] * size
    grown = np.exp(deltas[..., 2:] / deviations[2:]) * size
    return np.clip(np.concatenate([moved - grown / 2, moved + grown / 2], axis=-1), 0, window)


def _entry(deltas: Doubles, mode: str) -> float:
    """Return how far a box of size 1 moves by one entry of a table, which tables of 2^10 entries may be off."""
    largest = float(np.abs(deltas).max())
    entry = 2 * largest / 1023 if mode == "16 bits" else 0.0
    return entry / 10 + entry / 5 * float(np.exp(largest / 5)) / 2


class TestProposal:
    """Proposal on 40 anchors of an image of 256 pixels."""

    DEVIATIONS = (10.0, 10.0, 5.0, 5.0)

    def _run(self, mode: str) -> tuple[Ran, Array, Array]:
        rng = np.random.default_rng(30)
        anchors = _boxes(rng, 40, 256, 16)[0, 0]
        size, center = anchors[:, 2:] - anchors[:, :2], (anchors[:, 2:] + anchors[:, :2]) / 2
        scores = rng.uniform(0, 1, (2, 1, 40, 2)).astype(np.float32)
        deltas = rng.normal(0, 1.5, (2, 1, 40, 4)).astype(np.float32)
        constants = {"wa": size[:, 1], "ha": size[:, 0], "xcenter": center[:, 1], "ycenter": center[:, 0]}
        keys: dict[str, Attribute] = {"width": 256, "height": 256, "score_threshold": 0.4}
        outputs = [Output((1, 30)), Output((1, 30, 4)), Output((1, 1)), Output((1, 1))]
        graph = float_layer("proposal", [scores, deltas], outputs, constants, [(0, 1), (0, 1)], **keys)
        values = internal_values(graph.nodes[0], graph.operands(0), [scores, deltas])
        hidden = [limits_of(v) for v in values]
        graph = float_layer("proposal", [scores, deltas], outputs, constants, hidden, **keys)
        return run_layer(graph, [scores, deltas], MODES[mode]), anchors, scores

    @pytest.mark.parametrize("mode", MODES)
    def test_boxes_scores_and_counts(self, mode: str) -> None:
        ran, anchors, _ = self._run(mode)
        scores, deltas = ran.inputs
        boxes = _decoded(anchors[None, None].astype(np.float64), deltas, self.DEVIATIONS, 256)
        # Tables at 2^shift round by half an entry of 2^-shift; the two products and the box round by a quantized value
        # each.
        params = ran.graph.nodes[0].params
        allowed = 256 * (0.5**params.shift + _entry(deltas, mode)) + 2 * ran.steps[1]
        threshold = (params.threshold - ran.graph.tensors[0].affine.zero_point[0]) * ran.graph.tensors[0].affine.scale
        for s in range(2):
            kept = np.flatnonzero(scores[s, 0, :, 1] > threshold[0] + 1e-9)[:30]
            assert ran.codes[2][s, 0, 0] == len(kept)
            assert ran.codes[3][s, 0, 0] == 1
            np.testing.assert_allclose(ran.outputs[0][s, 0, : len(kept)], scores[s, 0, kept, 1])
            assert np.abs(ran.outputs[1][s, 0, : len(kept)] - boxes[s, 0, kept]).max() <= allowed
            assert not ran.codes[1][s, 0, len(kept) :].any()

    def test_without_the_ranges_of_its_own_values_it_is_refused(self) -> None:
        ones = np.ones((1, 1, 4, 4), np.float32)
        graph = float_layer("proposal", [ones[..., :2], ones], [Output((1, 4))] * 4, {}, [(0, 1)], width=8, height=8)
        graph.nodes[0] = replace(graph.nodes[0], intermediates=None)
        with pytest.raises(GraphError, match="intermediate 0 has no type; give its tensor a range"):
            run_layer(graph, [ones[..., :2], ones], SYMMETRIC)


@pytest.mark.parametrize("mode", MODES)
def test_bounding_box(mode: str) -> None:
    rng = np.random.default_rng(31)
    rois = np.round(_boxes(rng, 30, 240, 20)[0] / 240, 3).astype(np.float32)
    deltas = rng.normal(0, 1, (1, 30, 4)).astype(np.float32)
    graph = float_layer("bounding_box", [rois[None], deltas[None]], [Output((1, 30, 4))], coordinate_order="YX")
    ran = run_layer(graph, [rois[None], deltas[None]], MODES[mode])
    wanted = _decoded(ran.inputs[0], ran.inputs[1], (10, 10, 5, 5), 1.0)
    # Centers and halves are whole quantized values of the boxes, the shared center once more, and 14 bits carry them to
    # 32767.
    step = float(ran.graph.tensors[0].affine.scale[0])
    assert np.abs(ran.outputs[0] - wanted).max() <= 3 * step + 2.0**-13 + _entry(ran.inputs[1], mode)


@pytest.mark.parametrize("mode", MODES)
def test_detection_output(mode: str) -> None:
    rng = np.random.default_rng(32)
    proposals = _boxes(rng, 12, 255, 24)
    scores = rng.uniform(0, 1, (1, 1, 12, 3)).astype(np.float32)
    deltas = rng.normal(0, 1, (1, 1, 12, 3, 4)).astype(np.float32)
    given = [scores, deltas, proposals]
    keys: dict[str, Attribute] = {"image_width": 255, "image_height": 255, "score_threshold": 0.5}
    keys["variance"] = (10.0, 10.0, 5.0, 5.0)
    outputs = [Output((1, 24)), Output((1, 24, 4)), Output((1, 2)), Output((1, 2)), Output((1, 1))]
    hidden: list[Limits] = [(0, 1)] * 3
    graph = float_layer("detection_output", given, outputs, hidden=hidden, **keys)
    hidden = [limits_of(v) for v in internal_values(graph.nodes[0], graph.operands(0), given)]
    ran = run_layer(float_layer("detection_output", given, outputs, hidden=hidden, **keys), given, MODES[mode])
    boxes = _decoded(ran.inputs[2][..., None, :], ran.inputs[1], (10, 10, 5, 5), 255)[0, 0, :, 1:]
    codes = np.rint(ran.inputs[0][0, 0, :, 1:] / ran.steps[0]).astype(int)
    kept = [(k, c) for c in range(2) for k in range(12) if codes[k, c] > ran.graph.nodes[0].params.threshold]
    assert ran.codes[2].tolist() == [[[sum(c == i for _, c in kept) for i in range(2)]]]
    assert ran.codes[3].tolist() == [[[0, 1]]]
    assert ran.codes[4].tolist() == [[[2]]]
    wanted = np.stack([boxes[k, c] for k, c in kept])
    np.testing.assert_allclose(ran.outputs[0][0, 0, : len(kept)], [ran.inputs[0][0, 0, k, c + 1] for k, c in kept])
    # Middles of boxes are halves of a quantized value of the proposals; sizes and moves round by 2^-8 of themselves at
    # most.
    step = float(ran.graph.tensors[2].affine.scale[0])
    assert np.abs(ran.outputs[1][0, 0, : len(kept)] - wanted).max() <= step / 2 + 255 * 2.0**-8


def _overlap(a: Doubles, b: Doubles) -> float:
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    shared = float(np.prod(np.maximum(sides, 0)))
    return shared / (float(np.prod(a[2:] - a[:2])) + float(np.prod(b[2:] - b[:2])) - shared)


def _suppressed(boxes: Doubles, scores: Doubles, overlap: float, threshold: float) -> list[int]:
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        if scores[i] > threshold and all(_overlap(boxes[i], boxes[k]) <= overlap for k in kept):
            kept.append(int(i))
    return kept


class TestNms:
    """NMS on two classes of boxes in pixels."""

    def _run(self, boxes: Array, scores: Array, settings: list[str], **keys: Attribute) -> Ran:
        count = boxes.shape[2]
        given = [boxes, np.array([[[count // 2, count - count // 2]]]), np.array([[[2]]]), scores]
        outputs = [Output((1, count, 4)), Output((1, 2)), Output((1, count)), Output((1, count))]
        keys = {"image_width": 300, "image_height": 300, "iou_threshold": 0.5, "score_threshold": 0.2, **keys}
        return run_layer(float_layer("nms", given, outputs, **keys), given, settings)

    @pytest.mark.parametrize(("settings", "side", "smallest"), [(SYMMETRIC, 255, 2), (WIDE, 2000, 3)])
    def test_hard(self, settings: list[str], side: int, smallest: int) -> None:
        rng = np.random.default_rng(33)
        boxes = np.repeat(_boxes(rng, 20, side, smallest), 3, axis=2)
        boxes[..., 2:] = np.maximum(boxes[..., :2] + 1, boxes[..., 2:] - rng.integers(0, 9, boxes[..., 2:].shape))
        scores = rng.permutation(60).reshape(1, 1, 60).astype(np.float32) / 64
        ran = self._run(boxes, scores, settings, areas_shift=0)
        for c, part in enumerate((slice(0, 30), slice(30, 60))):
            kept = _suppressed(ran.inputs[0][0, 0, part], ran.inputs[3][0, 0, part], 0.5, 0.2)
            start = 0 if c == 0 else int(ran.codes[1][0, 0, 0])
            found = ran.codes[3][0, 0, start : start + ran.codes[1][0, 0, c]].tolist()
            assert found == kept

    def test_small_boxes_are_lost_at_the_tools_shift_and_kept_apart_at_0(self) -> None:
        boxes = np.array([[[[10, 10, 40, 40], [11, 11, 41, 41], [0, 0, 200, 200], [0, 0, 200, 199]]]], np.float32)
        scores = np.array([[[0.9, 0.8, 0.7, 0.6]]], np.float32)
        assert self._run(boxes, scores, SYMMETRIC).codes[1].tolist() == [[[2, 1]]]
        assert self._run(boxes, scores, SYMMETRIC, areas_shift=0).codes[1].tolist() == [[[1, 1]]]

    def test_areas_of_16_bits_do_not_overflow(self) -> None:
        boxes = np.array([[[[0, 0, 65535, 65535], [0, 0, 65535, 60000], [5, 5, 65000, 65000], [9, 9, 20, 20]]]])
        scores = np.array([[[0.9, 0.8, 0.7, 0.6]]], np.float32)
        ran = self._run(boxes.astype(np.float32), scores, WIDE, areas_shift=0)
        assert ran.codes[1].tolist() == [[[1, 2]]]

    def test_gaussian(self) -> None:
        rng = np.random.default_rng(34)
        boxes = _boxes(rng, 20, 255, 60)
        scores = rng.permutation(20).reshape(1, 1, 20).astype(np.float32) / 20
        ran = self._run(boxes, scores, SYMMETRIC, method="GAUSSIAN", soft_nms_sigma=0.5, areas_shift=0)
        step = ran.steps[2]
        for c, part in enumerate((slice(0, 10), slice(10, 20))):
            start = 0 if c == 0 else int(ran.codes[1][0, 0, 0])
            found = ran.codes[3][0, 0, start : start + ran.codes[1][0, 0, c]].tolist()
            boxes_of, scores_of = ran.inputs[0][0, 0, part], ran.inputs[3][0, 0, part]
            for place, i in enumerate(found):
                kept = [_overlap(boxes_of[i], boxes_of[k]) for k in found[:place]]
                wanted = scores_of[i] * np.prod(np.exp(-np.square(kept)))
                # Each box kept before floors the score once and its overlap to a step of 1/255.
                assert abs(ran.outputs[2][0, 0, start + place] - wanted) <= (place + 1) * (step + 2 / 255)

    def test_another_method_is_refused(self) -> None:
        with pytest.raises(UnsupportedError, match="method=LINEAR; allowed is HARD, GAUSSIAN"):
            self._run(np.ones((1, 1, 2, 4), np.float32), np.ones((1, 1, 2), np.float32), SYMMETRIC, method="LINEAR")
