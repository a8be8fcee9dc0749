"""Constants of float16 behind a DEQUANTIZE, as TFLite's converter writes them for `float16` weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.passes.rewrite import without_nodes
from tflq.graph import DType, Graph


def widen_halves(graph: Graph) -> Graph:
    """Return the graph with such constants as float32, which is exact, and without the DEQUANTIZE.

    The graph itself where it has none. Tensors keep their numbers.
    """
    result, gone = graph.copy(), set[int]()
    for index, node in enumerate(graph.nodes):
        source = graph.tensors[node.inputs[0]] if node.operator == "dequantize" else None
        if source is None or source.data is None or source.dtype is not DType.FLOAT16:
            continue
        data = source.data.astype(np.float32)
        data.setflags(write=False)
        (t,) = node.outputs
        result.tensors[t] = replace(graph.tensors[t], data=data, shape=data.shape)
        gone.add(index)
    return without_nodes(result, gone) if gone else graph
