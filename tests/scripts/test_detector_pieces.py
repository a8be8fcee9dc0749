"""The detector's parts one by one: scenes, anchors, proposals, crops and suppression, against tensorflow or by hand."""

from __future__ import annotations

import numpy as np
import pytest
from detector.anchors import anchors, apply_deltas, deltas_between
from detector.float_detector import BEFORE_NMS, REGIONS, proposals, suppress
from detector.integer_layers import proposal_graph
from detector.network import RATIOS, STRIDES
from detector.regions import crop_and_resize, levels_of
from detector.scenes import CLASSES, HEIGHT, WIDTH, scenes, shape_mask

from tflq import Affine, DType, Engine, Tensor


def tensorflow():
    return pytest.importorskip("tensorflow", reason="tensorflow is not installed (tflq[tensorflow])")


def random_boxes(rng: np.random.Generator, count: int) -> np.ndarray:
    size = np.exp(rng.uniform(np.log(0.01), np.log(0.6), (count, 2)))
    low = rng.uniform(0, 1 - size)
    return np.concatenate([low, low + size], axis=1)


def test_scenes_repeat_and_boxes_hold_their_shapes() -> None:
    first, again = list(scenes(3, 7)), list(scenes(3, 7))
    for a, b in zip(first, again, strict=True):
        assert np.array_equal(a.image, b.image)
        assert np.array_equal(a.boxes, b.boxes)
        assert a.image.shape == (HEIGHT, WIDTH, 3)
        for box, mask in zip(a.boxes * [HEIGHT, WIDTH, HEIGHT, WIDTH], a.masks, strict=True):
            rows, columns = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
            drawn = np.array([rows[0], columns[0], rows[-1] + 1, columns[-1] + 1])
            assert np.abs(drawn - box).max() <= 2
    assert not np.array_equal(first[0].image, first[1].image)


def test_areas_of_shapes() -> None:
    box = np.array([10.0, 20.0, 74.0, 148.0])
    rectangle, ellipse, triangle = (shape_mask(CLASSES.index(name), box).sum() / (64 * 128) for name in CLASSES[1:])
    assert rectangle == 1
    assert ellipse == pytest.approx(np.pi / 4, abs=0.01)
    assert triangle == pytest.approx(1 / 2, abs=0.01)


def test_anchors_cover_the_maps_and_their_ratios() -> None:
    boxes = anchors()
    assert len(boxes) == sum(HEIGHT // s * (WIDTH // s) for s in STRIDES) * len(RATIOS)
    middle = (HEIGHT // 8 * (WIDTH // 4) + WIDTH // 8) * len(RATIOS)
    sizes = (boxes[middle : middle + 3, 2:] - boxes[middle : middle + 3, :2]) * [HEIGHT, WIDTH]
    assert np.allclose(sizes[:, 0] / sizes[:, 1], RATIOS)
    assert np.allclose(sizes.prod(axis=1), 64)


def test_deltas_are_the_inverse_of_applying_them() -> None:
    rng = np.random.default_rng(1)
    boxes, targets = random_boxes(rng, 50), random_boxes(rng, 50)
    assert np.allclose(apply_deltas(boxes, deltas_between(boxes, targets)), targets)


def test_crops_are_tensorflows() -> None:
    rng = np.random.default_rng(2)
    features = rng.normal(size=(6, 32, 5)).astype(np.float32)
    boxes = random_boxes(rng, 30)
    wanted = tensorflow().image.crop_and_resize(features[None], boxes, np.zeros(30, np.int32), (7, 7)).numpy()
    assert np.allclose(crop_and_resize(features, boxes, 7), wanted, atol=2e-5)


def test_levels_are_those_of_the_pyramid_paper() -> None:
    """Feature Pyramid Networks, equation 1, with 32 pixels in place of 224."""
    boxes = random_boxes(np.random.default_rng(3), 500)
    side = np.sqrt(((boxes[:, 2:] - boxes[:, :2]) * [HEIGHT, WIDTH]).prod(axis=1))
    expected = np.clip(4 + np.rint(np.log2(side / 32)), 2, 5) - 2
    assert np.array_equal(levels_of(boxes), expected)


@pytest.mark.parametrize("overlap", [0.3, 0.7])
def test_suppression_is_tensorflows(overlap: float) -> None:
    rng = np.random.default_rng(4)
    boxes = random_boxes(rng, 300)
    scores = rng.permutation(300) / 300
    values = boxes.astype(np.float32), scores.astype(np.float32)
    wanted = tensorflow().image.non_max_suppression(*values, 40, overlap).numpy()
    assert np.array_equal(suppress(boxes, scores, overlap, 40), wanted)


def integer_proposals(scores: np.ndarray, deltas: np.ndarray, bits: int) -> np.ndarray:
    """Regions of scores 0..1 and deltas within 8, both of `bits` bits, as parts of the image."""
    top, count = (1 << bits) - 1, len(scores)
    unsigned, signed = {8: (DType.UINT8, DType.INT8), 16: (DType.UINT16, DType.INT16)}[bits]
    unit, moves = Affine.per_tensor(1 / top, 0, bits, signed=False), Affine.per_tensor(16 / top, 0, bits)
    score_type = Tensor("scores", (1, count, 2), unsigned, unit)
    delta_type = Tensor("deltas", (1, count, 4), signed, moves)
    codes = np.rint(anchors()[None] * top).astype(unsigned.storage)
    graph = proposal_graph(score_type, delta_type, codes, unit)
    pairs = np.rint(np.stack([1 - scores, scores], axis=-1) * top).astype(unsigned.storage)
    steps = np.clip(np.rint(deltas * top / 16), -(top // 2), top // 2).astype(signed.storage)
    found = Engine(graph, "aipu").run([pairs[None, None], steps[None, None]])
    assert found[graph.outputs[1]][0, 0, 0] == REGIONS
    return found[graph.outputs[0]][0, 0] / 32767


def test_proposals_in_sixteen_bits_are_the_float_ones() -> None:
    """The layer as a whole; its two steps are compared one by one in tests/interpreter/aipu."""
    rng = np.random.default_rng(5)
    count = len(anchors())
    scores = np.zeros(count)
    scores[rng.choice(count, 2 * BEFORE_NMS, replace=False)] = rng.permutation(2 * BEFORE_NMS) / (2 * BEFORE_NMS)
    deltas = rng.normal(0, 1, (count, 4))
    wanted = proposals(scores.astype(np.float32), deltas.astype(np.float32))

    def near(bits: int) -> float:
        found = integer_proposals(scores, deltas, bits)
        return float(np.mean(np.abs(found[:, None] - wanted[None]).max(axis=-1).min(axis=0) < 0.002))

    assert near(16) > 0.95
    assert near(8) < 0.8
