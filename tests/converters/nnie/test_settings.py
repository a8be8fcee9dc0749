"""The keys of the target: defaults, what is allowed, and which a layer may have of its own (docs/targets/nnie.md)."""

from __future__ import annotations

import pytest

from tests.support.stated_settings import Row, check_row, rows
from tflq.converters.targets import find_target

KEYS: list[Row] = [
    # key, default, words that are allowed or both ends or the type, and whether a layer may have it
    ("bits", 8, (8, 16), True),
    ("formula", "library", ("library", "page", "mqbench"), False),
    ("internal_stride", 16, (16, 32), False),
    ("compress_mode", 0, (0, 1), False),
    ("is_simulation", 0, (0, 1), False),
    ("batch_num", 1, range(257), False),
]


def test_every_key_has_a_row() -> None:
    assert rows(find_target("nnie").settings) == KEYS


@pytest.mark.parametrize("row", KEYS, ids=lambda row: str(row[0]))
def test_what_is_allowed(row: Row) -> None:
    check_row(find_target("nnie").settings, row)
