"""Layers that return indices, or choose by them: ArgMinMax, TopK, InTopK, CTCGreedyDecoder, OneHot.

Source: docs/rules/aipu/operators.md.

ArgMinMax: index of the smallest or largest quantized value, the first on ties; uint16, scale 1.

TopK: the k largest or smallest quantized values along an axis, and their indices. Equal codes: the first place wins, or
the last one with select_index=last. Quantized values pass their type, indices are uint16.

InTopK: whether the target's code is among the k largest of its row; a tie with the k-th counts.

OneHot: the on-value at the index along a new axis, the off-value elsewhere; quantized values of both values. An index
outside the depth yields the off-value everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.boxes import together
from tflq.interpreter.kernels.aipu.imported import is_imported
from tflq.interpreter.kernels.aipu.scales import encode, is_plain
from tflq.interpreter.operands.checks import require_choice
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class ArgParams:
    """The axis after the sample axis, which extreme, and whether the last one counts on ties."""

    axis: int
    is_maximum: bool
    is_last: bool
    dtype: np.dtype[np.generic]


def lower_arg_min_max(node: Node, operands: Operands) -> ArgParams:
    """Take the axis.

    Raises:
        UnsupportedError: another method than MIN or MAX.
    """
    method = require_choice(node, "method", ("MIN", "MAX"))
    axis = node.attributes.integer("axis") % len(operands.input(0).shape) + 1
    is_last = node.attributes.boolean("select_last_index", False)
    return ArgParams(axis, method == "MAX", is_last, operands.output().dtype.storage)


def run_arg_min_max(params: ArgParams, x: Array) -> tuple[Array, ...]:
    """Run ArgMinMax: quantized [S, ...] -> indices with an axis of length 1."""
    seen = np.flip(x, params.axis) if params.is_last else x
    find = np.argmax if params.is_maximum else np.argmin
    indices = np.expand_dims(find(seen, axis=params.axis), params.axis)
    if params.is_last:
        indices = x.shape[params.axis] - 1 - indices
    return (indices.astype(params.dtype),)


CHOICES = ("first", "last")


@dataclass(frozen=True, eq=False)
class TopKParams:
    """The axis after the sample axis, k, which end of the order, which place on ties, the indices' type."""

    axis: int
    count: int
    is_largest: bool
    is_last: bool
    index: np.dtype[np.generic]


def lower_top_k(node: Node, operands: Operands) -> TopKParams:
    """Take axis and k.

    Raises:
        UnsupportedError: another choice among equal quantized values.
    """
    choice = require_choice(node, "select_index", CHOICES, "last")
    shape = operands.input(0).shape
    axis = node.attributes.integer("axis") % len(shape)
    count = min(node.attributes.integer("k"), shape[axis])
    is_largest = node.attributes.boolean("largest", True)
    return TopKParams(axis + 1, count, is_largest, choice == "last", operands.output(1).dtype.storage)


def run_top_k(params: TopKParams, x: Array) -> tuple[Array, ...]:
    """Run TopK: quantized [S, ...] -> quantized values and indices, `count` of them along the axis."""
    seen = np.flip(x, params.axis) if params.is_last else x
    key = seen.astype(np.result_type(seen, np.int64))
    order = np.argsort(-key if params.is_largest else key, axis=params.axis, kind="stable")
    order = np.take(order, np.arange(params.count), axis=params.axis)
    codes = np.take_along_axis(seen, order, axis=params.axis)
    places = x.shape[params.axis] - 1 - order if params.is_last else order
    return codes, places.astype(params.index)


@dataclass(frozen=True, eq=False)
class InTopKParams:
    """The params of one InTopK: k, at most the length of a row."""

    k: int


def lower_in_top_k(node: Node, operands: Operands) -> InTopKParams:
    """Take k. Inputs: predictions [N, C], targets int32[N]; output uint8[N]."""
    return InTopKParams(min(node.attributes.integer("k"), operands.input(0).shape[-1]))


def run_in_top_k(params: InTopKParams, predictions: Array, targets: Array) -> tuple[Array, ...]:
    """Run InTopK: quantized [S, N, C], [S, N] -> 0 or 1, [S, N]."""
    predictions, targets = together(predictions, targets)
    places = targets.reshape(len(targets), -1, 1).astype(np.int64)
    named = np.take_along_axis(predictions, places, axis=-1)[..., 0]
    limit = np.sort(predictions, axis=-1)[..., -params.k]
    return (np.greater_equal(named, limit).astype(np.uint8),)


