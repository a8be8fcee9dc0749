"""Scales and zero points of ranges, in fractions (docs/rules/gap9/quantization.md#activations)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tflq.converters.gap9.affine_types import (
    asymmetric,
    data_range,
    file_range,
    nearly_equal,
    power_of_two,
    repaired,
    symmetric,
)
from tflq.graph import Affine, DType, Quantization, Range, Tensor

RANGES = [(-1.0, 3.0), (0.0, 6.0), (-6.0, 0.0), (-128.0, 127.0), (-0.5, 254.5), (-1.5, 253.5), (-2.5, 252.5),
          (0.0, 1e-6), (-1000.0, 0.25), (-0.001, 1000.0), (-127.5, 127.5), (-3.25, 1e4)]  # fmt: skip
KINDS = [np.float32, np.float64]


def limits(low: float, high: float, kind: type = np.float64) -> Range:
    return Range(np.array([low], kind), np.array([high], kind))


def ends(range_: Range) -> tuple[float, float]:
    return float(range_.minimum[0]), float(range_.maximum[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize(("low", "high"), RANGES)
def test_asymmetric(low: float, high: float, bits: int, signed: bool, kind: type) -> None:
    """S is the range over 2^n - 1 steps; at real 0 stands a whole number, half to even."""
    found, steps = asymmetric(limits(low, high, kind), bits, signed), 2**bits - 1
    assert found.scale[0] == (kind(high) - kind(low)) / kind(steps)
    assert (found.scale.dtype, found.bits, found.signed, found.axis) == (kind, bits, signed, None)
    lowest = -(2 ** (bits - 1)) if signed else 0
    low_, high_ = Fraction(float(kind(low))), Fraction(float(kind(high)))
    zero = lowest - low_ * steps / (high_ - low_)
    if abs(zero - int(zero) - Fraction(1, 2)) > Fraction(1, 1000):
        assert found.zero_point.tolist() == [round(zero)]
    else:
        assert abs(found.zero_point[0] - zero) <= Fraction(501, 1000)
    assert lowest <= found.zero_point[0] <= lowest + steps


@pytest.mark.parametrize(("low", "wanted"), [(-0.5, 0), (-1.5, 2), (-2.5, 2), (-3.5, 4)])
def test_a_zero_point_in_the_middle_is_even(low: float, wanted: int) -> None:
    assert asymmetric(limits(low, 255 + low)).zero_point.tolist() == [wanted]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize(("low", "high"), RANGES)
def test_symmetric(low: float, high: float, bits: int, signed: bool, kind: type) -> None:
    found, half = symmetric(limits(low, high, kind), bits, signed), 2 ** (bits - 1)
    assert found.scale[0] == max(kind(high) / kind(half - 1), -kind(low) / kind(half))
    assert found.zero_point.tolist() == [0 if signed else half]
    assert (found.bits, found.signed) == (bits, signed)


def test_a_range_of_nothing_has_the_scale_1() -> None:
    for kind in KINDS:
        for found in (asymmetric(limits(0, 0, kind)), symmetric(limits(0, 0, kind))):
            assert found.scale.tolist() == [1.0]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        *(
            ((-1, 2), (-1, 2)),
            ((1, 2), (0, 2)),
            ((-2, -1), (-2, 0)),
            ((0, 0), (0, 1)),
            ((3, 3), (-3, 3)),
            ((-3, -3), (-3, 3)),
        ),
        *(((2, 2.00001), (-2, 2)), ((2, 2.001), (0, 2.001)), ((-2, -2.00001), (-2, 2)), ((-5e-9, 5e-9), (-5e-9, 5e-9))),
        *(((0, 5e-9), (0, 1)), ((0, 2e-8), (0, 2e-8)), ((-1e-9, 0), (-1e-9, 1e-9))),
    ],
)
def test_repaired(given: tuple[float, float], wanted: tuple[float, float]) -> None:
    assert ends(repaired(limits(*given))) == wanted


@pytest.mark.parametrize(
    ("scale", "wanted"), [(1.0, 1.0), (1.0001, 2.0), (0.5, 0.5), (0.3, 0.5), (0.26, 0.5), (0.25, 0.25)]
)
def test_power_of_two(scale: float, wanted: float) -> None:
    found = power_of_two(Affine.per_tensor(np.float32(scale), 0))
    assert found.scale.tolist() == [wanted]
    assert found.scale.dtype == np.float64


def tensor(
    kind: DType, quantization: Quantization | None, stated: tuple[list[float], list[float]] | None = None
) -> Tensor:
    range_ = None if stated is None else Range(*(np.array(v, np.float32) for v in stated))
    return Tensor("t", (2,), kind, quantization, range=range_)


def several(*pairs: tuple[float, int]) -> Affine:
    return Affine(np.array([s for s, _ in pairs], np.float32), np.array([z for _, z in pairs], np.int64), 0)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (tensor(DType.INT8, several((0.5, 0)), ([-1.0], [4.0])), (-1.0, 4.0)),  # min and max go first
        (tensor(DType.FLOAT32, None, ([-1.0, -3.0], [4.0, 2.0])), (-3.0, 4.0)),
        (tensor(DType.INT8, several((0.5, 0)), ([], [])), (-64.0, 63.5)),
        (tensor(DType.INT8, several((0.5, -128))), (0.0, 127.5)),
        (tensor(DType.UINT8, several((0.25, 4))), (-1.0, 62.75)),
        (tensor(DType.INT16, several((0.5, 0))), (-16384.0, 16383.5)),
        (tensor(DType.INT8, several((0.5, 0), (0.25, -28))), (-64.0, 63.5)),
        (tensor(DType.INT8, several((0.25, 28), (0.5, -128))), (-39.0, 127.5)),
        (tensor(DType.INT8, None), None),
        (tensor(DType.FLOAT32, several((0.5, 0))), None),
        (tensor(DType.INT8, several()), None),
        (tensor(DType.FLOAT32, None), None),
    ],
)
def test_the_range_that_a_file_states(given: Tensor, wanted: tuple[float, float] | None) -> None:
    found = file_range(given)
    assert (None if found is None else ends(found)) == wanted
    assert found is None or found.minimum.shape == found.maximum.shape == (1,)
    if found is not None and (given.range is None or not given.range.minimum.size):
        assert found.minimum.dtype == np.float64


def test_the_range_of_a_constant() -> None:
    assert ends(data_range(np.array([[1.0, 4.0], [2.0, 3.0]], np.float32))) == (0.0, 4.0)
    assert ends(data_range(np.array([-2.0, -2.0]))) == (-2.0, 2.0)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        *(
            (Affine.per_tensor(0.5, 3), True),
            (Affine.per_tensor(0.5, 4), False),
            (Affine.per_tensor(0.5, 3, 16), False),
        ),
        *((Affine.per_tensor(0.5, 3, 8, False), False), (Affine.per_tensor(0.6, 3), False)),
        (Affine.per_tensor(0.5 * (1 + 1e-6), 3), True),
    ],
)
def test_types_that_nntool_takes_for_the_same(other: Affine, same: bool) -> None:
    assert nearly_equal(Affine.per_tensor(0.5, 3), other) is same
