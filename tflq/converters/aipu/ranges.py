"""From a range to scale and zero point, in float32 (docs/rules/aipu/values.md#quantized-values).

Source: Compass Optimizer, utils/quant_tool_utils.py, get_linear_quant_params_from_tensor.

Ranges of functions of one input that nothing states: what they give of their input's range.
A model with float outputs behind its last quantized operator has no range there (docs/rules/aipu/compass_ir.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.arrays import Singles
from tflq.converters.aipu.options import LayerOptions
from tflq.converters.calibration.ranges import LEAST
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Graph, Node, Range, Tensor
from tflq.interpreter.kernels.aipu.curve import METHODS, OPERATORS, function_of
from tflq.interpreter.kernels.aipu.scales import affine_of

_NO_WIDTH = np.finfo(np.float32).eps


def with_signed_inputs(graph: Graph) -> Graph:
    """Return the graph in which inputs that were below 0 in a calibration have ranges that begin below 0.

    The Optimizer takes an input for unsigned where its least value of all is not below 0, and makes the scale of the
    range that the strategy chose (ops/inp.py). -2^-126, as a beginning, leaves every scale and zero point what it is.
    """
    result = graph.copy()
    for t in graph.inputs:
        stated = graph.tensors[t].range
        if stated is not None and LEAST in stated.statistics and (stated.minimum >= 0).all():
            begins = np.full_like(stated.minimum, -np.finfo(np.float32).tiny)
            result.tensors[t] = replace(graph.tensors[t], range=replace(stated, minimum=begins))
    return result


def code_span(bits: int, signed: bool, restricted: bool) -> int:
    """Return q_range: 2^bits - 1, one less in the restricted range of signed quantized values."""
    return (1 << bits) - 1 - (signed and restricted)


def symmetric_scale(largest: Singles | np.float32, bits: int, signed: bool, restricted: bool) -> Singles:
    """S = q_range / (2 * amax), unsigned q_range / amax; 1 where the range has no width."""
    span = np.float32(code_span(bits, signed, restricted))
    width = np.asarray(largest, np.float32) * np.float32(2 if signed else 1)
    s: Singles = (span / np.where(width < _NO_WIDTH, span, width)).astype(np.float32)
    return s


def type_of_range(
    low: float, high: float, bits: int, signed: bool, is_symmetric: bool, restricted: bool = False
) -> Affine:
    """Return the type of an activation; the range is widened to 0 first.

    Symmetric: `symmetric_scale`, zp = 0. Asymmetric: s = q_range / (max - min),
    zp = clamp(RNE(s * min) - qmin, -2^(bits-1) + 1, 2^(bits-1) - 1). From 16 bits on always symmetric.
    """
    minimum, maximum = min(np.float32(low), np.float32(0)), max(np.float32(high), np.float32(0))
    if is_symmetric or bits >= 16:
        s = symmetric_scale(max(abs(minimum), abs(maximum)), bits, signed, restricted)
        return affine_of(s, 0, bits, signed, signed and restricted)
    span = np.float32(code_span(bits, signed, restricted))
    width = np.float32(maximum - minimum)
    s = np.float32(span / (span if width < _NO_WIDTH or np.isnan(width) else width))
    lowest = -(1 << (bits - 1)) + restricted if signed else 0
    limit = (1 << (bits - 1)) - 1
    zp = int(np.clip(np.rint(np.float32(s * minimum)) - lowest, -limit, limit))
    return affine_of(s, zp, bits, signed, signed and restricted)


def range_of(tensor: Tensor) -> tuple[float, float]:
    """Return a tensor's range.

    Raises:
        UnsupportedError: it has none, or one that is not finite.
    """
    if tensor.range is None:
        raise UnsupportedError(f"tensor '{tensor.name}' has no range; calibrate the model or give a quantized one")
    low, high = float(np.min(tensor.range.minimum)), float(np.max(tensor.range.maximum))
    if not (np.isfinite(low) and np.isfinite(high)):
        raise UnsupportedError(f"tensor '{tensor.name}' has the range {low}..{high}; allowed are finite numbers")
    return low, high


_POINTS = 1024


_FLAT = {"SIGMOID": 6.0, "TANH": 3.0}
"""Where a function is nearly flat. Source: whitepaper ACN-AWP-1002A, hints for ranges."""


def with_function_ranges(graph: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    """Return the graph with the range of each function that has none and whose input has one.

    Where `cut_inputs` is requested, what a SIGMOID or TANH reads has no wider range than the part where it is not flat.
    """
    result = graph
    for node in graph.nodes:
        limit = _FLAT.get(str(node.attributes.get("method"))) if options[node.name].cut_inputs else None
        if limit is not None and graph.tensors[node.inputs[0]].range is not None:
            result = result.copy() if result is graph else result
            low, high = np.clip(range_of(graph.tensors[node.inputs[0]]), -limit, limit)
            result.tensors[node.inputs[0]] = replace(graph.tensors[node.inputs[0]], range=_range(low, high))
        if not _is_function(node) or result.tensors[node.outputs[0]].range is not None:
            continue
        x = result.tensors[node.inputs[0]]
        if x.range is None:
            continue
        low, high = range_of(x)
        with np.errstate(all="ignore"):
            values = function_of(node)(np.linspace(min(low, 0.0), max(high, 0.0), _POINTS))
        found = values[np.isfinite(values)]
        if found.size:
            result = result.copy() if result is graph else result
            limits = _range(found.min(), found.max())
            result.tensors[node.outputs[0]] = replace(result.tensors[node.outputs[0]], range=limits)
    return result


def with_clipped_ranges(graph: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    """Return the graph with the range of each CLIP within its limits; a file may state codes beyond them.

    Source: Compass Optimizer, ops/clip.py.
    """
    result = graph
    for node in graph.nodes:
        tensor = graph.tensors[node.outputs[0]]
        if node.operator != "activation" or node.attributes.get("method") != "CLIP" or tensor.range is None:
            continue
        if options[node.name].by_whitepaper:
            continue
        least, greatest = (node.attributes.real(key) for key in ("clip_min", "clip_max"))
        low, high = (min(max(end, least), greatest) for end in range_of(tensor))
        if (low, high) != range_of(tensor):
            result = result.copy() if result is graph else result
            result.tensors[node.outputs[0]] = replace(tensor, range=_range(low, high))
    return result


def _range(low: float, high: float) -> Range:
    return Range(np.array([low], np.float32), np.array([high], np.float32))


def _is_function(node: Node) -> bool:
    return node.operator in OPERATORS or (node.operator == "activation" and node.attributes.get("method") in METHODS)
