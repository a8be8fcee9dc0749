"""The range of each tensor as a line of the calibration table: from a table, or from the graph's own ranges."""

from __future__ import annotations

from collections.abc import Mapping

from tflq.converters.passes.patterns import fused_activation
from tflq.converters.tpu_mlir.calibration_table import CalibrationLine, CalibrationTable, parse_calibration_table
from tflq.converters.tpu_mlir.passes.unify import Lines
from tflq.errors import FormatError
from tflq.files import read_bytes
from tflq.graph import Graph, Node, Range


def lines_of(graph: Graph, names: Mapping[int, str]) -> Lines:
    """Return the ranges of a fused graph's tensors, in the graph's order.

    threshold = max(|min|, |max|). What a rectifier writes begins at 0 and a RELU6 ends at 6, also where a calibration
    or a file says otherwise: the tool stores no clamp but the saturation of the codes.
    """
    lines = {t: _line(names[t], found) for t in graph.inputs if (found := graph.tensors[t].range) is not None}
    for node in graph.nodes:
        for t in node.outputs:
            found = graph.tensors[t].range
            if found is not None:
                lines[t] = _clamped(_line(names[t], found), node)
    return lines


def lines_of_table(graph: Graph, names: Mapping[int, str], table: CalibrationTable) -> Lines:
    """Return the lines that a table has for a fused graph's tensors, in the graph's order."""
    computed = [*graph.inputs, *(t for node in graph.nodes for t in node.outputs)]
    found = {t: table.find(names[t]) for t in computed}
    return {t: line for t, line in found.items() if line is not None}


def read_table(path: str, names: Mapping[int, str]) -> CalibrationTable:
    """Read the file of a calibration table.

    Raises:
        InputError: the file cannot be read.
        FormatError: with file and line; the table must name tensors of the network only.
    """
    try:
        text = bytes(read_bytes(path)).decode("utf-8")
    except UnicodeDecodeError:
        raise FormatError(f"{path}: is no text; a calibration table is lines of name, threshold, min, max") from None
    return parse_calibration_table(text, list(names.values()), path)


def _line(name: str, found: Range) -> CalibrationLine:
    low, high = float(found.minimum.min()), float(found.maximum.max())
    return CalibrationLine(name, max(abs(low), abs(high)), low, high)


def _clamped(line: CalibrationLine, node: Node) -> CalibrationLine:
    clamp = fused_activation(node)
    clamp = node.operator if clamp == "none" else clamp
    if clamp not in ("relu", "relu6"):
        return line
    high = min(line.maximum, 6.0) if clamp == "relu6" else line.maximum
    return CalibrationLine(line.name, max(high, 0.0), max(line.minimum, 0.0), max(high, 0.0))