@dataclass(frozen=True, eq=False)
class CtcParams:
    """The params of one decoder.

    Attributes:
        merges: whether a class that repeats its predecessor is dropped.
        shape: Shape of the output.
        dtype: Storage type of the output.
        unused: fills unused places: the largest value of the output.
    """

    merges: bool
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    unused: int


def lower_ctc_greedy_decoder(node: Node, operands: Operands) -> CtcParams:
    """Read the params from the node's attributes.

    Inputs: logits [N, T, C], lengths int32[N], 0 or less for all T. Output uint16[N, M, 1, 1].
    """
    output = operands.output()
    merges = node.attributes.boolean("merge_repeated")
    return CtcParams(merges, output.shape, output.dtype.storage, output.dtype.maximum)


def run_ctc_greedy_decoder(params: CtcParams, logits: Array, lengths: Array) -> tuple[Array, ...]:
    """Run the decoder: quantized [S, N, T, C], [S, N] -> classes [S, N, M, 1, 1], the lowest index on ties."""
    logits, lengths = together(logits, lengths)
    best, blank = np.argmax(logits, axis=-1), logits.shape[-1] - 1
    result = np.full((len(logits), *params.shape), params.unused, params.dtype)
    for place in np.ndindex(*best.shape[:2]):
        length = int(lengths[place])
        path = _path(best[place][: length if length > 0 else None], blank, params.merges)
        result[place].reshape(-1)[: len(path)] = path[: result[place].size]
    return (result,)


def _path(best: Integers, blank: int, merges: bool) -> Integers:
    kept = best != blank
    if merges:
        kept &= np.append(True, best[1:] != best[:-1])
    path: Integers = best[kept]
    return path


@dataclass(frozen=True, eq=False)
class OneHotParams:
    """The new axis after the sample axis, its length, and the quantized values [off, on]."""

    axis: int
    depth: int
    codes: Array


def lower_one_hot(node: Node, operands: Operands) -> OneHotParams:
    """Decide the quantized values.

    Raises:
        UnsupportedError: indices that are quantized numbers.
    """
    x, output = operands.input(0), operands.output()
    if not is_plain(x):
        raise UnsupportedError(f"{operands.where}: its indices are quantized numbers; allowed are integers")
    values = np.asarray(node.attributes["values"], np.float32)
    is_as_stored = is_imported(node) or output.dtype.is_floating
    codes = values if is_as_stored else encode(values, output.affine)
    axis = node.attributes.integer("axis") % len(output.shape) + 1
    return OneHotParams(axis, node.attributes.integer("depth"), codes.astype(output.dtype.storage))


def run_one_hot(params: OneHotParams, indices: Array) -> tuple[Array, ...]:
    """Run OneHot: indices [S, ...] -> quantized values with an axis of `depth`."""
    is_on = np.expand_dims(indices, -1) == np.arange(params.depth)
    return (params.codes[np.moveaxis(is_on, -1, params.axis).astype(np.int64)],)


KERNELS = {
    "arg_min_max": Kernel(lower_arg_min_max, run_arg_min_max,
        "index of the smallest or largest value, the first on ties", "docs/rules/aipu/operators.md"),
    "top_k": Kernel(lower_top_k, run_top_k,
        "the k largest or smallest values and their indices", "Compass Optimizer, ops/topk.py; "
            "docs/rules/aipu/operators.md"),
    "in_top_k": Kernel(lower_in_top_k, run_in_top_k,
        "whether the target is among the k largest, ties count", "Compass Optimizer, ops/intopk.py; "
            "docs/rules/aipu/operators.md"),
    "ctc_greedy_decoder": Kernel(lower_ctc_greedy_decoder, run_ctc_greedy_decoder,
        "the best class of each step, without the blank",
        "Compass Optimizer, ops/ctcgreedydecoder.py; docs/rules/aipu/operators.md"),
    "one_hot": Kernel(lower_one_hot, run_one_hot,
        "the on-value at the index, the off-value elsewhere", "Compass Optimizer, ops/onehot.py; "
            "docs/rules/aipu/operators.md"),
}  # fmt: skip
