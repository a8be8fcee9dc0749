"""From ranges to types (docs/tpu_mlir.md, 1)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tflq.converters.tpu_mlir.calibration_table import CalibrationLine
from tflq.converters.tpu_mlir.options import Options
from tflq.converters.tpu_mlir.passes.unify import RAW
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Graph
from tflq.interpreter.numerics.fixed_point import round_half_away
from tflq.schemas.tpu_mlir import operators_of

FIXED = operators_of("fixed_outputs", "operators")
"""Operators that always write uint8 with S = 1/255."""


def type_of(line: CalibrationLine, options: Options) -> Affine:
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


def types_of(graph: Graph, lines: Mapping[int, CalibrationLine], options: Options) -> dict[int, Affine]:
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
