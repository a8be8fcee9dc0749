"""Compass IR as a model file: the text and the binary file beside it."""

from __future__ import annotations

import os
from pathlib import Path

from tflq.converters.aipu.ingest import graph_of
from tflq.errors import FormatError, GraphError, UnsupportedError
from tflq.files import read_bytes
from tflq.graph import Model
from tflq.schemas.aipu import read_network


def read_model(path: str | os.PathLike[str]) -> Model:
    """Return the model of NAME.txt and NAME.bin, float or quantised.

    A quantised one runs as it is, in the integers of the file; a float one is what target `aipu` quantises, by the
    ranges that it states.

    Raises:
        InputError: a file that is missing or empty; the binary file may be.
        FormatError: damage; the message begins with the file, the line and the key.
        UnsupportedError: layers without a kernel.
        GraphError: a graph that contradicts itself.
    """
    text, binary = Path(path), Path(path).with_suffix(".bin")
    content = bytes(read_bytes(text))
    constants = bytes(read_bytes(binary)) if not binary.exists() or binary.stat().st_size else b""
    try:
        network = read_network(content.decode("utf-8"), constants)
        return Model([graph_of(network)], source=str(path))
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: is no text in UTF-8: {error.reason} at byte {error.start}") from None
    except (FormatError, GraphError, UnsupportedError) as error:
        raise type(error)(f"{path}: {error}") from None
