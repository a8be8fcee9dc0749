"""Engine(backend="c") gives what numpy gives, in every tensor, of the model in the package."""

from __future__ import annotations

import numpy as np

from tests.support import c_compiler
from tests.support.tracked import ROOT
from tflq.converters.tflite import read_model
from tflq.interpreter import Engine


def test_every_tensor() -> None:
    c_compiler.compiler()
    graph = read_model(ROOT / "tflq" / "data" / "digits.tflite").main
    keep = [t for node in graph.nodes for t in node.outputs]
    x = np.random.default_rng(3).integers(-128, 128, (21, *graph.tensors[graph.inputs[0]].shape)).astype(np.int8)
    plain, compiled = Engine(graph).run([x], keep), Engine(graph, backend="c").run([x], keep)
    assert [graph.tensors[t].name for t in keep if not np.array_equal(plain[t], compiled[t])] == []
