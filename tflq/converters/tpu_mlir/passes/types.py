"""From ranges to types (docs/tpu_mlir.md, 1 and 3): a line for each tensor, those that neighbours share, integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.passes.patterns import fused_activation
from tflq.converters.tpu_mlir.options import LayerOptions
from tflq.converters.tpu_mlir.tables import CalibrationLine, CalibrationTable, parse_calibration_table
from tflq.errors import FormatError, UnsupportedError
from tflq.files import read_bytes
from tflq.graph import Affine, Graph, Node, Range
from tflq.interpreter.numerics.fixed_point import round_half_away
from tflq.schemas.tpu_mlir import operators_of


def lines_of(graph: Graph, names: Mapping[int, str]) -> Lines:
    """Return the ranges of a fused graph's tensors, in the graph's order.

    threshold = max(|min|, |max|). What a rectifier writes begins at 0 and a RELU6 ends at 6, also where a calibration
    or a file says otherwise: TPU-MLIR stores no clamp but the saturation of the quantized values.
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


FIXED = operators_of("fixed_outputs", "operators")
"""Operators that always write uint8 with S = 1/255."""


def type_of(line: CalibrationLine, options: LayerOptions) -> Affine:
    """Return the type of a range.

    min >= 0 (also -0): uint8, Z = 0, S = threshold / 255. Else symmetric int8, S = threshold / 127 (the manual: 128),
    or asymmetric int8, S = (max - min) / 255, Z = round half away(-128 - min / S). All in float64.

    Raises:
        UnsupportedError: a range without a scale: threshold 0, not finite, or entirely below 0 in the asymmetric mode.
    """
    numbers = (line.threshold, line.minimum, line.maximum)
    if not np.all(np.isfinite(numbers)) or line.threshold <= 0:
        raise UnsupportedError(
            f"tensor '{line.name}' has threshold {line.threshold:g}, range {line.minimum:g}..{line.maximum:g}: no "
            f"scale above 0 stands for it; calibrate on samples for which it changes"
        )
    if line.minimum >= 0:
        return Affine.per_tensor(np.float64(line.threshold) / 255, 0, 8, signed=False)
    if not options.asymmetric:
        return Affine.per_tensor(np.float64(line.threshold) / (128 if options.manual else 127), 0)
    if line.maximum < 0 or line.maximum <= line.minimum:
        raise UnsupportedError(
            f"tensor '{line.name}' has the range {line.minimum:g}..{line.maximum:g}; the asymmetric mode needs one "
            f"that holds 0: widen it to 0, or use the symmetric mode"
        )
    scale = (np.float64(line.maximum) - line.minimum) / 255
    return Affine.per_tensor(scale, int(round_half_away(-128 - line.minimum / scale)))


def types_of(graph: Graph, lines: Mapping[int, CalibrationLine], options: LayerOptions) -> dict[int, Affine]:
    """Return the type of each input and computed tensor of a fused graph.

    Raises:
        UnsupportedError: tensors without a range, all at once; ranges without a scale.
    """
    missing = [t for t in graph.inputs if t not in lines]
    types = {t: type_of(lines[t], options) for t in graph.inputs if t in lines}
    for node in graph.nodes:
        x, y = node.inputs[0], node.outputs[0]
        if node.operator in FIXED:
            types[y] = Affine.per_tensor(np.float64(1) / 255, 0, 8, signed=False)
        elif node.operator in RAW:
            if x in types:
                types[y] = types[x]
        elif y in lines:
            types[y] = type_of(lines[y], options)
        else:
            missing.append(y)
    if missing:
        names = ", ".join(f"'{graph.tensors[t].name}'" for t in missing[:3])
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise UnsupportedError(
            f"{len(missing)} tensors have no range: {names}{more}; calibrate the model, give a quantised one, or name "
            f"a calibration_table"
        )
    return types
