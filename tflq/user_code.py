"""Execution of Python files that the user names, the only external code that tflq runs (docs/guides/limits.md)."""

from __future__ import annotations

import sys
from types import ModuleType


def run_user_file(module: str, path: str, text: str) -> ModuleType:
    """Run the text of a file as a separate module, and return the module.

    Args:
        module: Name in `sys.modules`, for dataclasses and pickle; it is removed if the text fails.
        path: Path of the file, for tracebacks.
        text: Content of the file.

    Raises:
        Exception: Any exception of the text, or a SyntaxError.
    """
    loaded = ModuleType(module)
    loaded.__file__ = path
    sys.modules[module] = loaded
    try:
        exec(compile(text, path, "exec"), loaded.__dict__)
    except BaseException:
        del sys.modules[module]
        raise
    return loaded
