"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR against TFLite."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import kernel_settings
from tests.support.nodes import check, check_refused, few, fixed, sampled, values
from tflq.errors import UnsupportedError
from tflq.graph import DType

OPTIONS = [(False, False), (True, False), (False, True)]
BILINEAR = [DType.FLOAT32, DType.UINT8, DType.INT8, DType.INT16]
NEAREST = [*BILINEAR, DType.FLOAT16, DType.INT32, DType.UINT32, DType.BOOL]


@pytest.mark.parametrize("dtype", BILINEAR, ids=lambda t: t.value)
@pytest.mark.parametrize("options", OPTIONS)
@few
@given(data=st.data(), seed=st.integers(0, 99))
def test_bilinear(oracle, dtype, options, data, seed):
    height, width, rows, columns = (data.draw(st.integers(1, 12)) for _ in range(4))
    operands = [sampled(values(seed, (2, 2, height, width, 3), dtype)), fixed([rows, columns])]
    check(oracle, "resize_bilinear", operands, [dtype], align_corners=options[0], half_pixel_centers=options[1])


@pytest.mark.parametrize("dtype", BILINEAR, ids=lambda t: t.value)
@pytest.mark.parametrize("sizes", [(224, 97), (33, 300)])
def test_large(oracle, dtype, sizes):
    operands = [sampled(values(0, (1, 1, 60, 80, 3), dtype)), fixed(list(sizes))]
    check(oracle, "resize_bilinear", operands, [dtype], half_pixel_centers=True)


@pytest.mark.parametrize("dtype", NEAREST, ids=lambda t: t.value)
@pytest.mark.parametrize("options", OPTIONS)
def test_nearest_types(oracle, dtype, options):
    operands = [sampled(values(0, (2, 2, 5, 3, 2), dtype)), fixed([7, 8])]
    check(oracle, "resize_nearest_neighbor", operands, [dtype], align_corners=options[0], half_pixel_centers=options[1])


@kernel_settings
@given(data=st.data(), options=st.sampled_from([*OPTIONS, (True, True)]), seed=st.integers(0, 99))
def test_nearest(oracle, data, options, seed):
    height, width, rows, columns = (data.draw(st.integers(1, 40)) for _ in range(4))
    operands = [sampled(values(seed, (1, 1, height, width, 1), DType.INT16)), fixed([rows, columns])]
    check(
        oracle,
        "resize_nearest_neighbor",
        operands,
        [DType.INT16],
        align_corners=options[0],
        half_pixel_centers=options[1],
    )


@pytest.mark.parametrize("operator", ["resize_bilinear", "resize_nearest_neighbor"])
def test_refused(oracle, operator):
    x = sampled(values(0, (1, 2, 3, 1), DType.INT8))
    check_refused(oracle, operator, [x, fixed([2, 2])], [DType.INT8], "4 axes")
    x = sampled(values(0, (1, 1, 2, 3, 1), DType.INT8))
    check_refused(oracle, operator, [x, fixed([2])], [DType.INT8], "two sizes")
    wide = sampled(values(0, (1, 1, 2, 3, 1), DType.INT64))
    check_refused(oracle, operator, [wide, fixed([2, 2])], [DType.INT64], "takes")


def test_both_options_are_refused(oracle):
    x = sampled(values(0, (1, 1, 2, 3, 1), DType.INT8))
    with pytest.raises(UnsupportedError, match="one of them"):
        check(oracle, "resize_bilinear", [x, fixed([2, 2])], [DType.INT8], align_corners=True, half_pixel_centers=True)
