"""model.tflite of drawn networks: TFLite runs it, and is as near to GAP9's integers as two roundings are."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gap9_drawn import drawn_network
from tests.support.gap9_recorded import codes_of, converted
from tflq.converters.gap9.emit.tflite_view import tflite_view
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.graph import DType, Graph, Model
from tflq.graph.float_view import dequantize
from tflq.interpreter import Engine
from tflq.interpreter.execution.settle import settle
from tflq.oracle import Oracle

COUNT = 40
ROUGH = {
    "0.sq8": 9,
    "11.ne16": 10,
    "11.sq8": 10.1,
    "12.ne16": 9.3,
    "12.sq8": 9.3,
    "14.ne16": 21,
    "14.sq8": 21,
    "22.ne16": 29,
    "22.sq8": 21,
    "35.ne16": 7,
    "35.sq8": 7,
}
"""Seed.engine -> how many steps of the output's scale the mean is off: small differences are multiplied there,
or TFLite cuts at a drawn range what GAP9 hands to a curve in 32 bits."""
OTHERWISE = {"sum", "resize_bilinear"}
"""What TFLite computes otherwise: sums of codes that wrap, and another grid of points."""


def _view(graph: Graph) -> tuple[bytes, Graph]:
    content = model_to_bytes(Model([tflite_view(graph)]))
    return content, model_from_bytes(content).main


@pytest.mark.parametrize("engine", ["ne16", "sq8"])
@pytest.mark.parametrize("seed", range(COUNT))
def test_tflite_runs_it(seed: int, engine: str, oracle: Oracle) -> None:
    graph = converted(f"{seed}.{engine}", "exact")
    content, view = _view(graph)
    codes = codes_of(drawn_network(seed), graph)
    ours = Engine(graph).run(codes)
    signed = [(c.astype(np.int64) - (0 if graph.tensors[t].affine.signed else 128)).astype(np.int8)
              for c, t in zip(codes, graph.inputs, strict=True)]  # fmt: skip
    theirs = oracle.run(content, signed, tensors="outputs").tensors
    assert [view.tensors[t].name for t in view.outputs] == [graph.tensors[t].name for t in graph.outputs]
    if OTHERWISE & {node.operator for node in graph.nodes}:
        return
    for t, u in zip(graph.outputs, view.outputs, strict=True):
        real = dequantize(theirs[u], view.tensors[u].affine)
        step = max(float(graph.tensors[t].affine.scale[0]), float(view.tensors[u].affine.scale[0]))
        off = np.abs(dequantize(ours[t], graph.tensors[t].affine).reshape(real.shape) - real).mean() / step
        assert off <= ROUGH.get(f"{seed}.{engine}", 2)


@pytest.mark.parametrize("engine", ["ne16", "sq8"])
@pytest.mark.parametrize("seed", range(COUNT))
def test_what_the_file_states(seed: int, engine: str) -> None:
    """Every shape is the one that follows; values are int8, sums int32; names are unlike."""
    _, view = _view(converted(f"{seed}.{engine}", "exact"))
    for stated, true in zip(view.tensors, settle(view).graph.tensors, strict=True):
        assert stated.shape == true.shape
        assert stated.dtype in (DType.INT8, DType.INT32)
        assert stated.data is None or stated.data.shape == stated.shape
    computed = [view.tensors[t].name for node in view.nodes for t in node.outputs]
    assert len({*computed}) == len(computed)
