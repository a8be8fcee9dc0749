"""NON_MAX_SUPPRESSION where scores and overlaps lie at the limits, in onnxruntime and OpenVINO."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.support.onnx_run import run_onnx
from tests.support.openvino import Runtime, files_of
from tflq.converters.onnx import ONNX
from tflq.converters.openvino import OPENVINO
from tflq.converters.settings import parse_settings
from tflq.converters.targets import Target
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Graph, GraphBuilder, Model
from tflq.interpreter import Engine

BOXES = np.array(
    [[0, 0, 1, 1], [0, 0, 1, 0.5], [0, 0.5, 1, 1], [2, 2, 3, 3], [2, 2, 3, 2.25], [0, 0, 0.5, 1], [5, 5, 6, 6]],
    np.float32,
)
SCORES = np.array([0.75, 0.5, 0.875, 0.25, 0.625, 0.375, 0.125], np.float32)


def suppressed(most: int, overlap: float, least: float, sigma: float | None) -> Graph:
    b = GraphBuilder("suppressed")
    given = [b.input("boxes", (7, 4), DType.FLOAT32), b.input("scores", (7,), DType.FLOAT32)]
    given.append(b.constant("most", np.array(most, np.int32)))
    given += [b.constant("limit", np.array(v, np.float32)) for v in (overlap, least, sigma) if v is not None]
    kinds = [("places", (most,), DType.INT32), ("scored", (most,), DType.FLOAT32), ("count", (), DType.INT32)]
    outputs = [b.tensor(*k) for k in kinds if sigma is not None or k[0] != "scored"]
    b.node(f"non_max_suppression_v{4 if sigma is None else 5}", given, outputs)
    return b.build(outputs)


def found_by(target: Target, graph: Graph, inputs: Sequence[Array], options: Sequence[str]) -> list[Array]:
    written = target.quantize(graph, parse_settings(target.settings, options))
    files = target.emit(written, Model([graph], source="boxes.tflite"))
    if target is OPENVINO:
        return Runtime(*files_of(files)).run_all(inputs)
    (data,) = files.values()
    return run_onnx(data, inputs)


@pytest.mark.parametrize("target", [ONNX, OPENVINO], ids=lambda t: t.name)
@pytest.mark.parametrize("sigma", [None, 0.0])
@pytest.mark.parametrize(
    ("most", "overlap"), [(1, 0.5), (3, 0.25), (7, 0.5), (7, 0.25), (9, 0.499), (9, 0.501), (9, 1)]
)
def test_limits(target: Target, sigma: float | None, most: int, overlap: float) -> None:
    """The halves of the first box overlap it by just 0.5, the quarter by 0.25; what reaches the limit is dropped."""
    for least in (0.0, 0.25, 0.375, 0.376, 2.0):
        graph = suppressed(most, overlap, least, sigma)
        inputs = [np.stack([BOXES, BOXES[::-1]]), np.stack([SCORES, SCORES[::-1]])]
        ours = Engine(graph, "float").run(inputs)
        for t, theirs in zip(graph.outputs, found_by(target, graph, inputs, []), strict=True):
            assert ours[t].shape == theirs.shape
            assert np.array_equal(ours[t], theirs), (graph.tensors[t].name, least)


@pytest.mark.parametrize("target", [ONNX, OPENVINO], ids=lambda t: t.name)
def test_what_cannot_be_written(target: Target) -> None:
    for sigma in (0.5, 1.0):
        with pytest.raises(UnsupportedError, match=r"soft suppression \(sigma above 0\); hard suppression can be"):
            found_by(target, suppressed(3, 0.5, 0.0, sigma), [], [])
    for overlap in (0.0, -0.5):
        with pytest.raises(UnsupportedError, match=f"suppression from an overlap of {overlap:g} on; above 0 can be"):
            found_by(target, suppressed(3, overlap, 0.0, None), [], [])
