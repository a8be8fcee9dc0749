"""The keys as docs/targets/openvino.md states them, and which of them a layer may have for itself."""

from __future__ import annotations

import pytest

from tests.support.stated_settings import check_key, check_layer, stated
from tflq.converters.openvino import OPENVINO

STATED = [*stated("openvino.md")]
OF_THE_ENDS = ("input", "output", "batch")


def test_every_key_is_stated() -> None:
    assert [name for name, _, _ in STATED] == [setting.key for setting in OPENVINO.settings]


@pytest.mark.parametrize(("name", "values", "default"), STATED)
def test_what_is_allowed(name: str, values: str, default: str) -> None:
    if name != "levels":  # tests/converters/openvino/test_options.py tries each number
        check_key(OPENVINO.settings, name, values, default)
    check_layer(OPENVINO.settings, name, default, is_per_layer=name not in OF_THE_ENDS)
