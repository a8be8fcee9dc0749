"""Levels as integers, by the formulas of docs/rules/openvino.md#levels-as-integers: S = (oh - ol) / (levels - 1), Z =
-ol / S + first."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.errors import GraphError
from tflq.graph import Affine, DType, FakeQuantize, GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.openvino.levels import (
    affine_of,
    code_type,
    require_sound,
    rule_of,
    same_input_and_output,
)


def rule(levels: int, low: float, high: float) -> FakeQuantize:
    bounds = [np.array([v], np.float32) for v in (low, high)]
    return FakeQuantize(levels, *bounds, *bounds)


KNOWN = [2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256, 511, 512, 32767, 32768, 65535, 65536]


@pytest.mark.parametrize("levels", range(2, 300))
def test_numbers_of_levels_that_have_a_type(levels: int) -> None:
    assert (affine_of(rule(levels, 0, levels - 1)) is not None) == (levels in KNOWN)


@pytest.mark.parametrize("levels", KNOWN)
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_codes_of_levels(levels: int, place: str) -> None:
    zero = {"first": 0, "middle": levels // 2, "last": levels - 1}[place]
    found = affine_of(rule(levels, -zero / 4, (levels - 1 - zero) / 4))
    assert found is not None
    bits = max(1, (levels - 1).bit_length())
    first = -(2 ** (bits - 1)) + (levels == 2**bits - 1)
    assert (found.minimum_code, found.maximum_code) == (first, first + levels - 1)
    assert (found.scale.tolist(), found.zero_point.tolist()) == ([0.25], [zero + first])
    assert code_type(found) is (DType.INT4 if bits == 4 else DType.INT8 if bits <= 8 else DType.INT16)
    again = rule_of(found)
    assert again.levels == levels
    bounds = [float(v[0]) for v in (again.input_low, again.input_high, again.output_low, again.output_high)]
    assert bounds == [-zero / 4, (levels - 1 - zero) / 4] * 2


@pytest.mark.parametrize(
    ("levels", "low", "high"),
    [(65537, 0, 65536), (1 << 17, 0, 1), (256, 0.5, 255.5), (256, 1, 256), (256, -256, -1), (256, 255, 0),
     (256, 0, 0), (256, 0.25, 255.25)],
)  # fmt: skip
def test_outputs_without_quantized_values(levels: int, low: float, high: float) -> None:
    assert affine_of(rule(levels, low, high)) is None


@pytest.mark.parametrize(
    ("off", "is_near"), [(0.0, True), (0.0009, True), (-0.0009, True), (0.0011, False), (-0.0011, False)]
)
def test_a_zero_point_is_nearly_whole(off: float, is_near: bool) -> None:
    found = affine_of(rule(256, -(100 + off), 255 - 100 - off))
    assert (found is not None) == is_near
    if found is not None:
        assert found.zero_point.tolist() == [100 - 128]


def test_channels() -> None:
    low, high = np.array([0, -2], np.float32), np.array([15, 5.5], np.float32)
    found = affine_of(FakeQuantize(16, low, high, low, high), 1)
    assert found is not None
    assert (found.scale.tolist(), found.zero_point.tolist(), found.axis) == ([1.0, 0.5], [-8, -4], 1)
    one_of_two = FakeQuantize(16, low, high, low, np.array([15, 5.6], np.float32))
    assert affine_of(one_of_two, 1) is None


HALVES = np.arange(-40, 41, dtype=np.float32) / 8


@pytest.mark.parametrize("zero_point", [-3, 0, 2])
@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT4, DType.INT16])
def test_reals_become_codes_and_back(dtype: DType, zero_point: int) -> None:
    """Halves go to the even level (the lowest code is level 0), and beyond the range saturates."""
    affine = Affine.per_tensor(np.float32(0.25), zero_point, dtype.bits)
    b = GraphBuilder("halves")
    x = b.input("x", (HALVES.size,), DType.FLOAT32)
    codes = b.add("quantize", [x], (HALVES.size,), dtype, affine)
    graph = b.build([codes, b.add("dequantize", [codes], (HALVES.size,), DType.FLOAT32)])
    found, reals = (Engine(graph, "openvino").run([HALVES[None]])[t][0] for t in graph.outputs)
    wanted = []
    for eighths in range(-40, 41):
        level, rest = divmod(eighths + 2 * (zero_point - dtype.minimum), 2)
        level += rest * (level % 2)
        wanted.append(min(max(level + dtype.minimum, dtype.minimum), dtype.maximum))
    assert found.tolist() == wanted
    assert reals.tolist() == [(code - zero_point) / 4 for code in wanted]


@pytest.mark.parametrize("first", [(0.25, -3), (0.5, 0)])
@pytest.mark.parametrize("second", [(0.125, 5), (1.0, -100)])
def test_codes_of_one_range_become_codes_of_another(first: tuple[float, int], second: tuple[float, int]) -> None:
    (s, z), (other, zero) = first, second
    b = GraphBuilder("requantize")
    x = b.input("x", (256,), DType.INT8, Affine.per_tensor(np.float32(s), z))
    graph = b.build([b.add("quantize", [x], (256,), DType.INT8, Affine.per_tensor(np.float32(other), zero))])
    codes = np.arange(-128, 128, dtype=np.int8)
    found = Engine(graph, "openvino").run([codes[None]])[graph.outputs[0]][0]
    wanted = []
    for q in range(-128, 128):
        sixteenths = int((q - z) * s * 16 / other) + 16 * (zero + 128)  # the level, in parts of 16: exact
        level, rest = divmod(sixteenths, 16)
        level += rest > 8 or (rest == 8 and level % 2)
        wanted.append(min(max(level, 0), 255) - 128)
    assert found.tolist() == wanted


def test_levels_that_are_not_those_of_the_output() -> None:
    b = GraphBuilder("other")
    x = b.input("x", (4,), DType.FLOAT32)
    bounds = {k: (v,) for k, v in (("input_low", 0.0), ("input_high", 1.0), ("output_low", 0.0), ("output_high", 1.0))}
    affine = Affine.per_tensor(np.float32(1 / 255), -128)
    graph = b.build([b.add("quantize", [x], (4,), DType.INT8, affine, levels=255, **bounds)])
    with pytest.raises(GraphError, match="has 256 quantized values; levels is 255"):
        lower(graph, "openvino")
    for name in bounds:
        b = GraphBuilder("missing")
        given = {key: value for key, value in bounds.items() if key != name}
        x = b.input("x", (4,), DType.FLOAT32)
        graph = b.build([b.add("quantize", [x], (4,), DType.INT8, affine, levels=256, **given)])
        with pytest.raises(GraphError, match=f"attribute {name}: found None, allowed is a list of numbers"):
            lower(graph, "openvino")


SOUND = {"input_low": -1.0, "input_high": 2.0, "output_low": -3.0, "output_high": 4.0}


def bounded(count: int, place: int, **changed: float) -> FakeQuantize:
    """A rule for so many channels, one of which has other bounds."""
    bounds = [np.full(count, value, np.float32) for value in SOUND.values()]
    for name, value in changed.items():
        bounds[[*SOUND].index(name)][place] = value
    return FakeQuantize(256, *bounds)


@pytest.mark.parametrize(("count", "place"), [(1, 0), (3, 0), (3, 1), (3, 2)])
@pytest.mark.parametrize("side", ["input", "output"])
def test_what_is_no_range(count: int, place: int, side: str) -> None:
    """One bound of one channel decides; the words name the side and the numbers."""
    low, high = f"{side}_low", f"{side}_high"
    for name in (low, high):
        for value in (np.inf, -np.inf, np.nan):
            with pytest.raises(GraphError, match=f"^it: {side} range has {value}; bounds are finite$"):
                require_sound(bounded(count, place, **{name: value}), "it")
    words = f"^it: {side}_low and {side}_high are both 0.5, a scale of zero; they must differ$"
    with pytest.raises(GraphError, match=words):
        require_sound(bounded(count, place, **{low: 0.5, high: 0.5}), "it")
    turned = bounded(count, place, **{low: 1.5, high: 0.5})
    if side == "input":
        with pytest.raises(GraphError, match=r"^it: input_low 1\.5 is above input_high 0\.5; swap them$"):
            require_sound(turned, "it")
    else:
        require_sound(turned, "it")  # outputs may fall while inputs rise
    for value in (-1.0, 1.9375):
        require_sound(bounded(count, place, **{low: value}), "it")


@pytest.mark.parametrize(("levels", "is_taken"), [(1, False), (0, False), (2, True), (3, True)])
def test_how_few_levels(levels: int, is_taken: bool) -> None:
    if is_taken:
        require_sound(rule(levels, 0, 1), "it")
    else:
        with pytest.raises(GraphError, match=f"^it: levels is {levels}; at least 2 are needed$"):
            require_sound(rule(levels, 0, 1), "it")


def test_one_bound_for_several_channels() -> None:
    many, one = np.array([-1, -2, 0.5], np.float32), np.array([1], np.float32)
    require_sound(FakeQuantize(4, many, one, many, one), "it")
    with pytest.raises(GraphError, match=r"input_low and input_high are both 0\.5"):
        require_sound(FakeQuantize(4, many, one / 2, many, one), "it")


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.5, 0.5)])
def test_outputs_of_the_inputs_range(low: float, high: float) -> None:
    bounds = [np.array([v], np.float32) for v in (-1, 2, -1 + low, 2 + high)]
    assert same_input_and_output(FakeQuantize(256, *bounds)) == (low == high == 0)
