"""A target's settings as a file: what a search of precision writes and `--settings` reads.

JSON: {"tflq_settings": 1, "target": NAME, "set": ["key=value", ...], "layers": ["PATTERN:key=value,...", ...],
"about": {...}}. "set" and "layers" are what `--set` and `--layer` take; "about" says where the file comes from and is
not read. Files of a vendor's tool are read as well: opt.cfg and opt_template.json of Compass.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tflq.converters.settings import Value
from tflq.errors import FormatError
from tflq.files import read_bytes
from tflq.quoting import json_text

VERSION = 1
_MARK = "tflq_settings"
_KEYS = {_MARK, "target", "set", "layers", "about"}
_COMPASS = re.compile(rb"""^\s*\[Common\]|^\s*"q_bits_activation":""", re.MULTILINE)
"""What is in opt.cfg, and in opt_template.json."""


@dataclass(frozen=True)
class SettingsFile:
    """What such a file says.

    Attributes:
        target: name of the target that it is for.
        assignments: `key=value` for the whole graph.
        layers: `PATTERN:key=value,...` for single layers, later ones win.
        calibration: what a vendor's file says of the calibration: strategy, batch_size, momentum, bins, samples.
    """

    target: str
    assignments: tuple[str, ...]
    layers: tuple[str, ...]
    calibration: Mapping[str, Value] = field(default_factory=dict)


def settings_bytes(settings: SettingsFile, about: Mapping[str, object]) -> bytes:
    """Return the file's content.

    Args:
        settings: what to write.
        about: facts for the reader, of types that JSON knows.
    """
    content = {
        _MARK: VERSION,
        "target": settings.target,
        "set": list(settings.assignments),
        "layers": list(settings.layers),
        "about": dict(about),
    }
    return (json_text(content, 2, allow_nan=False) + "\n").encode()


def read_settings(path: str | os.PathLike[str]) -> SettingsFile:
    """Read such a file.

    Raises:
        InputError: the file cannot be read.
        FormatError: it is no JSON, or has other keys or types than stated above.
    """
    data = bytes(read_bytes(path))
    if _COMPASS.search(data):
        from tflq.converters.aipu.tool_config import read_config  # a target's module, for its own files only

        return read_config(data.decode("utf-8", errors="replace"), os.fspath(path))
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: is no settings file: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict) or _MARK not in content:
        raise FormatError(f"{path}: is no settings file: it needs the key '{_MARK}'; `tflq search -o` writes one")
    if content[_MARK] != VERSION:
        raise FormatError(f"{path}: has version {content[_MARK]!r}; allowed is {VERSION}")
    unknown = sorted(content.keys() - _KEYS)
    if unknown:
        raise FormatError(f"{path}: unknown key '{unknown[0]}'; known are {', '.join(sorted(_KEYS))}")
    target = content.get("target")
    if not isinstance(target, str):
        raise FormatError(f"{path}: 'target' is {json_text(target, None)}; allowed is the name of a target")
    return SettingsFile(target, _texts(path, content, "set"), _texts(path, content, "layers"))


def _texts(path: str | os.PathLike[str], content: dict[str, object], key: str) -> tuple[str, ...]:
    found = content.get(key, [])
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise FormatError(f"{path}: '{key}' is no list of texts")
    return tuple(found)
