"""Which installed package holds TFLite's interpreter, and how the worker imports it."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from typing import Literal

from tflq.errors import MissingExtraError

Package = Literal["auto", "litert", "tensorflow"]
Kernels = Literal["BUILTIN_REF", "BUILTIN", "AUTO"]

DISTRIBUTIONS = {"litert": "ai-edge-litert", "tensorflow": "tensorflow"}
INTERPRETERS = {"litert": "ai_edge_litert.interpreter", "tensorflow": "tensorflow.lite.python.interpreter"}
# TFLite's own BUILTIN adds XNNPACK; here BUILTIN is its optimized kernels alone, and AUTO is a user's default.
RESOLVERS = {"BUILTIN_REF": "BUILTIN_REF", "BUILTIN": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO": "AUTO"}


def find_package(package: Package) -> str:
    """Return "litert" or "tensorflow"; auto prefers litert, which starts in a tenth of the time.

    Raises:
        MissingExtraError: it is not installed.
    """
    wanted = ("litert", "tensorflow") if package == "auto" else (package,)
    for name in wanted:
        if is_installed(name):
            return name
    missing = " or ".join(DISTRIBUTIONS[name] for name in wanted)
    raise MissingExtraError(f"the oracle needs {missing}, which is not installed: pip install tflq[{wanted[0]}]")


def is_installed(name: str) -> bool:
    """Tell whether the package is there, without importing it."""
    return importlib.util.find_spec(INTERPRETERS[name].partition(".")[0]) is not None


def installed_version(name: str) -> str:
    """Return the version that the imported package states, else the one its installation recorded."""
    module = importlib.import_module(INTERPRETERS[name].partition(".")[0])
    version = getattr(module, "__version__", None)
    return str(version) if version else importlib.metadata.version(DISTRIBUTIONS[name])
