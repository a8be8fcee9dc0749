"""NE16's bit planes against the vendor's bytes, the dense stream against its rule, and both back again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.data import data_path
from tests.support.gap9_read_back import unpack_planes, unpack_stream
from tflq.converters.gap9.packing import PlaneLayout, pack_planes, pack_stream, plane_mode

CASES = {
    "conv3x3_w8": "3x3",
    "conv3x3_w4": "3x3",
    "conv1x1_w8": "1x1",
    "conv1x1_w3": "1x1",
    "dw3x3_w8": "3x3dw",
    "dw3x3_w5": "3x3dw",
}


@pytest.mark.parametrize("case", CASES)
def test_planes_of_the_vendor(case: str) -> None:
    with np.load(data_path("golden", "gap9", "ne16_weight_layout.npz")) as file:
        codes, packed = file[f"{case}/weights"], file[f"{case}/packed"]
    layout = PlaneLayout(CASES[case], codes.shape, int(case[-1]))
    ours = pack_planes(codes, layout)
    assert ours.shape == packed.shape
    assert np.array_equal(ours, packed)
    assert np.array_equal(unpack_planes(packed, layout), codes)


@given(
    st.sampled_from(["3x3", "3x3dw", "1x1", "linear", "taps"]),
    st.integers(1, 9),
    st.integers(1, 40),
    st.integers(2, 8),
    st.sampled_from([8, 16, 32]),
)
def test_planes_come_back(mode: str, outputs: int, inputs: int, bits: int, group: int) -> None:
    shape = {
        "3x3": (outputs, 3, 3, inputs),
        "3x3dw": (inputs, 3, 3, 1),
        "1x1": (outputs, 1, 1, inputs),
        "linear": (outputs, inputs),
        "taps": (outputs, 4, 2, inputs),
    }[mode]
    layout = PlaneLayout(mode, shape, bits, group)
    codes = np.random.default_rng(outputs).integers(0, 1 << bits, shape).astype(np.uint8)
    packed = pack_planes(codes, layout)
    assert packed.shape == layout.packed_shape
    assert np.array_equal(unpack_planes(packed, layout), codes)


@pytest.mark.parametrize(("count", "size"), [(108, 68), (480, 300)])
def test_five_bit_streams_have_the_vendors_size(count: int, size: int) -> None:
    assert pack_stream(np.zeros(count, np.uint8), 5).size == size


def test_stream_is_least_significant_bit_first() -> None:
    # 1, 2, 3 in 3 bits: 100 010 110 as a stream, first bit first
    assert pack_stream(np.array([1, 2, 3], np.uint8), 3).tolist() == [0b11010001, 0b00000000]


@given(st.integers(2, 8), st.integers(1, 50))
def test_streams_come_back(bits: int, count: int) -> None:
    codes = np.random.default_rng(count).integers(0, 1 << bits, count).astype(np.uint8)
    assert np.array_equal(unpack_stream(pack_stream(codes, bits), bits, (count,)), codes)


def test_modes() -> None:
    assert plane_mode("fully_connected", ()) == "linear"
    assert plane_mode("depthwise_conv_2d", (3, 3)) == "3x3dw"
    assert [plane_mode("conv_2d", k) for k in ((3, 3), (1, 1), (10, 4))] == ["3x3", "1x1", "taps"]
