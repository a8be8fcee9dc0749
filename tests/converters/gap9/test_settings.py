"""The keys of the target: defaults, what is allowed, and which a layer may have of its own (docs/targets/gap9.md)."""

from __future__ import annotations

import pytest

from tests.support.stated_settings import Row, check_row, rows
from tflq.converters.targets import find_target

KEYS: list[Row] = [
    # key, default, words that are allowed or both ends or the type, and whether a layer may have it
    ("use_ne16", True, "bool", True),
    ("weight_bits", 8, range(2, 9), True),
    ("weight_range", "narrow", ("narrow", "full"), True),
    ("feature_bits", 8, (8, 16), False),
    ("allow_asymmetric_out", False, "bool", False),
    ("softmax_out_8bits", False, "bool", True),
    ("max_precision_limit", 2, range(9), True),
    ("sub", "exact", ("exact", "nntool"), True),
    ("numerics", "exact", ("exact", "nntool"), True),
    ("expressions", "auto", ("true", "false", "auto"), False),
]


def test_every_key_has_a_row() -> None:
    assert rows(find_target("gap9-ne16").settings) == KEYS


@pytest.mark.parametrize("row", KEYS, ids=lambda row: str(row[0]))
def test_what_is_allowed(row: Row) -> None:
    check_row(find_target("gap9-ne16").settings, row)


def test_one_default_is_another_without_ne16() -> None:
    found = rows(find_target("gap9-sq8").settings)
    assert found == [(key, False if key == "use_ne16" else default, *more) for key, default, *more in KEYS]
