"""The keys of the target: defaults, what is allowed, and which a layer may have of its own.

Source: docs/rules/tflite/index.md.
"""

from __future__ import annotations

import pytest

from tests.support.stated_settings import Row, check_row, rows
from tflq.converters.targets import find_target

KEYS: list[Row] = [
    # key, default, words that are allowed or both ends or the type, and whether a layer may have it
    ("type", "int8", ("int8", "int16x8", "weights", "hybrid", "float16", "float"), True),
    ("weight_bits", 8, (8, 4), True),
    ("recipe", "", "str", False),
    ("least_weights", 0, "from 0", True),
    ("asymmetric_inputs", False, "bool", True),
    ("per_channel", True, "bool", True),
    ("symmetric", False, "bool", False),
    ("inputs", "integer", ("integer", "uint8", "float"), False),
    ("outputs", "integer", ("integer", "uint8", "float"), False),
]


def test_every_key_has_a_row() -> None:
    assert rows(find_target("tflite").settings) == KEYS


@pytest.mark.parametrize("row", KEYS, ids=lambda row: str(row[0]))
def test_what_is_allowed(row: Row) -> None:
    check_row(find_target("tflite").settings, row)
