"""Levels of calibrated ranges and codes of weights, by the formulas of docs/targets/openvino.md in Python's
fractions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tests.converters.openvino.networks import WINDOW, with_ranges
from tflq.converters.calibration.ranges import range_of
from tflq.converters.openvino import OPENVINO
from tflq.converters.openvino.options import LayerOptions
from tflq.converters.openvino.passes.ranges import nudged
from tflq.converters.openvino.passes.weights import weight_codes
from tflq.converters.settings import parse_settings
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder, Range, Tensor

RANGES = [
    (-1, 3),
    (0, 6),
    (1, 5),
    (-5, -2),
    (-1, 1),
    (-0.375, 0.25),
    (-100, 1),
    (-1, 1000),
    (0, 0),
    (-3, 0),
    (0, 2**-40),
]
LEVELS = [2, 3, 4, 15, 16, 64, 255, 256, 65535, 65536]


def nudged_by_hand(low: Fraction, high: Fraction, levels: int, symmetric: bool) -> tuple[Fraction, Fraction]:
    low, high = min(low, Fraction(0)), max(high, Fraction(0))
    high = high if high > low else Fraction(1)  # only zeros: [0, 1]
    if symmetric:
        zero = levels // 2
        step = max(-low, high) / max(1, levels - 1 - zero)
    else:
        step = (high - low) / (levels - 1)
        zero = min(max(round(-low / step), 0), levels - 1)
    return -zero * step, (levels - 1 - zero) * step


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("levels", LEVELS)
def test_ranges_are_nudged(levels: int, symmetric: bool) -> None:
    low, high = (np.array([r[i] for r in RANGES], np.float32) for i in (0, 1))
    found = nudged(low, high, levels, symmetric)
    wanted = [nudged_by_hand(Fraction(float(a)), Fraction(float(b)), levels, symmetric)
              for a, b in zip(low, high, strict=True)]  # fmt: skip
    for side, at in (("low", 0), ("high", 1)):
        mine, theirs = getattr(found, f"input_{side}"), [float(pair[at]) for pair in wanted]
        assert np.allclose(mine, theirs, rtol=1e-7, atol=0)
        assert not np.signbit(mine[mine == 0]).any()
        assert np.array_equal(mine, getattr(found, f"output_{side}"))
    assert found.levels == levels


def ranged(kind: Range, channels: int = 4, operator: str = "depthwise_conv_2d") -> Graph:
    """One filter whose input has this range."""
    b = GraphBuilder("ranged")
    x = b.input("x", (1, 3, 3, channels), DType.FLOAT32)
    shape = (1, 1, 1, channels) if operator == "depthwise_conv_2d" else (channels, 1, 1, channels)
    w = b.constant("w", np.ones(shape, np.float32))
    more = {"depth_multiplier": 1} if operator == "depthwise_conv_2d" else {}
    graph = b.build([b.add(operator, [x, w], (1, 3, 3, channels), DType.FLOAT32, **WINDOW, **more)])
    graph.tensors[x] = replace(graph.tensors[x], range=kind)
    return with_ranges(graph)


def input_rule(graph: Graph) -> Affine:
    made = OPENVINO.quantize(graph, parse_settings(OPENVINO.settings))
    return made.tensors[made.nodes[0].outputs[0]].affine


@pytest.mark.parametrize("place", [0, 2, 3])
def test_one_channel_may_be_no_range(place: int) -> None:
    low, high = np.full(4, -1, np.float32), np.full(4, 2, np.float32)
    assert input_rule(ranged(Range(low, high))).scale.size == 4

    def with_other(other_low: float, other_high: float) -> Range:
        changed = low.copy(), high.copy()
        changed[0][place], changed[1][place] = other_low, other_high
        return Range(*changed)

    for bad in (np.inf, -np.inf, np.nan):
        for pair in ((bad, 2), (-1, bad)):
            with pytest.raises(GraphError, match=r"tensor 'x' has range .*; bounds are finite$"):
                input_rule(ranged(with_other(*pair)))
    with pytest.raises(GraphError, match=r"tensor 'x' has range .*, inverted; swap it$"):
        input_rule(ranged(with_other(3, 2)))
    assert input_rule(ranged(with_other(2, 2))).scale.size == 4
    assert input_rule(ranged(with_other(-1, 2), operator="conv_2d")).scale.size == 1


@pytest.mark.parametrize(("count", "is_each"), [(1, False), (3, False), (4, True)])
def test_ranges_of_channels_are_as_many(count: int, is_each: bool) -> None:
    kind = Range(np.full(count, -1, np.float32), np.full(count, 2, np.float32))
    assert input_rule(ranged(kind)).is_per_axis == is_each
    one = ranged(range_of(-1, 2), channels=1)
    assert not input_rule(one).is_per_axis


def codes_by_hand(
    rows: Sequence[Sequence[float]], bits: int, asymmetric: bool
) -> list[tuple[np.float32, int, list[int]]]:
    """Return scale, zero point and codes of each row: S is float32, the rest exact."""
    top, found = 2 ** (bits - 1) - 1, []
    for row in rows:
        least, most = min(*row, 0.0), max(*row, 0.0)
        extent, steps = (most - least, 2**bits - 1) if asymmetric else (max(-least, most), top)
        scale = np.float32(extent / steps) if extent else np.float32(1)
        zero = round(Fraction(-least) / Fraction(float(scale))) - 2 ** (bits - 1) if asymmetric else 0
        codes = [round(Fraction(w) / Fraction(float(scale))) + zero for w in row]
        found.append((scale, zero, [min(max(c, -top - 1), top) for c in codes]))
    return found


@pytest.mark.parametrize(("bits", "scheme", "granularity"), [*product((8, 4), ("symmetric", "asymmetric"),
                                                                     ("per-channel", "per-tensor"))])  # fmt: skip
@pytest.mark.parametrize("axis", [0, 1])
def test_weights_become_codes(bits: int, scheme: str, granularity: str, axis: int) -> None:
    draw = np.random.default_rng([bits, axis])
    rows = [draw.normal(size=9), draw.uniform(0.5, 2, 9), -draw.uniform(3, 4, 9), np.zeros(9), np.arange(-4, 5) / 8]
    values = np.array(rows, np.float32)
    real = Tensor("w", values.shape if not axis else values.T.shape, DType.FLOAT32, data=values.T if axis else values)
    how = LayerOptions(weight_bits=bits, weight_scheme=scheme, weight_granularity=granularity)
    found = weight_codes(real, real, axis, how)
    lists = (
        values.astype(float).tolist() if granularity == "per-channel" else [values.astype(float).reshape(-1).tolist()]
    )
    wanted = codes_by_hand(lists, bits, scheme == "asymmetric")
    assert found.affine.scale.tolist() == [float(scale) for scale, _, _ in wanted]
    assert found.affine.zero_point.tolist() == [zero for _, zero, _ in wanted]
    assert found.affine.axis == (axis if granularity == "per-channel" else None)
    assert (found.dtype, found.affine.bits) == (DType.INT4 if bits == 4 else DType.INT8, bits)
    mine = np.asarray(found.data).T if axis else np.asarray(found.data)
    assert mine.reshape(-1).tolist() == [code for _, _, codes in wanted for code in codes]


@pytest.mark.parametrize(("size", "wanted"), [(0.0, 1.0), (1e-45, 2.0**-126), (127 * 2.0**-126, 2.0**-126)])
def test_the_least_scale(size: float, wanted: float) -> None:
    real = Tensor("w", (1, 2), DType.FLOAT32, data=np.array([[size, 0]], np.float32))
    assert weight_codes(real, real, 0, LayerOptions()).affine.scale.tolist() == [wanted]


def kept(codes: Array, affine: Affine, dtype: DType, **options: str | int) -> Tensor:
    real = Tensor("w", codes.shape, DType.FLOAT32, data=np.zeros(codes.shape, np.float32))
    stored = Tensor("w", codes.shape, dtype, affine, data=codes)
    return weight_codes(stored, real, 0, LayerOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("least", "most", "zero", "is_taken"),
    [(-128, 127, 0, True), (0, 255, 128, True), (0, 255, 127, False), (0, 255, 129, False), (1, 255, 128, True),
     (0, 254, 127, True), (-128, 0, -1, True), (-128, 0, 1, False), (0, 127, 0, True), (0, 127, -1, False)],
)  # fmt: skip
def test_a_files_codes_less_their_zero_points(least: int, most: int, zero: int, is_taken: bool) -> None:
    unsigned = most > 127
    codes = np.array([[least, most], [most, least]], np.uint8 if unsigned else np.int8)
    affine = Affine(np.array([0.5], np.float32), np.array([zero]), None, 8, not unsigned)
    dtype = DType.UINT8 if unsigned else DType.INT8
    if is_taken:
        found = kept(codes, affine, dtype)
        assert np.array_equal(found.data, codes.astype(int) - zero)
        assert (found.affine.zero_point.tolist(), found.affine.scale.tolist(), found.affine.bits) == ([0], [0.5], 8)
    else:
        with pytest.raises(UnsupportedError, match=rf"they reach {least - zero}\.\.{most - zero}, beyond int8"):
            kept(codes, affine, dtype)
    asymmetric = kept(codes, affine, dtype, weight_scheme="asymmetric")
    assert np.array_equal(np.asarray(asymmetric.data).astype(int) - asymmetric.affine.zero_point,
                          codes.astype(int) - zero)  # fmt: skip


@pytest.mark.parametrize("bad", [0.0, -0.5, np.inf, np.nan])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_files_scales(bad: float, place: int) -> None:
    scale = np.full(3, 0.5, np.float32)
    codes, zeros = np.ones((3, 2), np.int8), np.zeros(3, np.int64)
    assert kept(codes, Affine(scale, zeros, 0), DType.INT8).affine.axis == 0
    scale[place] = bad
    with pytest.raises(GraphError, match=rf"weights 'w' have scale {bad} in channel {place}; scales are positive and"):
        kept(codes, Affine(scale, zeros, 0), DType.INT8)


@pytest.mark.parametrize(("bits", "is_kept"), [(4, True), (8, False)])
def test_codes_of_fewer_bits_stay(bits: int, is_kept: bool) -> None:
    """weight_bits=4 keeps codes of 4 bits and quantizes those of 8 anew; of zeros they are zeros."""
    codes = np.array([[1, -7]], np.int8)
    found = kept(
        codes, Affine(np.array([0.5], np.float32), np.zeros(1, np.int64), None, bits), DType.INT8, weight_bits=4
    )
    assert np.asarray(found.data).tolist() == ([[1, -7]] if is_kept else [[0, 0]])
