"""`tflq.read_model`: read a model of any supported format, which is recognized by the content of the file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TypeAlias

from tflq.converters import tflite
from tflq.files import Source, content_of, name_of_source
from tflq.graph import Model

ModelSource: TypeAlias = "Model | Source"
"""A model; or its file: the path, the content, or the file opened for reading bytes."""

_OPENVINO = re.compile(rb"\s*(<\?xml[^>]*>)?\s*<net[\s>]")
_COMPASS = re.compile(rb"\s*model_name\s*=")
_TFLITE = b"TFL3"
_SUFFIXES = {".xml": "openvino", ".txt": "aipu"}


def read_model(source: ModelSource) -> Model:
    """Read a .tflite file, OpenVINO's IR (an .xml next to its .bin) or Compass IR (a .txt next to its .bin).

    Args:
        source: Path; or the content of a .tflite file, or the file opened for reading bytes. A model is returned
            unchanged.

    Raises:
        InputError: The file is missing or empty.
        FormatError: The file is damaged, or has an unsupported format.
        UnsupportedError: The model contains unsupported operators.
    """
    if isinstance(source, Model):
        return source
    if not isinstance(source, (str, os.PathLike)):
        return tflite.read_model(source)
    # Format by the first bytes, else by the suffix; the reader then reports the error.
    kind = _known_format(Path(source)) or _SUFFIXES.get(Path(source).suffix.lower(), "tflite")
    if kind == "openvino":
        from tflq.converters.openvino import reader

        return reader.read_model(os.fspath(source))
    if kind == "aipu":
        from tflq.converters.aipu import ingest

        return ingest.read_model(source)
    return tflite.read_model(source)


def is_model_file(path: str) -> bool:
    """Whether a file begins like a model's file; its suffix may be that of another kind of file."""
    return _known_format(Path(path)) is not None


def read_with_content(source: ModelSource) -> tuple[Model, bytes | memoryview | None]:
    """Return a model and the content of its file, read once; the content is None if the model was built in memory.

    Raises:
        InputError, FormatError, UnsupportedError: As for `read_model`.
    """
    if isinstance(source, Model):
        return source, None
    content = content_of(source)
    if isinstance(source, (str, os.PathLike)):
        return read_model(source), content
    return tflite.model_from_bytes(content, name_of(source)), content


def name_of(source: ModelSource) -> str:
    """Return the name of a model in reports: its path as passed, or "model" if it is unknown."""
    return (source.source or "model") if isinstance(source, Model) else name_of_source(source)


def _known_format(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError:
        return None
    if head[4:8] == _TFLITE:
        return "tflite"
    if _OPENVINO.match(head):
        return "openvino"
    return "aipu" if _COMPASS.match(head) else None
