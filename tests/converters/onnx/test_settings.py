"""The keys as docs/targets/onnx.md states them; all of them hold for the whole graph."""

from __future__ import annotations

import pytest

from tests.support.stated_settings import check_key, check_layer, stated
from tflq.converters.onnx import ONNX

STATED = [*stated("onnx.md")]


def test_every_key_is_stated() -> None:
    assert [name for name, _, _ in STATED] == [setting.key for setting in ONNX.settings]


@pytest.mark.parametrize(("name", "values", "default"), STATED)
def test_what_is_allowed(name: str, values: str, default: str) -> None:
    check_key(ONNX.settings, name, values, default)
    check_layer(ONNX.settings, name, default, is_per_layer=False)
