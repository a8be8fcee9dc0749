"""All files of a quantized graph."""

from __future__ import annotations

from pathlib import PurePath

from tflq.converters.gap9.emit.hardware import (
    BINARY,
    HEADER,
    SOURCE,
    c_header,
    c_source,
    constants_of,
    hardware_memory,
    index_json,
    npz_bytes,
)
from tflq.converters.gap9.emit.jobs import job_files
from tflq.converters.gap9.emit.nntool_script import nntool_script
from tflq.converters.gap9.emit.quantization_json import quantization_json
from tflq.converters.gap9.emit.run_function import run_function
from tflq.converters.gap9.emit.tflite_view import tflite_view
from tflq.converters.tflite import model_to_bytes
from tflq.errors import UnsupportedError
from tflq.graph import Graph, Model
from tflq.interpreter import lower
from tflq.schemas import Json


def artifacts_of(graph: Graph, target: str, source: Model) -> dict[str, bytes]:
    """Return file name -> content.

    Args:
        graph: quantized, lowered or not.
        target: name of the target.
        source: the model that was quantized.

    Raises:
        UnsupportedError: a value that GAP9 cannot hold.
    """
    lowered = graph if all(n.params is not None for n in graph.nodes) else lower(graph, "gap9")
    constants = constants_of(lowered)
    tflite, reason = _tflite(lowered)
    memory, entries = hardware_memory(lowered)
    notes: dict[str, Json] = {
        "constants": "constants.npz",
        "tflite": "model.tflite" if tflite else None,
        "tflite_reason": reason or None,
        "hardware": index_json(entries),
    }
    name = PurePath(source.source).name
    files = {
        "quantization.json": quantization_json(lowered, target, name, constants, notes),
        "constants.npz": npz_bytes(constants),
        BINARY: memory,
        SOURCE: c_source(memory, entries, run_function(lowered, name, entries)),
        HEADER: c_header(entries),
        **job_files(lowered),
        "nntool.py": nntool_script(lowered, target, name),
    }
    if tflite:
        files["model.tflite"] = tflite
    return files


def _tflite(graph: Graph) -> tuple[bytes, str]:
    """Return the file, or nothing and why."""
    try:
        return model_to_bytes(tflite_view(graph)), ""
    except UnsupportedError as error:
        return b"", str(error)
