"""PAD, PADV2, MIRROR_PAD, DILATE and STABLEHLO_PAD: more elements before, after and between, along each axis.

PAD and PADV2: more elements before and after, along each axis, as specified by input 1 (an array [rank, 2]).

PAD's are the output's zero point for quantized integers, else 0. PADV2's are the value in input 2, which must share the
output's scale and zero point; without it PADV2 is PAD.

MIRROR_PAD: Mode reflect mirrors about the outermost element, which is not repeated; symmetric about the edge, so that
it is.

STABLEHLO_PAD: If one axis of the result is not longer than 0, TFLite makes all of them 0: kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.move.blocks import pad_or_crop
from tflq.interpreter.operands.checks import (
    EIGHT_BITS,
    MAXIMUM_RANK,
    constant_integers,
    is_quantized,
    per_tensor,
    require_result,
    require_same_type,
    require_type,
)
from tflq.interpreter.operands.movable import (
    FIXED_SIZE,
    INDEX_TYPES,
    WHOLE_BYTES,
    constant_vector,
    require_movable,
    require_same_quantization,
    require_symmetric_int16,
)
from tflq.interpreter.registry import Kernel

_PAD_RANK = 5
"""TFLite's kernel stops at this rank (internal/reference/pad.h)."""
_PADDED = (
    DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2,
    DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.BOOL,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Pad:
    """The amounts and the value.

    Attributes:
        paddings: (before, after) for each of the model's own axes.
        value: T[1]: the padding value.
    """

    paddings: tuple[tuple[int, int], ...]
    value: Array


def _lower_pad(node: Node, operands: Operands) -> Pad:
    """Decide amounts and value.

    Raises:
        GraphError: amounts of another shape, negative, or computed at run time; a zero point outside the type.
        UnsupportedError: too many axes, or other types.
    """
    output = operands.output()
    paddings = _paddings(node, operands)
    zero = 0
    if is_quantized(output) and output.dtype in (*EIGHT_BITS, DType.INT16):
        _, zero = per_tensor(output)
    return Pad(paddings, np.array([zero]).astype(output.dtype.storage))


def _lower_with_value(node: Node, operands: Operands) -> Pad:
    """Decide amounts and value; PAD, too, takes a value if the file has one.

    Raises:
        GraphError: amounts of another shape, negative or computed at run time; a value that is no single constant.
        UnsupportedError: too many axes, other types, or a value quantized otherwise than the output.
    """
    value, output = operands.optional(2), operands.output()
    if value is None:
        return _lower_pad(node, operands)
    paddings = _paddings(node, operands)
    require_same_type(output, value)
    if value.size != 1:
        raise GraphError(f"input 2 has {value.size} elements; the value is one")
    quantized = is_quantized(output) and output.dtype in (*EIGHT_BITS, DType.INT16)
    if quantized and per_tensor(value) != per_tensor(output):
        raise UnsupportedError(
            f"the value '{value.name}' and the output '{output.name}' differ in scale or zero point; they must be equal"
        )
    return Pad(paddings, operands.constant(2).reshape(1))


def _run_pad(params: Pad, x: Array, *_operands: Array) -> tuple[Array, ...]:
    """Run PAD or PADV2: T[S, *shape] -> T[S, *padded shape]."""
    sizes = [sum(pair) + size for pair, size in zip(params.paddings, x.shape[1:], strict=True)]
    result = np.full((x.shape[0], *sizes), params.value[0], x.dtype)
    inside = [slice(before, before + size) for (before, _), size in zip(params.paddings, x.shape[1:], strict=True)]
    where = (slice(None), *inside)
    result[where] = x
    return (result,)


def _paddings(node: Node, operands: Operands) -> tuple[tuple[int, int], ...]:
    """Read the amounts from input 1; errors as `_lower_pad`."""
    source, rank = operands.input(0), len(operands.input(0).shape)
    require_movable(node, source, operands.output(), _PADDED)
    if rank > _PAD_RANK:
        raise UnsupportedError(f"the input has {rank} axes; TFLite pads up to {MAXIMUM_RANK}")
    amounts = constant_integers(operands, 1)
    if amounts.shape != (rank, 2):
        raise GraphError(f"input 1 has shape {amounts.shape}; an input of {rank} axes needs ({rank}, 2)")
    paddings = tuple((int(before), int(after)) for before, after in amounts)
    if any(amount < 0 for pair in paddings for amount in pair):
        raise GraphError(f"input 1 is {paddings}; amounts are 0 or more")
    require_result([n + sum(pair) for n, pair in zip(source.shape, paddings, strict=True)], source.dtype)
    return paddings


_OFFSETS = {"reflect": 1, "symmetric": 0}
"""Mode -> whether the element at the border is left out of its mirror image."""


@dataclass(frozen=True)
class MirrorPad:
    """For each of the model's own axes, the input's index of every element of the output."""

    indices: tuple[tuple[int, ...], ...]


def _lower_mirror_pad(node: Node, operands: Operands) -> MirrorPad:
    """Decide the source of each element.

    Raises:
        GraphError: amounts of another shape, negative, longer than the axis (less one in mode reflect), or computed at
            run time.
        UnsupportedError: types or quantizations that differ, or that TFLite does not pad.
    """
    source, output = operands.input(0), operands.output()
    dtype = require_movable(node, source, output, FIXED_SIZE)
    if dtype in (*EIGHT_BITS, DType.INT16):
        require_same_quantization(node, source, output)
        require_symmetric_int16(node, source)
    require_type(operands.input(1), INDEX_TYPES)
    amounts = operands.constant(1)
    if amounts.shape != (len(source.shape), 2):
        raise GraphError(f"input 1 has shape {amounts.shape}; {source.shape} needs ({len(source.shape)}, 2)")
    mode = node.attributes.text("mode", "reflect")
    if mode not in _OFFSETS:
        raise UnsupportedError(f"mode {mode}; known are {', '.join(_OFFSETS)} (a file without options has none)")
    offset = _OFFSETS[mode]
    for (before, after), size in zip(amounts.tolist(), source.shape, strict=True):
        if min(before, after) < 0 or max(before, after) > size - offset:
            raise GraphError(f"an axis of {size} is padded by {before} and {after}; 0 to {size - offset} are allowed")
    require_result([n + sum(pair) for n, pair in zip(source.shape, amounts.tolist(), strict=True)], dtype)
    pairs = zip(amounts.tolist(), source.shape, strict=True)
    return MirrorPad(tuple(_mirror_positions(before, size, after, offset) for (before, after), size in pairs))


def _run_mirror_pad(params: MirrorPad, x: Array, *_amounts: Array) -> tuple[Array, ...]:
    """Run MIRROR_PAD: T[S, *shape] -> T[S, *padded shape]."""
    for axis, indices in enumerate(params.indices):
        if len(indices) != x.shape[axis + 1]:
            x = np.take(x, indices, axis + 1)
    return (x,)


def _mirror_positions(before: int, size: int, after: int, offset: int) -> tuple[int, ...]:
    left = range(before - 1 + offset, offset - 1, -1)
    right = range(size - 1 - offset, size - 1 - offset - after, -1)
    return (*left, *range(size), *right)


@dataclass(frozen=True)
class Dilate:
    """Distance of neighbors along each of the model's own axes."""

    dilations: tuple[int, ...]


def _lower_dilate(node: Node, operands: Operands) -> Dilate:
    """Decide the distances.

    Raises:
        GraphError: another number of them than axes, one below 1 or computed at run time, an empty input, or a value
            that is no single element.
        UnsupportedError: types that differ, or that TFLite does not dilate.
    """
    source, value = operands.input(0), operands.input(2)
    require_movable(node, source, operands.output(), WHOLE_BYTES)
    require_same_type(source, value)
    dilations = constant_vector(operands, 1, (DType.INT32,))
    if not source.shape or len(dilations) != len(source.shape) or min(dilations) < 1:
        raise GraphError(f"dilations are {dilations}; {source.shape} needs one for each axis, 1 or more")
    if value.size != 1 or not source.size:
        raise GraphError(f"an input of shape {source.shape} is filled with {value.size} elements; none or one is wrong")
    require_result([(n - 1) * step + 1 for n, step in zip(source.shape, dilations, strict=True)], source.dtype)
    return Dilate(dilations)


def _run_dilate(params: Dilate, x: Array, _dilations: Array | None, value: Array) -> tuple[Array, ...]:
    """Run DILATE: T[S or 1, *shape], T[S or 1] -> T[S, *((shape - 1) * dilation + 1)]."""
    return (dilate(x, params.dilations, value.reshape(-1)),)


def dilate(x: Array, dilations: tuple[int, ...], value: Array) -> Array:
    """Set elements apart: T[S or 1, *shape], T[S or 1] -> T[S, *((shape - 1) * dilation + 1)], empty axes left."""
    if set(dilations) <= {1}:
        return x
    samples = max(x.shape[0], value.shape[0])
    sizes = [max(0, (size - 1) * step + 1) for size, step in zip(x.shape[1:], dilations, strict=True)]
    result = np.empty((samples, *sizes), x.dtype)
    result[...] = value.reshape(-1, *(1,) * len(sizes))
    where = (slice(None), *(slice(None, None, step) for step in dilations))
    result[where] = x
    return result


@dataclass(frozen=True)
class StablehloPad:
    """Amounts, along each of the model's own axes.

    Attributes:
        steps: distance of neighbors.
        edges: elements before and after.
        shape: Shape of the result.
    """

    steps: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    shape: tuple[int, ...]


def _lower_stablehlo_pad(node: Node, operands: Operands) -> StablehloPad:
    """Decide the amounts.

    Raises:
        GraphError: another number of amounts than axes, a negative distance, or a value that is no single element.
        UnsupportedError: types that differ, or that TFLite does not pad.
    """
    source, value = operands.input(0), operands.input(1)
    require_movable(node, source, operands.output(), WHOLE_BYTES)
    require_same_type(source, value)
    names = ("interior_padding", "edge_padding_low", "edge_padding_high")
    interior, low, high = (node.attributes.integers(name, ()) for name in names)
    rank = len(source.shape)
    if not 1 <= rank <= MAXIMUM_RANK or not len(interior) == len(low) == len(high) == rank:
        raise GraphError(
            f"{interior}, {low} and {high} need one number for each axis of {source.shape}, 1 to 8 of them"
        )
    if min(interior) < 0 or value.size != 1:
        raise GraphError(f"interior padding is {interior}, with {value.size} elements; 0 or more, with one, is needed")
    sizes = [
        n + max(0, n - 1) * gap + before + after
        for n, gap, before, after in zip(source.shape, interior, low, high, strict=True)
    ]
    require_result([max(0, size) for size in sizes], source.dtype)
    shape = tuple(sizes) if min(sizes) > 0 else (0,) * rank
    return StablehloPad(tuple(gap + 1 for gap in interior), tuple(zip(low, high, strict=True)), shape)


def _run_stablehlo_pad(params: StablehloPad, x: Array, value: Array) -> tuple[Array, ...]:
    """Run STABLEHLO_PAD: T[S or 1, *shape], T[S or 1] -> T[S, *padded shape]."""
    fill = value.reshape(value.shape[0])
    if 0 in params.shape:
        return (np.empty((max(x.shape[0], fill.shape[0]), *params.shape), x.dtype),)
    return (pad_or_crop(dilate(x, params.steps, fill), params.edges, fill),)


KERNELS = {
    "pad": Kernel(_lower_with_value, _run_pad,
        "more elements before and after, along each axis: the output's zero point, or 0; input 2 where there is one",
        "TFLite kernels/pad.cc"),
    "padv2": Kernel(_lower_with_value, _run_pad, "as PAD, with a value of its own in input 2", "TFLite kernels/pad.cc"),
    "mirror_pad": Kernel(_lower_mirror_pad, _run_mirror_pad,
        "more elements before and after, along each axis, mirrored from the input", "TFLite kernels/mirror_pad.cc"),
    "dilate": Kernel(_lower_dilate, _run_dilate,
        "copies of the value in input 2 between the elements along each axis, as far apart as input 1 says",
        "TFLite kernels/dilate.cc"),
    "stablehlo_pad": Kernel(_lower_stablehlo_pad, _run_stablehlo_pad,
        "the value in input 1 between the elements along each axis, then before and after; negative edges crop",
        "TFLite kernels/stablehlo_pad.cc"),
}  # fmt: skip
