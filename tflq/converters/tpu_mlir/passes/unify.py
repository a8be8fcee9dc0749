"""Ranges that neighbours must share (docs/tpu_mlir.md, 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tflq.converters.tpu_mlir.calibration_table import CalibrationLine
from tflq.graph import Graph, Node
from tflq.schemas.tpu_mlir import operators_of

Lines = dict[int, CalibrationLine]

JOINED = operators_of("ranges", "joined")
FROM_OUTPUT = operators_of("ranges", "from_output")
FROM_INPUT = operators_of("ranges", "from_input")
SYMMETRIC = operators_of("ranges", "symmetric_in_the_asymmetric_mode")
RAW = (*JOINED, *FROM_OUTPUT, *FROM_INPUT)
"""Operators whose input and output have one type."""


def unify(graph: Graph, lines: Mapping[int, CalibrationLine], asymmetric: bool) -> Lines:
    """Return the range of each tensor after unification; tensors keep the names of their own lines.

    First, in the asymmetric mode: signed products and differences reach from -threshold to threshold.
    Backwards: the input of a max pool takes the range of its output; input and output of a leaky ReLU both take the
    minimum of the input and the maximum of the output. Neither where the input has other readers. Forwards: the output
    of these, and of operators that do not change values, takes the range of the input.
    """
    result: Lines = dict(lines)
    for node in graph.nodes if asymmetric else ():
        line = result.get(node.outputs[0])
        if node.operator in SYMMETRIC and line is not None and line.minimum < 0:
            result[node.outputs[0]] = replace(line, minimum=-line.threshold, maximum=line.threshold)
    uses = graph.consumers()
    for node in reversed(graph.nodes):
        x, y = node.inputs[0], node.outputs[0]
        alone = len(uses.get(x, [])) == 1 and x not in graph.outputs
        if node.operator in (*JOINED, *FROM_OUTPUT) and alone and x in result and y in result:
            result[x] = _joined(result[x], result[y], node)
    for node in graph.nodes:
        x, y = node.inputs[0], node.outputs[0]
        if node.operator in RAW and x in result:
            result[y] = result[x]
    return result


def _joined(x: CalibrationLine, y: CalibrationLine, node: Node) -> CalibrationLine:
    if node.operator in FROM_OUTPUT:
        return replace(y, name=x.name)
    threshold = max(abs(x.minimum), abs(y.maximum))
    return replace(x, threshold=threshold, maximum=y.maximum)
