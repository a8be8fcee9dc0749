"""What each layer computes in: INT8, or reals where TPU-MLIR leaves the integers (docs/tpu_mlir.md, 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tflq.converters.settings import Options
from tflq.converters.tpu_mlir.options import LayerOptions
from tflq.graph import Affine, Graph, Node
from tflq.schemas.tpu_mlir import operators_of, specification

INT8, F16, F32 = "INT8", "F16", "F32"
AS_INPUT = "as input"
MOVES = ("reshape", "squeeze", "expand_dims", "transpose")
"""Operators that move whatever comes in."""
SUMS = ("add", "sub")


@dataclass(frozen=True)
class Engine:
    """What a layer computes in.

    Attributes:
        kind: INT8, F16, F32, or as its input.
        reason: why, where it is not plain INT8.
        is_asked: whether a layer rule asked for it: then it goes into the quantisation table.
    """

    kind: str
    reason: str = ""
    is_asked: bool = False


def engine_of(graph: Graph, node: Node, types: Mapping[int, Affine], options: Options[LayerOptions]) -> Engine:
    """Return what a layer of a fused graph computes in."""
    mode = options.of(node.name).mode
    if mode != INT8:
        return Engine(mode, f"mode={mode}", True)
    if node.operator in MOVES:
        return Engine(AS_INPUT)
    if node.operator in SUMS:
        ratios = [_ratio(types[t], types[node.outputs[0]]) for t in node.inputs if not graph.tensors[t].is_constant]
        limit = _largest_ratio()
        far = [r for r in ratios if not 1 / limit <= r <= limit]
        if far and not (node.operator == "sub" and options.whole.asymmetric):
            return Engine(F16, f"scales of input and output differ by {max(far[0], 1 / far[0]):.3g}, above {limit:g}")
    if options.whole.asymmetric:
        for kind in (F32, F16):
            if node.operator in operators_of("float_operators", "asymmetric", kind):
                return Engine(kind, f"{node.operator} in the asymmetric mode")
    return Engine(INT8)


def _ratio(x: Affine, y: Affine) -> float:
    return float(x.scale[0]) / float(y.scale[0])


def _largest_ratio() -> float:
    found = specification()["float_operators"]
    limit = found["largest_ratio_of_sum_scales"] if isinstance(found, dict) else 64
    assert isinstance(limit, int)
    return float(limit)
