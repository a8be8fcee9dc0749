"""Layers that sample regions of feature maps beside their float definition, within what their bits allow."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.aipu_layers import MODES, Output, Ran, float_layer, run_layer
from tflq.errors import UnsupportedError
from tflq.graph import Array
from tflq.graph.attributes import Attribute

Doubles = NDArray[np.float64]
SYMMETRIC, WIDE = MODES["symmetric"], MODES["16 bits"]
SIDE = 255.0
"""Boxes reach from 0 to 255, so that a quantized value of 8 bits without sign stands for a pixel."""


def _maps(height: int, width: int, channels: int = 2) -> Array:
    """Return a smooth map [1, 1, H, W, C] that is not symmetric."""
    y, x = np.meshgrid(np.linspace(0, 1, height), np.linspace(0, 1, width), indexing="ij")
    planes = [np.sin(3 * y + 2 * x + c) + (c + 1) * x for c in range(channels)]
    return np.stack(planes, axis=-1)[None, None].astype(np.float32)


def _regions(count: int, smallest: int = 8) -> Array:
    """Return boxes [count, 4] of whole pixels; the first is the whole image."""
    rng = np.random.default_rng(40)
    start = rng.integers(0, int(SIDE) - smallest, (count, 2))
    end = np.minimum(start + rng.integers(smallest, 200, (count, 2)), int(SIDE))
    boxes = np.concatenate([start, end], axis=1).astype(np.float32)
    boxes[0] = (0, 0, SIDE, SIDE)
    return boxes


def _bilinear(image: Doubles, y: float, x: float) -> Doubles:
    top, left = (int(np.clip(np.floor(v), 0, n - 1)) for v, n in zip((y, x), image.shape[:2], strict=True))
    bottom, right = min(top + 1, image.shape[0] - 1), min(left + 1, image.shape[1] - 1)
    fy, fx = np.clip(y - top, 0, 1), np.clip(x - left, 0, 1)
    above = image[top, left] * (1 - fx) + image[top, right] * fx
    below = image[bottom, left] * (1 - fx) + image[bottom, right] * fx
    return np.asarray(above * (1 - fy) + below * fy)


def _aligned(image: Doubles, box: Doubles, scale: float, bins: tuple[int, int], samples: int) -> Doubles:
    """Return RoIAlign's average (He et al., arXiv:1703.06870) without the shift by half a pixel."""
    start, end = box[:2] * scale, box[2:] * scale
    step = np.maximum(end - start, 1) / bins
    found = np.zeros((*bins, image.shape[2]))
    for i, j in np.ndindex(*bins):
        for k, m in np.ndindex(samples, samples):
            y, x = start + step * (np.array([i, j]) + (np.array([k, m]) + 0.5) / samples)
            found[i, j] += _bilinear(image, y, x) / samples**2
    return found


def _slope(image: Doubles) -> float:
    """Return the largest difference between neighbors of a map."""
    return float(max(np.abs(np.diff(image, axis=axis)).max() for axis in (0, 1)))


def _numbered(boxes: Array) -> Array:
    return np.concatenate([np.zeros((len(boxes), 1), np.float32), boxes], axis=1)[None]


def _roi_align(settings: list[str], **keys: Attribute) -> tuple[Ran, Array]:
    maps, boxes = _maps(33, 65), _regions(6)
    keys = {"method": "AVG", "pooled_shape": (3, 4), "spatial_scale_value": (0.125, 0.25), "sample": (2, 2), **keys}
    keys = {"coordinate_transformation_mode": "OUTPUT_HALF_PIXEL", **keys}
    given = [maps, _numbered(boxes)]
    return run_layer(float_layer("roi_align", given, [Output((6, 3, 4, 2))], **keys), given, settings), boxes


@pytest.mark.parametrize("mode", MODES)
def test_roi_align_of_a_map_that_is_not_square(mode: str) -> None:
    ran, boxes = _roi_align(MODES[mode])
    image = ran.inputs[0][0, 0]
    for r, box in enumerate(boxes.astype(np.float64)):
        scaled = box * np.array([0.125, 0.25, 0.125, 0.25])
        wanted = _aligned(image, scaled, 1.0, (3, 4), 2)
        # Coordinates lose their fraction, so up to a pixel of the image; then 10 bits of fraction, the mean, the code.
        moved = 0.25 + 2.0**-6
        allowed = 2 * moved * _slope(image) + np.abs(wanted) * 2.0**-7 + 2 * ran.steps[0]
        assert (np.abs(ran.outputs[0][0, r] - wanted) <= allowed).all()


