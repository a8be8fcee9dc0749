"""From ranges to types (docs/rules/tpu_mlir.md#types-of-activations): a line for each tensor, then integers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tflq.converters.passes.requirements import refuse
from tflq.converters.settings import Options
from tflq.converters.tpu_mlir.options import LayerOptions
from tflq.converters.tpu_mlir.passes.forms import RECTIFIER_LIMITS
from tflq.converters.tpu_mlir.passes.unify import FIXED, Span
from tflq.converters.tpu_mlir.tables import CalibrationLine, CalibrationTable, few, parse_calibration_table
from tflq.errors import FormatError, UnsupportedError
from tflq.files import read_bytes
from tflq.graph import Affine, DType, Graph, Node, Range
from tflq.graph.rewriting import GraphEditor, fused_activation
from tflq.interpreter.numerics.fixed_point import round_half_away

Lines = dict[int, CalibrationLine]


def lines_of(graph: Graph, names: Mapping[int, str]) -> Lines:
    """Return the ranges of a fused graph's tensors, in the graph's order.

    threshold = max(|min|, |max|). What a rectifier writes begins at 0 and a RELU6 ends at 6, also where a calibration
    or a file says otherwise: TPU-MLIR stores no clamp but the saturation of the quantized values. A product of two
    tensors that are not negative begins at 0 as well: files say otherwise where MINIMUM or MAXIMUM, whose operands
    share one scale in TFLite, reads it, and TPU-MLIR ends at such a range.
    """
    lines = {t: _line(names[t], found) for t in graph.inputs if (found := graph.tensors[t].range) is not None}
    for node in graph.nodes:
        for t in node.outputs:
            found = graph.tensors[t].range
            if found is not None:
                lines[t] = _clamped(_line(names[t], found), node)
        y = node.outputs[0]
        if node.operator == "mul" and y in lines and not any(_may_be_negative(graph, t, lines) for t in node.inputs):
            high = max(lines[y].maximum, LEAST_THRESHOLD)
            lines[y] = CalibrationLine(names[y], high, max(lines[y].minimum, 0.0), high)
    return lines


def _may_be_negative(graph: Graph, t: int, lines: Lines) -> bool:
    data = graph.tensors[t].data
    return t not in lines or lines[t].minimum < 0 if data is None else bool((data.astype(np.float64) < 0).any())


def lines_of_table(graph: Graph, names: Mapping[int, str], cores: Mapping[int, str], table: CalibrationTable) -> Lines:
    """Return the lines that a table has for a fused graph's tensors, in the graph's order.

    Args:
        graph: fused.
        names: tensor -> what TPU-MLIR calls it.
        cores: tensor that is moved behind its operator -> its name in front of that, which may have the line instead.
        table: the lines.
    """
    computed = [*graph.inputs, *(t for node in graph.nodes for t in node.outputs)]
    found = {t: table.find(names[t]) or table.find(cores.get(t, "")) for t in computed}
    editor = GraphEditor(graph)
    for node in graph.nodes:
        x = node.inputs[0] if node.operator == "reshape" else -1
        if x in found and found[x] is None and editor.only_reader(x) is not None:
            found[x] = found[node.outputs[0]]  # TPU-MLIR reshapes the operands of a sum, and has no other name for it
    return {t: line for t, line in found.items() if line is not None and graph.tensors[t].dtype is not DType.BOOL}


def read_table(path: str, names: Mapping[int, str]) -> CalibrationTable:
    """Read the file of a calibration table; lines of tensors that the network does not have are not used.

    Raises:
        InputError: the file cannot be read.
        FormatError: with file and line, or a table that names no tensor of the network.
    """
    try:
        text = bytes(read_bytes(path)).decode("utf-8")
    except UnicodeDecodeError:
        raise FormatError(f"{path}: is no text; a calibration table is lines of name, threshold, min, max") from None
    table = parse_calibration_table(text, path)
    known = set(names.values())
    if not any(line.name in known for line in table.lines):
        raise FormatError(f"{path}: names no tensor of the network; it has {few(names.values())}")
    return table


LEAST_THRESHOLD = 1e-5
"""Threshold of a tensor that is always 0."""


def _line(name: str, found: Range) -> CalibrationLine:
    low, high = float(found.minimum.min()), float(found.maximum.max())
    if low == high == 0:
        return CalibrationLine(name, LEAST_THRESHOLD, 0.0, LEAST_THRESHOLD)
    return CalibrationLine(name, max(abs(low), abs(high)), low, high)


def _clamped(line: CalibrationLine, node: Node) -> CalibrationLine:
    clamp = fused_activation(node)
    clamp = node.operator if clamp == "none" else clamp
    if clamp not in RECTIFIER_LIMITS:
        return line
    high = min(line.maximum, RECTIFIER_LIMITS[clamp])
    return CalibrationLine(line.name, max(high, 0.0), max(line.minimum, 0.0), max(high, 0.0))


def type_of(span: Span, name: str, options: LayerOptions) -> Affine:
    """Return the type of a range after unification.

    min >= 0 (also -0): uint8, Z = 0, S = max / 255. Else symmetric int8, S = max(|min|, |max|) / 127 (the manual: 128),
    or asymmetric int8 over low = min, high = max(max, 0): S = (high - low) / 255, Z = rha(-128 - low / S). All
    in float64.

    Raises:
        UnsupportedError: a range without a scale: all 0, or not finite.
    """
    if not np.all(np.isfinite(span)) or span.magnitude == 0:
        raise UnsupportedError(
            f"tensor '{name}' has the range {span.minimum:g}..{span.maximum:g}: no scale above 0 stands for it; "
            f"calibrate on samples for which it changes"
        )
    if span.is_unsigned:
        return Affine.per_tensor(np.float64(span.maximum) / 255, 0, 8, signed=False)
    if not options.asymmetric:
        return Affine.per_tensor(np.float64(span.magnitude) / (128 if options.manual else 127), 0)
    scale = (np.float64(max(span.maximum, 0.0)) - span.minimum) / 255
    return Affine.per_tensor(scale, int(round_half_away(-128 - span.minimum / scale)))


def refuse_products(graph: Graph, spans: Mapping[int, Span], options: Options[LayerOptions]) -> None:
    """Refuse products in INT8 of two unsigned activations whose result is signed.

    Raises:
        UnsupportedError: all of them at once.
    """
    found = list[str]()
    for index, node in enumerate(graph.nodes):
        used = [spans.get(t) for t in (*node.inputs, node.outputs[0])]
        if node.operator != "mul" or None in used or options.of(node.name).mode != "INT8":
            continue
        if [s.is_unsigned for s in used if s] == [True, True, False]:
            found.append(
                f"{graph.where(index)}: a product of two tensors that are not negative has a range below 0, at which "
                f"TPU-MLIR ends; calibrate it, or give it a minimum of 0 (--ranges, calibration_table)"
            )
    refuse(found)


def types_of(graph: Graph, spans: Mapping[int, Span], options: LayerOptions) -> dict[int, Affine]:
    """Return the type of each input and computed tensor of real numbers of a fused graph.

    Raises:
        UnsupportedError: tensors without a range, all at once; ranges without a scale.
    """
    missing: list[int] = []
    types: dict[int, Affine] = {}
    fixed = {node.outputs[0] for node in graph.nodes if node.operator in FIXED}
    for t in (*graph.inputs, *(t for node in graph.nodes for t in node.outputs)):
        if t in fixed and t not in spans:
            types[t] = Affine.per_tensor(np.float64(1) / 255, 0, 8, signed=False)
        elif t in spans:
            types[t] = type_of(spans[t], graph.tensors[t].name, options)
        elif graph.tensors[t].dtype is DType.BOOL:
            types[t] = Affine.per_tensor(np.float64(1), 0, 8, signed=False)
        elif graph.tensors[t].dtype is DType.FLOAT32:
            missing.append(t)
    if missing:
        names = ", ".join(f"'{graph.tensors[t].name}'" for t in missing[:3])
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise UnsupportedError(
            f"{len(missing)} tensors have no range: {names}{more}; calibrate the model, give a quantized one, or name "
            f"a calibration_table"
        )
    return types
