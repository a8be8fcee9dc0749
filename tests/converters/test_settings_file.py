"""Settings as a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tflq.converters.settings import SettingsFile, read_settings, settings_bytes
from tflq.errors import FormatError, InputError

SETTINGS = SettingsFile("gap9-ne16", ("feature_bits=8",), ("conv:weight_bits=3", "ü:weight_bits=4,use_ne16=true"))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(settings_bytes(SETTINGS, {"note": [1, None]}))
    assert read_settings(path) == SETTINGS
    assert json.loads(path.read_text(encoding="utf-8"))["about"] == {"note": [1, None]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("{", "is no settings file"),
        ("[]", "needs the key 'tflq_settings'"),
        ("{}", "needs the key 'tflq_settings'"),
        ("[" * 100000, "is no settings file"),
        ('{"tflq_settings": 2}', "has version 2; allowed is 1"),
        ('{"tflq_settings": 1}', "'target' is null"),
        ('{"tflq_settings": 1, "target": "a", "layer": []}', "unknown key 'layer'; known are about, layers, set"),
        ('{"tflq_settings": 1, "target": "a", "set": "x"}', "'set' is no list of texts"),
        ('{"tflq_settings": 1, "target": "a", "layers": [1]}', "'layers' is no list of texts"),
    ],
)
def test_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises((FormatError, InputError), match=message):
        read_settings(path)
