"""Runs ONNX files in onnxruntime, with arrays in the model's own layout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tflq.graph import Array

TO_CHANNELS_FIRST = (0, 3, 1, 2)
TO_CHANNELS_LAST = (0, 2, 3, 1)


def run_onnx(content: bytes, inputs: Sequence[Array], in_layout: bool = True) -> list[Array]:
    """Check a model and run samples one by one: inputs [S, N, H, W, C] or [S, *shape] -> outputs likewise.

    With `in_layout` the model's own images are [N, C, H, W].
    """
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx]")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: it comes with tflq[test]")
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    to_first, to_last = (TO_CHANNELS_FIRST, TO_CHANNELS_LAST) if in_layout else ((0, 1, 2, 3), (0, 1, 2, 3))
    names = [value.name for value in session.get_inputs()]
    results = [
        session.run(None, {name: _moved(x[s], to_first) for name, x in zip(names, inputs, strict=True)})
        for s in range(inputs[0].shape[0])
    ]
    return [np.stack([_moved(result[i], to_last) for result in results]) for i in range(len(results[0]))]


def _moved(x: Array, order: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(x.transpose(order)) if np.ndim(x) == 4 else np.asarray(x)
