"""Where the tests find models, data sets and golden results: the folder that TFLQ_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def data_path(*parts: str) -> Path:
    """Return a path below TFLQ_DATA; skip the test, with the reason, where it is not there."""
    root = os.environ.get("TFLQ_DATA")
    if not root:
        pytest.skip("TFLQ_DATA is not set: no models, data sets or golden results on this machine")
    path = Path(root, *parts)
    if not path.exists():
        pytest.skip(f"TFLQ_DATA has no {'/'.join(parts)}")
    return path


def data_files(*parts: str, pattern: str = "*.tflite") -> list[Path]:
    """Return the sorted files below a folder of TFLQ_DATA for parametrization; empty where it is not set."""
    root = os.environ.get("TFLQ_DATA")
    return sorted(Path(root, *parts).rglob(pattern)) if root else []
