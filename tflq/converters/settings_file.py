"""Settings of targets as a file, which a search of precision writes and `--settings` reads.

JSON: {"tflq_settings": 1, "target": NAME, "set": ["key=value", ...], "layers": ["PATTERN:key=value,...", ...],
"about": {...}}. "set" and "layers" have the form of `--set` and `--layer`; "about" states the origin of the file and is
not read. Files of a vendor's tool are read by the target that knows them (`Target.read_settings`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from tflq.converters.settings import SettingsFile
from tflq.converters.targets import find_target, target_names
from tflq.errors import FormatError
from tflq.files import read_bytes
from tflq.quoting import json_text

FILE_VERSION = 1
_FILE_MARK = "tflq_settings"
_FILE_KEYS = {_FILE_MARK, "target", "set", "layers", "about"}


def settings_bytes(settings: SettingsFile, about: Mapping[str, object]) -> bytes:
    """Return the file's content.

    Args:
        settings: what to write.
        about: facts for the reader, of types that JSON knows.
    """
    content = {
        _FILE_MARK: FILE_VERSION,
        "target": settings.target,
        "set": list(settings.assignments),
        "layers": list(settings.layers),
        "about": dict(about),
    }
    return (json_text(content, 2, allow_nan=False) + "\n").encode()


def read_settings(path: str | os.PathLike[str]) -> SettingsFile:
    """Read a file of settings, in the form above or that of a vendor's tool.

    Raises:
        InputError: The file cannot be read.
        FormatError: The file is not JSON, or has other keys or types than stated above.
    """
    data = bytes(read_bytes(path))
    try:
        content, problem = json.loads(data), f"it needs the key '{_FILE_MARK}'; `tflq search -o` writes one"
    except (ValueError, RecursionError) as error:
        content, problem = None, " ".join(str(error).split())
    if not isinstance(content, dict) or _FILE_MARK not in content:
        settings = _read_tool_settings(data.decode("utf-8", errors="replace"), os.fspath(path))
        if settings is None:
            raise FormatError(f"{path}: is no settings file: {problem}")
        return settings
    if content[_FILE_MARK] != FILE_VERSION:
        raise FormatError(f"{path}: has version {content[_FILE_MARK]!r}; allowed is {FILE_VERSION}")
    unknown = sorted(content.keys() - _FILE_KEYS)
    if unknown:
        raise FormatError(f"{path}: unknown key '{unknown[0]}'; known are {', '.join(sorted(_FILE_KEYS))}")
    target = content.get("target")
    if not isinstance(target, str):
        raise FormatError(f"{path}: 'target' is {json_text(target, None)}; allowed is the name of a target")
    return SettingsFile(target, _texts(path, content, "set"), _texts(path, content, "layers"))


def _read_tool_settings(text: str, path: str) -> SettingsFile | None:
    """Return the settings in a file of a vendor's tool; None if no target knows the file."""
    files = (find_target(name).read_settings(text, path) for name in target_names())
    return next((file for file in files if file is not None), None)


def _texts(path: str | os.PathLike[str], content: dict[str, object], key: str) -> tuple[str, ...]:
    texts = content.get(key, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise FormatError(f"{path}: '{key}' is no list of texts")
    return tuple(texts)
