"""apply_box_deltas in whole numbers against Mask R-CNN's float formula, at the widths of chapter 5."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.errors import UnsupportedError
from tflq.graph import DType, GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.aipu.bounding_box import BoundingBoxParams
from tflq.interpreter.kernels.aipu.scales import affine_of

COUNT = 400
REACH = 8.0


def decode(boxes: np.ndarray, deltas: np.ndarray) -> np.ndarray:
    """Mask R-CNN, apply_box_deltas_graph, and the clipping behind it."""
    height, width = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    center_y = boxes[:, 0] + 0.5 * height + deltas[:, 0] / 10 * height
    center_x = boxes[:, 1] + 0.5 * width + deltas[:, 1] / 10 * width
    height, width = height * np.exp(deltas[:, 2] / 5), width * np.exp(deltas[:, 3] / 5)
    corners = [center_y - height / 2, center_x - width / 2, center_y + height / 2, center_x + width / 2]
    return np.clip(np.stack(corners, axis=1), 0, 1)


def largest_error(bits: int, sizes: tuple[float, float] = (0.05, 0.4)) -> float:
    """The largest difference of a corner, as part of the image, of boxes of such sizes."""
    rng = np.random.default_rng(bits)
    top, dtype = (1 << bits) - 1, {8: (DType.UINT8, DType.INT8), 16: (DType.UINT16, DType.INT16)}[bits]
    of_boxes, of_deltas = affine_of(np.float32(top), 0, bits, False), affine_of(np.float32(top / 2 / REACH), 0, bits)
    low = rng.uniform(0, 0.6, (COUNT, 2))
    boxes = np.rint(np.concatenate([low, low + rng.uniform(*sizes, (COUNT, 2))], axis=1) * top)
    deltas = rng.integers(-(top // 2), top // 2, (COUNT, 4))
    builder = GraphBuilder()
    x = builder.input("boxes", (1, COUNT, 4), dtype[0], of_boxes)
    d = builder.input("deltas", (1, COUNT, 4), dtype[1], of_deltas)
    keys = {"std_div": (10.0, 10.0, 5.0, 5.0), "lut_items_in_bits": 10}
    y = builder.add("bounding_box", [x, d], (1, COUNT, 4), DType.INT16, affine_of(np.float32(32767), 0, 16), 1, **keys)
    inputs = [boxes[None, None].astype(dtype[0].storage), deltas[None, None].astype(dtype[1].storage)]
    found = Engine(builder.build([y]), "aipu").run(inputs)[y][0, 0] / 32767
    return float(np.abs(found - decode(boxes / top, deltas * of_deltas.scale[0])).max())


@pytest.mark.parametrize(("bits", "codes"), [(8, 4.0), (16, 180.0)])
def test_corners_are_right_to_a_few_codes(bits: int, codes: float) -> None:
    """A corner loses quantized values of the box to whole centers and halves.

    And 16 bits a part to 1023 steps of the table.
    """
    assert largest_error(bits) < codes / ((1 << bits) - 1)


def test_small_boxes_need_sixteen_bits() -> None:
    """A box of 2 to 4 percent of the image is 5 to 10 quantized values of 8 bits.

    A corner may be a quarter of it away.
    """
    assert largest_error(8, (0.02, 0.04)) > 0.02 / 4
    assert largest_error(16, (0.02, 0.04)) < 0.02 / 50


def by_hand(params: BoundingBoxParams, box: list[int], delta: list[int], widths: tuple[int, int]) -> list[int]:
    """One box in Python's integers, as docs/rules/aipu/boxes.md and the Optimizer's ops/boundingbox.py have it."""
    v, d = [b + params.offsets[0] for b in box], [c + params.offsets[1] for c in delta]
    most = 1 << (sum(widths) - 1)
    m, n = int(params.output.m[0]), int(params.output.n[0])
    near, far = [], []
    for axis in (0, 1):
        size, middle = v[axis + 2] - v[axis], (v[axis] + v[axis + 2]) // 2
        move, late = params.moves[axis], int(params.moves[axis].n[0]) - params.early_shift
        scaled = (size * int(move.m[0])) >> params.early_shift
        center = ((d[axis] * scaled + (1 << (late - 1))) >> late) + middle
        center = min(max(center, -most), most - 1)
        grown, half = int(params.growths[axis].lookup(np.array([delta[axis + 2]]))[0]), params.halves[axis]
        factor = (grown * int(half.m[0])) >> 16
        reach = min(max((size * factor) >> (int(half.n[0]) - 16), 0), (1 << widths[0]) - 1)
        near.append(center - reach)
        far.append(center + reach)
    half_up = 1 << (n - 1) if n > 1 else 0
    return [min(max((c * m + half_up) >> n, 0), 32767) for c in (*near, *far)]


@pytest.mark.parametrize("largest", [1.0, 0.002, 0.0003, 32.0, 64.0])
@pytest.mark.parametrize(("zp", "reach"), [(0, 2.0), (5, 2.0), (-7, 30.0), (0, 60.0), (0, 4000.0)])
@pytest.mark.parametrize(("roi_bits", "delta_bits"), [(8, 8), (16, 8), (16, 16), (8, 16)])
def test_boxes_in_integers(roi_bits: int, delta_bits: int, zp: int, reach: float, largest: float) -> None:
    """Boxes of any size and deltas of any reach, so that centers, halves and corners end at their limits."""
    rng = np.random.default_rng(delta_bits)
    top = (1 << roi_bits) - 1
    unsigned, signed = {8: DType.UINT8, 16: DType.UINT16}[roi_bits], {8: DType.INT8, 16: DType.INT16}[delta_bits]
    of_boxes = affine_of(np.float32(top / largest), 0, roi_bits, False)
    of_deltas = affine_of(np.float32(((1 << (delta_bits - 1)) - 1) / reach), zp, delta_bits)
    builder = GraphBuilder()
    x = builder.input("boxes", (1, COUNT, 4), unsigned, of_boxes)
    d = builder.input("deltas", (1, COUNT, 4), signed, of_deltas)
    y = builder.add("bounding_box", [x, d], (1, COUNT, 4), DType.INT16, affine_of(np.float32(32767), 0, 16))
    graph = lower(builder.build([y]), "aipu")
    boxes = rng.integers(0, top + 1, (COUNT, 4))
    boxes[::3] = np.sort(boxes[::3].reshape(-1, 2, 2), axis=1).reshape(-1, 4)
    boxes[::7] = rng.choice([0, 1, top - 1, top], (len(boxes[::7]), 4))
    deltas = rng.integers(signed.minimum, signed.maximum + 1, (COUNT, 4))
    deltas[::5] = rng.choice([signed.minimum, 0, signed.maximum], (len(deltas[::5]), 4))
    given = [v[None, None].astype(kind.storage) for v, kind in ((boxes, unsigned), (deltas, signed))]
    found = Engine(graph).run(given)[y][0, 0]
    params = graph.nodes[0].params
    assert isinstance(params, BoundingBoxParams)
    widths = (roi_bits, delta_bits)
    assert params.early_shift == sum(widths) + 17 - 32 + (zp != 0)
    for k in range(COUNT):
        assert found[k].tolist() == by_hand(params, boxes[k].tolist(), deltas[k].tolist(), widths), k


@pytest.mark.parametrize(("largest", "shift"), [(32.0, 1), (100.0, 0), (127.0, 0), (128.5, None), (640.0, None)])
def test_boxes_in_pixels_leave_no_shift(largest: float, shift: int | None) -> None:
    """32767 / scale is 128.5 times the largest corner for 8 bits, and the multiplier has 14 bits."""
    builder = GraphBuilder()
    x = builder.input("boxes", (1, 3, 4), DType.UINT8, affine_of(np.float32(255 / largest), 0, 8, False))
    d = builder.input("deltas", (1, 3, 4), DType.INT8, affine_of(np.float32(64), 0, 8))
    y = builder.add("bounding_box", [x, d], (1, 3, 4), DType.INT16, affine_of(np.float32(32767), 0, 16))
    graph = builder.build([y])
    if shift is None:
        with pytest.raises(UnsupportedError, match=rf"which reach {largest:g}, leave no shift; corners are parts of"):
            lower(graph, "aipu")
    else:
        params = lower(graph, "aipu").nodes[0].params
        assert isinstance(params, BoundingBoxParams)
        assert params.output.n.tolist() == [shift]
