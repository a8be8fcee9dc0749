"""tflq: reads .tflite files, requantises them for NPUs, and runs TFLite's integers bit for bit in numpy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tflq.converters.tflite import model_from_bytes, model_to_bytes, read_model, write_model
    from tflq.interpreter import Engine, lower
    from tflq.tflite_interpreter import Interpreter

__version__ = "0.1.0"

_HOMES = {
    "Engine": "tflq.interpreter",
    "Interpreter": "tflq.tflite_interpreter",
    "lower": "tflq.interpreter",
    "model_from_bytes": "tflq.converters.tflite",
    "model_to_bytes": "tflq.converters.tflite",
    "read_model": "tflq.converters.tflite",
    "write_model": "tflq.converters.tflite",
}

__all__ = [
    "Engine",
    "Interpreter",
    "__version__",
    "lower",
    "model_from_bytes",
    "model_to_bytes",
    "read_model",
    "write_model",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `import tflq` stays quick."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tflq' has no attribute {name!r}")