def test_roi_align_leaves_out_boxes_that_end_behind_the_map_or_before_they_start() -> None:
    maps = _maps(33, 65)
    boxes = np.array([[10, 10, 200, 200], [50, 50, 40, 90], [0, 0, 255, 255]], np.float32)
    keys: dict[str, Attribute] = {"method": "AVG", "pooled_shape": (2, 2), "spatial_scale_value": (0.25, 0.25)}
    keys |= {"sample": (2, 2), "coordinate_transformation_mode": "OUTPUT_HALF_PIXEL"}
    given = [maps, _numbered(boxes)]
    ran = run_layer(float_layer("roi_align", given, [Output((3, 2, 2, 2))], **keys), given, SYMMETRIC)
    assert not ran.outputs[0].any()


@pytest.mark.parametrize("samples", [(2, 2), (1, 3), (0, 0)])
@pytest.mark.parametrize("method", ["AVG", "MAX"])
def test_roi_align_takes_a_pixel_for_boxes_that_are_smaller(samples: tuple[int, int], method: str) -> None:
    """A point and a line become boxes of a pixel, here 4 by 4 of the image, unless boxes move by half one."""
    sizes = ((0, 0), (0, 2), (3, 0), (4, 4))
    boxes = np.array([(40, 60, 40 + h, 60 + w) for h, w in sizes], np.float32)
    keys: dict[str, Attribute] = {"method": method, "pooled_shape": (2, 3), "spatial_scale_value": (0.25, 0.25)}
    given = [_maps(33, 65), _numbered(boxes)]
    graph = float_layer(
        "roi_align",
        given,
        [Output((4, 2, 3, 2))],
        **keys,
        sample=samples,
        coordinate_transformation_mode="OUTPUT_HALF_PIXEL",
    )
    ran = run_layer(graph, given, WIDE)
    point, *others = ran.codes[0][0]
    assert np.abs(point).max() > 0
    for other in others:
        np.testing.assert_allclose(other, point, atol=2)


def test_roi_align_refuses_other_methods_and_coordinates() -> None:
    with pytest.raises(UnsupportedError, match="method=MIN; allowed is AVG, MAX"):
        _roi_align(SYMMETRIC, method="MIN")
    with pytest.raises(UnsupportedError, match="mode=PIXEL; allowed is HALF_PIXEL, OUTPUT_HALF_PIXEL"):
        _roi_align(SYMMETRIC, coordinate_transformation_mode="PIXEL")


