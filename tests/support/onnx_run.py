"""Runs ONNX files in onnxruntime, with arrays in the model's own layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from tflq.converters.exchange.emitter import Value
from tflq.converters.onnx.writer import Writer
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


@contextmanager
def stated_values(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Value]]:
    """Collect the shapes and types that rules state for what they write, by the names in the file."""
    found: dict[str, Value] = {}

    class Noted(Writer):
        def add_multi(self, *given: Any, **options: Any) -> list[Value]:
            values = super().add_multi(*given, **options)
            found.update({value.name: value for value in values})
            return values

        def _rename(self, old: str, new: str) -> None:
            super()._rename(old, new)
            if old in found:
                found[new] = found.pop(old)

    with monkeypatch.context() as patched:
        patched.setattr(import_module("tflq.converters.onnx.translate"), "Writer", Noted)  # a function has its name
        yield found


def wrongly_stated(content: bytes, stated: dict[str, Value]) -> list[str]:
    """Return the values whose type or shape onnx infers otherwise than the rules state them."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx]")
    graph = onnx.load_from_string(content).graph
    wrong = []
    for value in (*graph.value_info, *graph.output):
        ours, theirs = stated.get(value.name), value.type.tensor_type
        if ours is None:
            continue
        sizes = [axis.dim_value if axis.HasField("dim_value") else None for axis in theirs.shape.dim]
        fits = len(sizes) == ours.rank and all(n in (None, m) for n, m in zip(sizes, ours.shape, strict=True))
        if not fits or onnx.helper.tensor_dtype_to_np_dtype(theirs.elem_type) != ours.dtype:
            wrong.append(f"{value.name}: stated {ours.dtype} {ours.shape}, onnx has {theirs.elem_type} {sizes}")
    return wrong
