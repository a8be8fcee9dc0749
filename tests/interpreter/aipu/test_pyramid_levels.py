"""PyramidROIAlign with one output scale against tensorflow's crop_and_resize, on maps that are not square."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tflq.converters.aipu.operators.boxes import shared_map
from tflq.errors import UnsupportedError
from tflq.graph import Affine, DType, Graph, GraphBuilder, Tensor
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.aipu.pyramid_levels import PyramidLevelsParams
from tflq.interpreter.kernels.aipu.scales import affine_of

SIZES = ((24, 32), (12, 16), (6, 8), (3, 4))
HEIGHT, WIDTH, CANONICAL = 96, 128, 32.0
ROWS, COLUMNS, CHANNELS = 5, 7, 3
BOX_BITS = {
    16: (DType.INT16, affine_of(np.float32(32767), 0, 16)),
    8: (DType.UINT8, affine_of(np.float32(255), 0, 8, False)),
}


def layer(maps: list[Affine], output: Affine, box_bits: int = 16, boxes: int = 40) -> Graph:
    builder = GraphBuilder()
    x = builder.input("boxes", (1, boxes, 4), *BOX_BITS[box_bits])
    dtype = DType.INT16 if output.bits == 16 else DType.INT8
    pyramid = [
        builder.input(f"p{i}", (1, *size, CHANNELS), dtype, affine)
        for i, (size, affine) in enumerate(zip(SIZES, maps, strict=False))
    ]
    y = builder.add(
        "pyramid_roi_align",
        [x, *pyramid],
        (boxes, ROWS, COLUMNS, CHANNELS),
        dtype,
        output,
        1,
        proposal_normalized=True,
        canonical_size=CANONICAL,
        image_height=HEIGHT,
        image_width=WIDTH,
    )
    return builder.build([y])


def random_boxes(rng: np.random.Generator, count: int) -> np.ndarray:
    """Boxes from 3 to 90 pixels, of every level, as quantized values of 16 bits."""
    sizes = np.exp(rng.uniform(np.log(3), np.log(90), (count, 2))) / [HEIGHT, WIDTH]
    low = rng.uniform(0, 1, (count, 2)) * np.maximum(1 - sizes, 0)
    return np.rint(np.clip(np.concatenate([low, low + sizes], axis=1), 0, 1) * 32767).astype(np.int16)


def expected(boxes: np.ndarray, maps: list[np.ndarray]) -> np.ndarray:
    """Mask R-CNN's own rule of levels, and tensorflow's bilinear crop."""
    tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed (tflq[tensorflow])")
    size = (boxes[:, 2:] - boxes[:, :2]) * [HEIGHT, WIDTH]
    level = np.clip(4 + np.rint(np.log2(np.sqrt(size.prod(axis=1)) / CANONICAL)), 2, 5).astype(int) - 2
    assert set(level) == {0, 1, 2, 3}
    crops = [
        tf.image.crop_and_resize(x[None], boxes, np.zeros(len(boxes), np.int32), (ROWS, COLUMNS)).numpy() for x in maps
    ]
    return np.stack([crops[i][row] for row, i in enumerate(level)])


@pytest.mark.parametrize("bits", [8, 16])
def test_agrees_with_tensorflow_on_every_level(bits: int) -> None:
    """Within half a quantized value of the output, 1 / 256 of the value for M, and what a position's rounding moves."""
    rng = np.random.default_rng(3)
    full = (1 << bits) - 1
    maps = [affine_of(np.float32(full / 2 / limit), 0, bits) for limit in (3.0, 2.5, 3.5, 2.0)]
    output = maps[0]
    codes = [rng.integers(-full // 3, full // 3, (2, 1, *size, CHANNELS)) for size in SIZES]
    boxes = np.stack([random_boxes(rng, 40) for _ in range(2)])
    graph = layer(maps, output, boxes=40)
    stored = [c.astype(np.int16 if bits == 16 else np.int8) for c in codes]
    found = Engine(graph, "aipu").run([boxes[:, None], *stored])[graph.outputs[0]]
    step = float(output.scale[0])
    for sample in range(2):
        real = [(c[sample, 0] * m.scale[0]).astype(np.float32) for c, m in zip(codes, maps, strict=True)]
        wanted = expected((boxes[sample] / 32767.0).astype(np.float32), real)
        fraction = 10 if bits == 8 else 7
        moved = 4.0 * 3 * 2.0**-fraction
        error = np.abs(found[sample] * step - wanted)
        assert error.max() <= 0.5 * step + np.abs(wanted).max() / (256 if bits == 8 else 1 << 14) + moved


def test_zero_points_are_taken_away_and_put_back() -> None:
    rng = np.random.default_rng(4)
    plain = [affine_of(np.float32(40), 0)] * 4
    shifted = [affine_of(np.float32(40), 5)] * 4
    boxes = random_boxes(rng, 40)[None, None]
    codes = [rng.integers(-100, 100, (1, 1, *size, CHANNELS)).astype(np.int8) for size in SIZES]
    first = Engine(layer(plain, plain[0]), "aipu").run([boxes, *codes])
    second = Engine(layer(shifted, shifted[0]), "aipu").run([boxes, *[c - np.int8(5) for c in codes]])
    assert np.array_equal(*(next(iter(run.values())) + o for run, o in ((first, 0), (second, 5))))


def test_sums_of_extreme_codes_stay_within_31_bits() -> None:
    """A map of the lowest quantized value gives it back everywhere, also at 16 bits."""
    for bits in (8, 16):
        maps = [affine_of(np.float32(1), 0, bits)] * 4
        low = -(1 << (bits - 1))
        codes = [np.full((1, 1, *size, CHANNELS), low, np.int16 if bits == 16 else np.int8) for size in SIZES]
        boxes = random_boxes(np.random.default_rng(5), 40)[None, None]
        (found,) = Engine(layer(maps, maps[0]), "aipu").run([boxes, *codes]).values()
        assert np.all(found == low)


def test_boxes_of_8_bits_choose_the_same_levels() -> None:
    maps = [affine_of(np.float32(1 + i), 0) for i in range(4)]
    boxes = np.array([[[0, 0, 255, 255], [0, 0, 20, 20], [0, 0, 60, 60], [100, 100, 200, 200]]], np.uint8)
    codes = [np.full((1, 1, *size, CHANNELS), 8 * (i + 1), np.int8) for i, size in enumerate(SIZES)]
    (found,) = Engine(layer(maps, maps[0], 8, 4), "aipu").run([boxes[None], *codes]).values()
    assert np.all(found == 8)


def test_three_maps_are_refused() -> None:
    maps = [affine_of(np.float32(1), 0)] * 3
    with pytest.raises(UnsupportedError, match="3 maps"):
        Engine(layer(maps, maps[0]), "aipu")


def test_the_shared_type_is_the_papers_choice() -> None:
    """P2 to P5 of the whitepaper's 5.1.3.4, which takes P2."""
    largest = (26.95, 25.42, 31.63, 20.97)
    maps = [Tensor(f"p{i}", (1,), DType.INT8, affine_of(np.float32(127.5 / v), 0)) for i, v in enumerate(largest, 2)]
    assert shared_map(maps).name == "p2"


@pytest.mark.parametrize(("size", "allowed"), [((2, 2), True), ((2, 9), True), ((1, 5), False), ((5, 1), False)])
def test_rows_and_columns(size: tuple[int, int], allowed: bool) -> None:
    plain, builder = affine_of(np.float32(40), 0), GraphBuilder()
    x = builder.input("boxes", (1, 2, 4), *BOX_BITS[16])
    maps = [builder.input(f"p{i}", (1, *side, CHANNELS), DType.INT8, plain) for i, side in enumerate(SIZES)]
    keys = {"proposal_normalized": True, "canonical_size": CANONICAL}
    y = builder.add("pyramid_roi_align", [x, *maps], (2, *size, CHANNELS), DType.INT8, plain, **keys)
    graph = builder.build([y])
    if allowed:
        Engine(graph, "aipu")
        return
    with pytest.raises(UnsupportedError, match=r"4 maps to \(\d, \d\); allowed are 4 maps and two rows and columns"):
        Engine(graph, "aipu")


@pytest.mark.parametrize(("canonical", "image"), [(224.0, {}), (32.0, {"image_height": 96, "image_width": 128})])
def test_limits_of_the_levels(canonical: float, image: dict[str, int]) -> None:
    """A box of the canonical size belongs to the third map; images are 1024 x 1024 unless the layer says otherwise."""
    plain, builder = affine_of(np.float32(40), 0), GraphBuilder()
    x = builder.input("boxes", (1, 2, 4), *BOX_BITS[16])
    maps = [builder.input(f"p{i}", (1, *side, CHANNELS), DType.INT8, plain) for i, side in enumerate(SIZES)]
    keys = {"proposal_normalized": True, "canonical_size": canonical, **image}
    y = builder.add("pyramid_roi_align", [x, *maps], (2, 2, 3, CHANNELS), DType.INT8, plain, **keys)
    params = lower(builder.build([y]), "aipu").nodes[0].params
    assert isinstance(params, PyramidLevelsParams)
    pixels = 96 * 128 if image else 1024 * 1024
    sides = [canonical * 2**power for power in (-1.5, -0.5, 0.5)]
    assert list(params.limits) == [math.floor(side**2 / pixels * 32767**2 + 0.5) for side in sides]
