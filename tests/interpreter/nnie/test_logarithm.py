"""Logarithmic quantized values against HiSilicon's own library, bit for bit.

And where the published page differs from it.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from tests.support.data import data_path
from tests.support.nnie import clipping_grid, from_true_form
from tflq.errors import InputError, UnsupportedError
from tflq.interpreter.kernels.nnie.logarithm import (
    clipping_of,
    dequantize,
    fake_quantize,
    magnitudes,
    quantize,
    scheme_of,
    true_form,
    z_of,
)

EIGHT, SIXTEEN = scheme_of(8), scheme_of(16)


def golden() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(data_path("golden", "nnie", "golden_gfpq.json").read_text(encoding="utf-8"))
    return content


def floats(texts: list[str]) -> np.ndarray:
    return np.array([float.fromhex(text) for text in texts], np.float32)


def values(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


def test_every_row_of_the_library() -> None:
    rows = golden()["qdq"]
    assert len(rows) == 11
    for row in rows:
        found = fake_quantize(floats(row["x"]), row["z"], scheme_of(row["bits"]))
        assert found.view(np.uint32).tolist() == floats(row["y"]).view(np.uint32).tolist(), (row["bits"], row["z"])


def test_every_z_of_the_library() -> None:
    rows = golden()["z_of_max"]
    assert len(rows) == 136
    for row in rows:
        assert z_of(float.fromhex(row["max"]), scheme_of(row["bits"])) == row["z"], row


def test_all_grid_values_survive_the_round_trip() -> None:
    grid = clipping_grid(EIGHT)
    assert grid.size == 1023
    assert np.all(np.diff(grid) > 0)
    for z, c in zip(range(-511, 512), grid, strict=True):
        assert z_of(c, EIGHT) == z
        assert clipping_of(z_of(c, EIGHT), EIGHT) == c
    assert (math.log2(grid[0]), math.log2(grid[-1])) == pytest.approx((-24, 39.875), abs=1e-6)


def test_the_nearest_float32_lands_low_in_half_of_the_cases() -> None:
    nearest = [np.float32(2.0 ** ((z + 127) / 16)) for z in range(-511, 512)]
    low = sum(z_of(c, EIGHT) == z - 1 for z, c in zip(range(-511, 512), nearest, strict=True))
    right = sum(z_of(c, EIGHT) == z for z, c in zip(range(-511, 512), nearest, strict=True))
    # z = -511 cannot go lower: the library clamps.
    assert (low, right) in ((511, 512), (510, 513))


@pytest.mark.parametrize("z", [-511, -127, -3, 0, 100, 511])
def test_true_form(z: int) -> None:
    stored = np.arange(256, dtype=np.uint8)
    real = dequantize(*from_true_form(stored), z, EIGHT)
    assert real[0x80] == 0
    assert not np.signbit(real[0x80])
    assert real[0x00] == np.float32(2.0 ** (z / 16))
    assert np.array_equal(real[0x81:], -real[0x01:0x80])
    assert np.array_equal(true_form(*quantize(real, z, EIGHT)), stored)


def test_hexadecimal_is_the_published_table() -> None:
    z = -40
    inputs = [-(2 ** ((z + 127) / 16)), -(2 ** ((z + 2) / 16)), -(2 ** ((z + 1) / 16)), 0]
    inputs += [2 ** (z / 16), 2 ** ((z + 1) / 16), 2 ** ((z + 127) / 16)]
    stored = true_form(*quantize(values(*inputs), z, EIGHT))
    assert [f"0x{code:02X}" for code in stored.tolist()] == ["0xFF", "0x82", "0x81", "0x80", "0x00", "0x01", "0x7F"]


def test_sixteen_bits_reach_eleven_octaves() -> None:
    table = magnitudes(0, SIXTEEN)
    assert table.size == 1408
    assert math.log2(table[-1]) == pytest.approx(1407 / 128, abs=1e-6)


# Where the page, its table and MQBench differ from the library.


def test_the_page_rounds_z_and_the_library_floors_it() -> None:
    m = 2.0 ** (3.9 / 16)
    assert z_of(m, EIGHT) == 3 - 127
    assert z_of(m, EIGHT, "page") == 4 - 127
    for c in clipping_grid(EIGHT):
        # So a clipping value on the grid means the same.
        assert z_of(c, EIGHT, "page") == z_of(c, EIGHT, "mqbench") == z_of(c, EIGHT)


def test_the_positive_threshold_itself() -> None:
    z = 16
    x = values(2.0 ** (z / 16 - 1))
    assert true_form(*quantize(x, z, EIGHT))[0] == 0x80
    assert true_form(*quantize(x, z, EIGHT, "page"))[0] == 0x00
    above = np.nextafter(x, np.float32(9))
    assert true_form(*quantize(above, z, EIGHT))[0] == 0x00
    below = -values(2.0 ** ((15 + 1) / 16 - 1))  # all agree on the negative side: zero
    assert {int(true_form(*quantize(below, 15, EIGHT, f))[0]) for f in ("library", "page", "mqbench")} == {0x80}


def test_ties() -> None:
    z = 320
    tie = np.float32(2.0 ** ((z + 2.5) / 16))
    x = np.nextafter(np.repeat(tie, 1), np.float32(np.inf))  # above the tie; a float32 logarithm does not see it
    assert 16 * math.log2(x[0]) - z > 2.5
    assert np.float32(16) * np.log2(x)[0] - z == 2.5
    codes = {formula: int(quantize(x, z, EIGHT, formula)[1][0]) for formula in ("library", "page", "mqbench")}
    assert codes == {"library": 3, "page": 3, "mqbench": 2}


def test_all_zero_data() -> None:
    assert z_of(0.0, EIGHT) == z_of(1e-6, EIGHT) == math.floor(16 * math.log2(np.float32(1e-6))) - 127
    for formula in ("page", "mqbench"):
        with pytest.raises(UnsupportedError, match="z = -infinity; choose 'library'"):
            z_of(0.0, EIGHT, formula)


def test_only_the_library_clamps_z() -> None:
    assert (z_of(2.0**50, EIGHT), z_of(2.0**50, EIGHT, "page")) == (511, 800 - 127)
    assert (z_of(2.0**-60, EIGHT), z_of(2.0**-60, EIGHT, "page")) == (-511, -960 - 127)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("z", [-300, -127, -1, 0, 33])
def test_codes_against_a_search_of_the_table(bits: int, z: int) -> None:
    """The library rounds in the logarithm: the code is the table's entry that is nearest there."""
    scheme = scheme_of(bits)
    rng = np.random.default_rng(z & 0xFF)
    x = (
        np.sign(rng.standard_normal(4000)) * 2.0 ** rng.uniform(z / scheme.steps - 3, z / scheme.steps + 12, 4000)
    ).astype(np.float32)
    found = fake_quantize(x, z, scheme)
    table = z / scheme.steps + np.arange(scheme.largest + 1) / scheme.steps
    for value, real in zip(x.tolist(), found.tolist(), strict=True):
        threshold = 2.0 ** ((z + (value < 0)) / scheme.steps - 1)
        nearest = int(np.abs(table - math.log2(abs(value))).argmin())
        expected = 0.0 if abs(value) <= threshold else math.copysign(2.0 ** table[max(nearest, int(value < 0))], value)
        assert real == np.float32(expected)


def test_nan_is_zero_and_infinity_is_refused() -> None:
    assert fake_quantize(values(np.nan), 0, EIGHT)[0] == 0
    for value in (np.inf, -np.inf):
        with pytest.raises(InputError, match="found infinity"):
            fake_quantize(values(1, value), 0, EIGHT)
        with pytest.raises(UnsupportedError, match="a finite number is needed"):
            z_of(value, EIGHT)


def test_other_widths_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="NNIE has 8 and 16"):
        scheme_of(4)
