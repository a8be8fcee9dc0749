"""The constants of a lowered graph by name, in the vendor's layout."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np

from tflq.converters.gap9.operators import FILTERS
from tflq.converters.gap9.passes.choose_engines import NE16
from tflq.graph import Array, Graph, Node
from tflq.interpreter.kernels.gap9.linear import FilterParams


def filter_integers(node: Node) -> FilterParams:
    """Return the params of a lowered filter."""
    params: object = getattr(node.params, "filter", None)
    assert isinstance(params, FilterParams)
    return params


def stored_weights(node: Node) -> Array:
    """Return weights as the device reads them.

    NE16: uint8 q + 2^(bits-1), [O, I, H, W], depthwise [C, 1, H, W]. SQ8: int8, [O, H, W, I], depthwise [C, H, W, 1].
    Fully connected: [O, I].
    """
    params = filter_integers(node)
    on_ne16 = node.attributes.text("engine") == NE16
    codes = params.weights + params.weight_zero_point
    if node.operator == "conv_2d" and on_ne16:
        codes = np.moveaxis(codes, 3, 1)
    elif node.operator == "depthwise_conv_2d" and not on_ne16:
        codes = np.moveaxis(codes, 1, 3)
    return np.ascontiguousarray(codes, np.uint8 if on_ne16 else np.int8)


def constants_of(graph: Graph) -> dict[str, Array]:
    """Return every constant of a lowered graph.

    <node>/weights, <node>/bias (int32, with the folded zero points, not multiplied), <node>/multiplier and
    <node>/shift (uint8, one for each output channel); <node>/operand<i> for constant operands of other operators.
    """
    found: dict[str, Array] = {}
    for node in graph.nodes:
        if node.operator in FILTERS:
            rescaling = filter_integers(node).rescaling
            found[f"{node.name}/weights"] = stored_weights(node)
            found[f"{node.name}/bias"] = rescaling.bias.astype(np.int32)
            found[f"{node.name}/multiplier"] = rescaling.mul_bias.multiplier.astype(np.uint8)
            found[f"{node.name}/shift"] = rescaling.shift.astype(np.uint8)
            continue
        for position, t in enumerate(node.inputs):
            data = graph.tensors[t].data if t >= 0 else None
            if data is not None:
                found[f"{node.name}/operand{position}"] = data
    return found


def npz_bytes(arrays: Mapping[str, Array]) -> bytes:
    """Return arrays as an uncompressed .npz; the same arrays give the same bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **dict(arrays))
    return buffer.getvalue()
