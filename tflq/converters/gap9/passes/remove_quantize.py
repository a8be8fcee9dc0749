"""QUANTIZE and DEQUANTIZE of the file go: types are chosen anew, and nodes come back only where two types meet."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.gap9.affine_types import file_range
from tflq.converters.gap9.rewrite import pruned, redirect
from tflq.graph import Graph


def remove_quantize(graph: Graph) -> Graph:
    """Return the graph without the file's QUANTIZE and DEQUANTIZE operators.

    Readers of the output read the input instead. A float graph input takes over the quantised tensor's type and range.
    """
    result = graph.copy()
    for index, node in enumerate(graph.nodes):
        if node.operator not in ("quantize", "dequantize"):
            continue
        source, target = result.nodes[index].inputs[0], node.outputs[0]
        if file_range(result.tensors[source]) is None:
            typed = result.tensors[target]
            result.tensors[source] = replace(
                result.tensors[source], dtype=typed.dtype, quantisation=typed.quantisation, range=typed.range
            )
        redirect(result, target, source)
    return pruned(result)
