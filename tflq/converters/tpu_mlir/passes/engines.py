"""What each layer computes in: INT8, or reals where TPU-MLIR leaves the integers.

Source: docs/rules/tpu_mlir_operators.md#elementwise-operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np

from tflq.converters.settings import Options
from tflq.converters.tpu_mlir.options import LayerOptions
from tflq.converters.tpu_mlir.passes.forms import Form, form_of, is_constant_first, is_mean, is_pool, seen_axis
from tflq.converters.tpu_mlir.passes.moves import SeenNetwork
from tflq.converters.tpu_mlir.passes.unify import KEEPS_MINIMUM, Span, factor_of, is_one_index, is_upsampled
from tflq.graph import Affine, Graph, Node
from tflq.graph.operators import Trait, has_trait
from tflq.graph.rewriting import fused_activation
from tflq.interpreter.operands.sliding_windows import window_of
from tflq.schemas.tpu_mlir import operators_of, specification

INT8, F16, F32 = "INT8", "F16", "F32"
AS_INPUT = "as input"


@dataclass(frozen=True)
class Engine:
    """What a layer computes in.

    Attributes:
        kind: INT8, F16, F32, or as its input.
        reason: why, where it is not plain INT8.
        is_asked: whether it goes into the quantization table: where a layer rule asks, or INT8 is wrong in TPU-MLIR.
    """

    kind: str
    reason: str = ""
    is_asked: bool = False


Spans = Mapping[int, Span]


@dataclass(frozen=True)
class Ranges:
    """Ranges and types of a fused graph's tensors.

    Attributes:
        seen: Names and permutations of the network.
        own: Ranges of the calibration table, before unification.
        spans: Ranges after unification.
        types: Types of the tensors in integers.
    """

    seen: SeenNetwork
    own: Spans
    spans: Spans
    types: Mapping[int, Affine]


def engine_of(graph: Graph, node: Node, ranges: Ranges, options: Options[LayerOptions]) -> Engine:
    """Return the engine of a layer of a fused graph."""
    names = ranges.seen.names
    mode = options.of(node.name).mode
    # a reshape has the mode of its input even if it is given one, except if ONNX writes a Transpose
    is_reshape = has_trait(node, Trait.RESHAPE) and not names[node.outputs[0]].endswith("_Transpose")
    if is_reshape or (mode == INT8 and has_trait(node, Trait.RESHAPE | Trait.REPEAT)):
        return Engine(AS_INPUT)
    if mode == F16 and (node.operator in operators_of("float_operators", "asked_for_F16", F32) or is_mean(graph, node)):
        return Engine(F32, f"mode=F16, but TPU-MLIR has {node.operator} in float32", True)
    if mode != INT8:
        return Engine(mode, f"mode={mode}", True)
    asymmetric = options.whole.asymmetric
    rule = _RULES.get(node.operator)
    if rule is not None:
        # TPU-MLIR decides on differences before it unifies ranges
        found = rule(graph, node, ranges.own if node.operator == "sub" else ranges.spans, asymmetric)
        if found.kind != INT8 or found.reason:
            return found
    if factor_of(graph, node) is not None and fused_activation(node) != "none":
        return Engine(INT8, "TPU-MLIR loses the rectifier behind a product with one number, unless a type saturates it")
    for kind in (F32, F16):
        if node.operator in operators_of("float_operators", "always", kind):
            return Engine(kind, f"{node.operator} has no integers")
        is_real = asymmetric and node.operator in operators_of("float_operators", "asymmetric", kind)
        if is_real and not (options.whole.manual and node.operator in KEEPS_MINIMUM):
            return Engine(kind, f"{node.operator} in the asymmetric mode")
    return Engine(INT8)


def _addition(graph: Graph, node: Node, spans: Spans, asymmetric: bool) -> Engine:
    form = form_of(graph, node)
    if form is Form.TWO:
        return _far_apart(node, spans)
    if form is Form.SCALAR and asymmetric:
        return Engine(F16, "one number is added in the asymmetric mode")
    return Engine(INT8)


def _subtraction(graph: Graph, node: Node, spans: Spans, asymmetric: bool) -> Engine:
    form = form_of(graph, node)
    if form is Form.SCALAR and not is_constant_first(graph, node):
        return Engine(F16, "a constant is subtracted in the asymmetric mode") if asymmetric else Engine(INT8)
    if max(_magnitude(graph, t, spans) for t in node.inputs) > spans[node.outputs[0]].magnitude:
        return Engine(F16, "an operand of the difference reaches further than its result")
    return Engine(F32, "sub in the asymmetric mode") if asymmetric and form is not Form.SCALAR else Engine(INT8)


def _magnitude(graph: Graph, t: int, spans: Spans) -> float:
    """Return the largest magnitude of a range, or of the values of a constant."""
    data = graph.tensors[t].data
    return spans[t].magnitude if data is None else float(np.abs(data.astype(np.float64)).max(initial=0))


def _extreme(graph: Graph, node: Node, spans: Spans, asymmetric: bool) -> Engine:  # noqa: ARG001
    if form_of(graph, node) in (Form.TWO, Form.SCALAR):
        return Engine(INT8)
    return Engine(F16, f"TPU-MLIR does not quantize the constant of a {node.operator}", True)


def _far_apart(node: Node, spans: Spans) -> Engine:
    """A sum is in float16 where the magnitudes of its operands are far apart."""
    limit = cast("dict[str, int]", specification()["float_operators"])["largest_ratio_of_sum_magnitudes"]
    low, high = sorted(spans[t].magnitude for t in node.inputs)
    if high > limit * low:
        return Engine(F16, f"ranges of the operands differ by {high / low:.3g}, above {limit:g}")
    return Engine(INT8)


def _quotient(graph: Graph, node: Node, spans: Spans, asymmetric: bool) -> Engine:  # noqa: ARG001
    return Engine(INT8) if form_of(graph, node) is Form.SCALAR else Engine(F32, "division of two tensors")


def _reduction(graph: Graph, node: Node, spans: Spans, asymmetric: bool) -> Engine:  # noqa: ARG001
    return Engine(INT8) if is_pool(graph, node) else Engine(F16, "a reduction that is no pool")


def _softmax(graph: Graph, node: Node, spans: Spans, asymmetric: bool) -> Engine:  # noqa: ARG001
    rank = len(graph.tensors[node.inputs[0]].shape)
    axis = seen_axis(node, -1, rank)
    return Engine(INT8) if rank in (2, 4) and axis == 1 else Engine(F16, f"a softmax over axis {axis} of {rank}")


def _nearest(graph: Graph, node: Node, spans: Spans, asymmetric: bool) -> Engine:  # noqa: ARG001
    return Engine(INT8) if is_upsampled(graph, node) else Engine(F16, "a resize by other factors than 2 and 2")


def _gather(graph: Graph, node: Node, spans: Spans, asymmetric: bool) -> Engine:  # noqa: ARG001
    return Engine(INT8) if is_one_index(graph, node) else Engine(F16, "several indices")


def _concatenation(graph: Graph, node: Node, spans: Spans, asymmetric: bool) -> Engine:  # noqa: ARG001
    constant = any(graph.tensors[t].is_constant for t in node.inputs)
    return Engine(F16, "a constant is joined") if constant else Engine(INT8)


def _average(graph: Graph, node: Node, spans: Spans, asymmetric: bool) -> Engine:  # noqa: ARG001
    """In the asymmetric mode windows must leave no pixel of the padded image over."""
    shape = graph.tensors[node.inputs[0]].shape
    if not asymmetric:
        return Engine(INT8)
    kernel = (node.attributes.integer("filter_height"), node.attributes.integer("filter_width"))
    window = window_of(node.attributes, (shape[1], shape[2]), kernel)
    reach = [
        (o - 1) * s + k for o, s, k in zip(window.output_size((shape[1], shape[2])), window.stride, kernel, strict=True)
    ]
    top, bottom, left, right = window.padding
    if reach[0] < shape[1] + top + bottom or reach[1] < shape[2] + left + right:
        return Engine(F32, "an average whose windows leave pixels over")
    return Engine(INT8)


def _maximum(graph: Graph, node: Node, spans: Spans, asymmetric: bool) -> Engine:  # noqa: ARG001
    folded = node.attributes.integers("explicit_padding", ())
    if any(folded) and not spans[node.inputs[0]].is_unsigned:
        return Engine(INT8, "TPU-MLIR takes the zeros in front of it as padding, which never is the maximum")
    return Engine(INT8)


_RULES: dict[str, Callable[[Graph, Node, Spans, bool], Engine]] = {
    "add": _addition,
    "average_pool_2d": _average,
    "max_pool_2d": _maximum,
    "sub": _subtraction,
    "div": _quotient,
    "mean": _reduction,
    "reduce_max": _reduction,
    "softmax": _softmax,
    "resize_nearest_neighbor": _nearest,
    "gather": _gather,
    "concatenation": _concatenation,
    "maximum": _extreme,
    "minimum": _extreme,
}
