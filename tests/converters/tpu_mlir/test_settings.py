"""The keys of the target: defaults, what is allowed, and which a layer may have of its own.

Source: docs/targets/tpu_mlir.md#files.
"""

from __future__ import annotations

import pytest

from tests.support.stated_settings import Row, check_row, rows
from tflq.converters.targets import find_target

KEYS: list[Row] = [
    # key, default, words that are allowed or both ends or the type, and whether a layer may have it
    ("asymmetric", False, "bool", False),
    ("mode", "INT8", ("INT8", "F16", "F32"), True),
    ("formulas", "tool", ("tool", "manual"), False),
    (
        "chip",
        "bm1684x",
        ("bm1684x", "bm1684x2", "bm1688", "bm1690", "bm1690e", "cv184x", "cv186x", "sg2262", "sg2380", "sgtpuv8"),
        False,
    ),
    ("quant_input", False, "bool", False),
    ("quant_output", False, "bool", False),
    ("mean", "", "str", False),
    ("scale", "", "str", False),
    ("pixel_format", "", ("", "rgb", "bgr", "gray", "rgba"), False),
    ("calibration_table", "", "str", False),
]


def test_every_key_has_a_row() -> None:
    assert rows(find_target("tpu-mlir").settings) == KEYS


@pytest.mark.parametrize("row", KEYS, ids=lambda row: str(row[0]))
def test_what_is_allowed(row: Row) -> None:
    check_row(find_target("tpu-mlir").settings, row)
