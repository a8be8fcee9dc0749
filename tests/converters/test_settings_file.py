"""Settings as a file."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from tflq.converters import targets
from tflq.converters.settings import SettingsFile
from tflq.converters.settings_file import read_settings, settings_bytes
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


class Own:
    """A target of another package with a file of settings of its own tool."""

    name, summary, arithmetic, specification, settings = "own", "a test's", "float", {"bits": 32}, ()
    check = quantize = encode = emit = staticmethod(lambda *_: ())

    @staticmethod
    def read_settings(text: str, path: str) -> SettingsFile | None:
        """Read a file that begins with "bits"; refuse one without a number."""
        key, _, bits = text.partition(" ")
        if key != "bits":
            return None
        if not bits.isdecimal():
            raise FormatError(f"{path}: bits '{bits}'; allowed is a number")
        return SettingsFile("own", (f"weight_bits={bits}",), ())


def test_a_target_reads_the_files_of_its_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = EntryPoints([EntryPoint("own", f"{__name__}:Own", targets.ENTRY_POINT_GROUP)])
    monkeypatch.setattr(targets, "find_entry_points", lambda group: entries.select(group=group))
    path = tmp_path / "tool.cfg"
    path.write_text("bits 4")
    assert read_settings(path) == SettingsFile("own", ("weight_bits=4",), ())
    path.write_text("bits x")
    with pytest.raises(FormatError, match="bits 'x'; allowed is a number"):
        read_settings(path)
    path.write_text("weights 4")
    with pytest.raises(FormatError, match="is no settings file: Expecting value"):
        read_settings(path)
