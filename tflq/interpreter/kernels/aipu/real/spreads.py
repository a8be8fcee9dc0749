"""Layers over axes: Reduce, Cumulate, SegmentReduce, Moments, norms, LRN. Sums are float64, rounded once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.arrays import Doubles, Singles
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.norms import (
    ACROSS,
    WITHIN,
    group_of,
    normalized_axes,
    split_groups,
    weight_shape,
    window_sums_of,
)
from tflq.interpreter.kernels.aipu.real.rules import Compute, kernels, own_constant
from tflq.interpreter.kernels.aipu.reductions import CUMULATE_METHODS, REDUCE_METHODS
from tflq.interpreter.kernels.aipu.scales import required_constant
from tflq.interpreter.operands.checks import require_choice

_REDUCED: dict[str, Callable[..., Array]] = {
    "SUM": np.sum,
    "MEAN": np.mean,
    "MIN": np.min,
    "MAX": np.max,
    "PROD": np.prod,
    "VARIANCE": np.var,
    "ANY": np.any,
    "ALL": np.all,
    "L1": lambda x, **keys: np.abs(x).sum(**keys),
    "L2": lambda x, **keys: np.sqrt(np.square(x).sum(**keys)),
}


def _axes(node: Node, operands: Operands) -> tuple[int, ...]:
    rank = len(operands.input(0).shape)
    return tuple(int(a) % rank + 1 for a in np.atleast_1d(np.asarray(node.attributes["axis"], np.int64)))


def _reduce(node: Node, operands: Operands) -> Compute:
    function, axes = _REDUCED[require_choice(node, "method", REDUCE_METHODS)], _axes(node, operands)
    return lambda x: function(x.astype(np.float64), axis=axes, keepdims=True)


def square_sums_of(node: Node, operands: Operands) -> Callable[[Array], Singles]:
    """Return the sums of squares under the root of L2."""
    axes = _axes(node, operands)
    return lambda x: np.square(x.astype(np.float64)).sum(axis=axes, keepdims=True).astype(np.float32)


def _cumulate(node: Node, operands: Operands) -> Compute:
    method, (axis,) = require_choice(node, "method", CUMULATE_METHODS), _axes(node, operands)
    add, neutral = (np.cumsum, 0.0) if method == "SUM" else (np.cumprod, 1.0)
    is_exclusive, is_reversed = (node.attributes.boolean(key) for key in ("exclusive", "reverse"))

    def compute(x: Array) -> Array:
        v = np.moveaxis(x.astype(np.float64), axis, -1)
        v = v[..., ::-1] if is_reversed else v
        if is_exclusive:
            v = np.concatenate([np.full_like(v[..., :1], neutral), v[..., :-1]], axis=-1)
        result = add(v, axis=-1)
        return np.moveaxis(result[..., ::-1] if is_reversed else result, -1, axis)

    return compute


def _segment_reduce(node: Node, operands: Operands) -> Compute:
    require_choice(node, "method", ("SUM",))
    count = operands.output().shape[0]

    def compute(x: Array, segments: Array) -> Array:
        rows = segments.reshape(*segments.shape[:2], *(1,) * (x.ndim - 2))
        sums = [np.where(rows == k, x, 0).sum(axis=1, dtype=np.float64) for k in range(count)]
        return np.stack(sums, axis=1)

    return compute


def _moments(node: Node, operands: Operands) -> Compute:
    axes, (first, second) = _axes(node, operands), (t.shape for t in operands.outputs)

    def compute(x: Array) -> tuple[Array, ...]:
        wide = x.astype(np.float64)
        return wide.mean(axis=axes).reshape(-1, *first), wide.var(axis=axes).reshape(-1, *second)

    return compute


def _normalization(node: Node, operands: Operands) -> Compute:
    method, axes = require_choice(node, "method", ("L1", "L2")), _axes(node, operands)
    epsilon = node.attributes.real("epsilon", 0.0)

    def compute(x: Array) -> Array:
        wide = x.astype(np.float64)
        power = np.abs if method == "L1" else np.square
        total: Doubles = np.maximum(power(wide).sum(axis=axes, keepdims=True), epsilon)
        result: Doubles = wide / (total if method == "L1" else np.sqrt(total))
        return result

    return compute


def _norm(node: Node, operands: Operands) -> Compute:
    """(x - mean) / sqrt(variance + epsilon) * w + b."""
    x, axes = operands.input(0), tuple(a + 1 for a in normalized_axes(node, operands.input(0)))
    if len(operands.outputs) > 1:
        raise UnsupportedError(f"{len(operands.outputs)} outputs; allowed is one")
    shape = weight_shape(node, x, required_constant(operands, "weights"))
    weights, biases = (own_constant(operands, key).reshape(shape) for key in ("weights", "biases"))
    epsilon = node.attributes.real("epsilon", 0.0)

    def compute(v: Array) -> Array:
        parts, own_axes = split_groups(v.astype(np.float64), group_of(node), axes)
        mean = parts.mean(axis=own_axes, keepdims=True)
        spread = np.sqrt(parts.var(axis=own_axes, keepdims=True) + epsilon)
        normalized: Doubles = ((parts - mean) / spread).reshape(v.shape)
        return np.add(normalized * weights, biases)

    return compute


def _lrn(node: Node, operands: Operands) -> Compute:
    bias, alpha, beta = (node.attributes.real(key) for key in ("bias", "alpha", "beta"))
    mean_squares = mean_squares_of(node, operands)
    return lambda x: np.divide(x, (bias + alpha * mean_squares(x)) ** beta)


def mean_squares_of(node: Node, _operands: Operands) -> Callable[[Array], Singles]:
    """Return the mean of the squares: over `size` channels around each, or over the pixels inside the image.

    Source: Compass Optimizer, ops/LRN.py, placeholders.
    """
    method, size = require_choice(node, "method", (ACROSS, WITHIN)), node.attributes.integer("size")

    def mean_squares(x: Array) -> Singles:
        squares: Doubles = np.square(x.astype(np.float64))
        inside = (
            np.full_like(squares, size) if method == ACROSS else window_sums_of(method, size, np.ones_like(squares))
        )
        return np.divide(window_sums_of(method, size, squares), inside).astype(np.float32)

    return mean_squares


KERNELS = kernels(
    {
        "cumulate": (_cumulate, "running sums or products"),
        **dict.fromkeys(
            ("group_norm", "instance_norm", "layer_norm"), (_norm, "(x - mean) / sqrt(variance + epsilon) * w + b")
        ),
        "lrn": (_lrn, "x / (bias + alpha * mean of squares)^beta"),
        "moments": (_moments, "mean and variance over axes"),
        "normalization": (_normalization, "x / norm of x"),
        "reduce": (_reduce, "by method, over axes"),
        "segment_reduce": (_segment_reduce, "sums of rows of a segment"),
    },
    {"lrn": mean_squares_of, "reduce": square_sums_of},
)