@pytest.mark.parametrize("mode", ["symmetric", "asymmetric", "16 bits"])
def test_max_roi_pool(mode: str) -> None:
    maps, boxes = _maps(33, 65), _regions(8)
    given = [maps, _numbered(boxes)]
    graph = float_layer("max_roi_pool", given, [Output((8, 3, 4, 2))], pooled_shape=(3, 4), spatial=(0.125, 0.25))
    ran = run_layer(graph, given, MODES[mode])
    image = ran.inputs[0][0, 0]
    for r, box in enumerate(boxes.astype(int)):
        corners = np.floor(box * np.array([0.125, 0.25, 0.125, 0.25]) + 0.5).astype(int)
        sizes = np.maximum(corners[2:] - corners[:2] + 1, 1)
        for i, j in np.ndindex(3, 4):
            first = corners[:2] + np.array([i * sizes[0] // 3, j * sizes[1] // 4])
            last = corners[:2] + np.array([-(-(i + 1) * sizes[0] // 3), -(-(j + 1) * sizes[1] // 4)])
            window = image[first[0] : last[0], first[1] : last[1]]
            wanted = window.max(axis=(0, 1)) if window.size else 0 * image[0, 0]
            np.testing.assert_allclose(ran.outputs[0][0, r, i, j], wanted, atol=1e-9)


def test_max_roi_pool_refuses_several_images() -> None:
    given = [np.concatenate([_maps(9, 9)] * 2, axis=1), _numbered(_regions(2))]
    graph = float_layer("max_roi_pool", given, [Output((2, 2, 2, 2))], pooled_shape=(2, 2), spatial=(0.1, 0.1))
    with pytest.raises(UnsupportedError, match="features of 2 images; allowed is 1"):
        run_layer(graph, given, SYMMETRIC)


SCALES = (0.25, 0.125, 0.0625, 0.03125)


@pytest.mark.parametrize("mode", MODES)
def test_pyramid_roi_align_of_boxes_in_pixels(mode: str) -> None:
    sides = [(64, 68), (32, 34), (16, 17), (8, 9)]
    maps, boxes = [_maps(*side) for side in sides], _regions(10)
    boxes[1:4] = [[3, 5, 90, 100], [10, 0, 120, 200], [0, 0, 230, 255]]
    keys: dict[str, Attribute] = {"resize_width": 3, "resize_height": 2, "image_width": 272, "image_height": 256}
    keys |= {"sample": (2, 2), "spatial_scale_value": SCALES, "proposal_normalized": False}
    keys["coordinate_transformation_mode"] = "OUTPUT_HALF_PIXEL"
    given = [boxes[None, None], *maps]
    graph = float_layer("pyramid_roi_align", given, [Output((10, 2, 3, 2), (-1, 3))], **keys)
    ran = run_layer(graph, given, MODES[mode])
    area = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    levels = np.clip(np.floor(4 + np.log2(np.sqrt(area) / 224) + 1e-6), 2, 5).astype(int) - 2
    assert set(levels) == {0, 1, 2}
    for r, (box, level) in enumerate(zip(boxes.astype(np.float64), levels, strict=True)):
        image = ran.inputs[1 + level][0, 0]
        wanted = _aligned(image, box, SCALES[level], (2, 3), 2)
        allowed = 2.0**-4 * _slope(image) + np.abs(wanted) * 2.0**-7 + 1.5 * ran.steps[0]
        assert (np.abs(ran.outputs[0][0, r] - wanted) <= allowed).all()


def _cropped(image: Doubles, box: Doubles, bins: tuple[int, int]) -> Doubles:
    """Return tf.image.crop_and_resize: the first and the last bin lie on the box's edges."""
    sides = np.array(image.shape[:2]) - 1
    found = np.zeros((*bins, image.shape[2]))
    for i, j in np.ndindex(*bins):
        part = np.array([i, j]) / (np.array(bins) - 1)
        y, x = np.clip((box[:2] + part * (box[2:] - box[:2])) * sides, 0, sides)
        found[i, j] = _bilinear(image, y, x)
    return found


def test_pyramid_roi_align_of_boxes_in_parts_of_the_image() -> None:
    sides = [(65, 33), (33, 17), (17, 9), (9, 5)]
    maps = [np.clip(_maps(*side), -2, 2) for side in sides]
    for features in maps:
        features[0, 0, 0, 0] = 2, -2
    boxes = (_regions(10) / np.float32(SIDE)).astype(np.float32)
    keys: dict[str, Attribute] = {"resize_width": 3, "resize_height": 4, "proposal_normalized": True}
    given = [boxes[None, None], *maps]
    ran = run_layer(float_layer("pyramid_roi_align", given, [Output((10, 4, 3, 2))], **keys), given, WIDE)
    real = ran.inputs[0][0, 0]
    area = np.prod(real[:, 2:] - real[:, :2], axis=1)
    levels = np.searchsorted([0.0059785, 0.023914, 0.095656], area)
    assert set(levels) >= {2, 3}
    for r, (box, level) in enumerate(zip(real, levels, strict=True)):
        image = ran.inputs[1 + level][0, 0]
        wanted = _cropped(image, box, (4, 3))
        allowed = 2.0**-8 * _slope(image) + 2 * ran.steps[0]
        assert (np.abs(ran.outputs[0][0, r] - wanted) <= allowed).all()


def test_pyramid_roi_align_refuses_maps_of_several_scales() -> None:
    given = [(_regions(2) / np.float32(SIDE))[None, None], *(_maps(9, 9) * k for k in (1, 2, 3, 4))]
    keys: dict[str, Attribute] = {"resize_width": 3, "resize_height": 4, "proposal_normalized": True}
    graph = float_layer("pyramid_roi_align", given, [Output((2, 4, 3, 2))], **keys)
    with pytest.raises(UnsupportedError, match="allowed is one for all: give them one range"):
        run_layer(graph, given, SYMMETRIC)
