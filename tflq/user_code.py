"""Runs Python files that the user names: the only code of others that tflq executes (docs/guides/limits.md)."""

from __future__ import annotations

import sys
from types import ModuleType


def run_user_file(module: str, path: str, text: str) -> ModuleType:
    """Run the text of a file as a module of its own, and return that.

    Args:
        module: its name in `sys.modules`, where dataclasses and pickle look it up; it stays there unless it fails.
        path: of the file, for tracebacks.
        text: what runs.

    Raises:
        Exception: whatever the text raises, or a SyntaxError.
    """
    found = ModuleType(module)
    found.__file__ = path
    sys.modules[module] = found
    try:
        exec(compile(text, path, "exec"), found.__dict__)
    except BaseException:
        del sys.modules[module]
        raise
    return found
