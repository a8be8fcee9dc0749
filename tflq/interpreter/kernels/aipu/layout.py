"""Layers that only move quantized values, and pass their input's type (docs/rules/aipu/operators.md).

Layers that only move quantized values, and pass their input's type.
Each takes quantized [N, ...] with the samples folded into N if only the other axes move, or works axis by axis after
the sample axis. Filled elements contain -zp, the code of 0.

Reshape: the same quantized values in another shape; passes the input's type.

Constant: the quantized values of its weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.imported import is_imported
from tflq.interpreter.kernels.aipu.scales import code_limits, offset_of, scale_of
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class LayoutParams:
    """One move.

    Attributes:
        move: Function from quantized [S, ...] to each output's [S, ...].
        fill: the code that Pad fills in.
    """

    move: Callable[[Array], tuple[Array, ...]]
    fill: float = 0.0


def lower_layout(node: Node, operands: Operands) -> LayoutParams:
    """Decide the move.

    Raises:
        UnsupportedError: a mode that is not known.
    """
    return _MOVES[node.operator](node, operands)


def run_layout(params: LayoutParams, x: Array, *_others: Array) -> tuple[Array, ...]:
    """Move: quantized [S, ...] -> quantized [S, ...] of each output."""
    return params.move(x)


def _pad(node: Node, operands: Operands) -> LayoutParams:
    x = operands.input(0)
    mode = node.attributes.text("mode", "CONSTANT")
    pads = [(0, 0), *((int(b), int(e)) for b, e in np.asarray(node.attributes["pads"]))]
    code = _fill_code(node, x)
    if mode == "CONSTANT":
        fill = code if x.dtype.is_floating else int(code)
        return LayoutParams(lambda v: (np.pad(v, pads, constant_values=fill),), code + 0.0)
    if mode == "REFLECT":
        return LayoutParams(lambda v: (np.pad(v, pads, mode="reflect"),), code + 0.0)
    if mode == "SYMMETRIC":
        return LayoutParams(lambda v: (np.pad(v, pads, mode="symmetric"),), code + 0.0)
    raise UnsupportedError(f"mode={mode}; allowed is CONSTANT, REFLECT, SYMMETRIC")


def _fill_code(node: Node, x: Tensor) -> float:
    """Return the stored value of constant_value: unchanged for an imported node or a floating-point tensor."""
    constant = np.float32(node.attributes.real("constant_value", 0.0))
    if x.dtype.is_floating:
        return float(constant)
    if not is_imported(node):
        with np.errstate(over="ignore"):
            constant = np.rint(constant * scale_of(x) - np.float32(offset_of(x)))
    return float(np.clip(constant, *code_limits(x)))


def _tile(node: Node, _operands: Operands) -> LayoutParams:
    repeats = (1, *node.attributes.integers("repeats"))
    return LayoutParams(lambda v: (np.tile(v, repeats),))


def _transpose(node: Node, _operands: Operands) -> LayoutParams:
    order = (0, *(axis + 1 for axis in node.attributes.integers("perm")))
    return LayoutParams(lambda v: (v.transpose(order),))


def _split(node: Node, _operands: Operands) -> LayoutParams:
    axis, sizes = node.attributes.integer("axis"), node.attributes.integers("splits")
    place = axis + 1 if axis >= 0 else axis
    ends = np.cumsum(sizes)[:-1]
    return LayoutParams(lambda v: tuple(np.split(v, ends, axis=place)))


def _slice(node: Node, _operands: Operands) -> LayoutParams:
    begin, end, strides = (node.attributes.integers(key) for key in ("begin", "end", "strides"))
    parts = tuple(slice(b, None if e < 0 and s < 0 else e, s) for b, e, s in zip(begin, end, strides, strict=True))
    whole = (slice(None), *parts)
    return LayoutParams(lambda v: (v[whole],))


def _channel_shuffle(node: Node, operands: Operands) -> LayoutParams:
    """[.., C] -> [.., group, C / group], the last two exchanged, -> [.., C]; cut into `splits` outputs."""
    *rest, channels = operands.input(0).shape
    group, splits = node.attributes.integer("group"), node.attributes.integer("splits")

    def move(v: Array) -> tuple[Array, ...]:
        turned = v.reshape(-1, *rest, group, channels // group).swapaxes(-1, -2).reshape(-1, *rest, channels)
        return tuple(np.split(turned, splits, axis=-1))

    return LayoutParams(move)


def _crop(node: Node, operands: Operands) -> LayoutParams:
    sizes = operands.input(0).shape
    limits = np.asarray(node.attributes["crops"])
    parts = tuple(slice(int(b) % n if b < 0 else int(b), int(e)) for (b, e), n in zip(limits, sizes, strict=True))
    whole = (slice(None), *parts)
    return LayoutParams(lambda v: (v[whole],))


def _depth_to_space(node: Node, operands: Operands) -> LayoutParams:
    n, h, w, c = operands.input(0).shape
    by, bx = _block(node)
    depth = c // (by * bx)
    if node.attributes.text("mode", "DCR") == "CRD":
        split, order = (-1, n, h, w, depth, by, bx), (0, 1, 2, 5, 3, 6, 4)
    else:
        split, order = (-1, n, h, w, by, bx, depth), (0, 1, 2, 4, 3, 5, 6)
    return _regroup_axes(split, order, operands)


def _space_to_depth(node: Node, operands: Operands) -> LayoutParams:
    n, h, w, c = operands.input(0).shape
    by, bx = _block(node)
    return _regroup_axes((-1, n, h // by, by, w // bx, bx, c), (0, 1, 2, 4, 3, 5, 6), operands)


def _batch_to_depth(node: Node, operands: Operands) -> LayoutParams:
    n, h, w, c = operands.input(0).shape
    group = node.attributes.integer("block_size")
    return _regroup_axes((-1, n // group, group, h, w, c), (0, 1, 3, 4, 2, 5), operands)


def _space_to_batch(node: Node, operands: Operands) -> LayoutParams:
    n, _, _, c = operands.input(0).shape
    by, bx = _block(node)
    top, bottom, left, right = _sides(node, "pad")
    fill = -offset_of(operands.input(0))
    shape = operands.output().shape
    pads = ((0, 0), (0, 0), (top, bottom), (left, right), (0, 0))

    def move(v: Array) -> tuple[Array, ...]:
        padded = np.pad(v, pads, constant_values=fill)
        split = padded.reshape(-1, n, padded.shape[2] // by, by, padded.shape[3] // bx, bx, c)
        return (split.transpose(0, 3, 5, 1, 2, 4, 6).reshape(-1, *shape),)

    return LayoutParams(move)


def _batch_to_space(node: Node, operands: Operands) -> LayoutParams:
    n, h, w, c = operands.input(0).shape
    by, bx = _block(node)
    top, bottom, left, right = _sides(node, "crop")
    rows, columns = slice(top, h * by - bottom), slice(left, w * bx - right)

    def move(v: Array) -> tuple[Array, ...]:
        split = v.reshape(-1, by, bx, n // (by * bx), h, w, c).transpose(0, 3, 4, 1, 5, 2, 6)
        return (split.reshape(-1, n // (by * bx), h * by, w * bx, c)[:, :, rows, columns],)

    return LayoutParams(move)


def _data_stride(node: Node, operands: Operands) -> LayoutParams:
    value = node.attributes.integer
    ky, kx, sy, sx = (value(f"{name}_{axis}") for name in ("kernel", "stride") for axis in ("y", "x"))
    shape = operands.output().shape
    rows = (np.arange(shape[1] // ky)[:, None] * sy + np.arange(ky)).reshape(-1)
    columns = (np.arange(shape[2] // kx)[:, None] * sx + np.arange(kx)).reshape(-1)
    return LayoutParams(lambda v: (v[:, :, rows][:, :, :, columns],))


def _regroup_axes(split: tuple[int, ...], order: tuple[int, ...], operands: Operands) -> LayoutParams:
    shape = operands.output().shape
    return LayoutParams(lambda v: (v.reshape(split).transpose(order).reshape(-1, *shape),))


def _block(node: Node) -> tuple[int, int]:
    return node.attributes.integer("block_size_y"), node.attributes.integer("block_size_x")


def _sides(node: Node, name: str) -> tuple[int, ...]:
    return tuple(node.attributes.integer(f"{name}_{side}", 0) for side in ("top", "bottom", "left", "right"))


_MOVES: dict[str, Callable[[Node, Operands], LayoutParams]] = {
    "batch_to_depth": _batch_to_depth,
    "batch_to_space": _batch_to_space,
    "channel_shuffle": _channel_shuffle,
    "crop": _crop,
    "data_stride": _data_stride,
    "depth_to_space": _depth_to_space,
    "pad": _pad,
    "slice": _slice,
    "space_to_batch": _space_to_batch,
    "space_to_depth": _space_to_depth,
    "split": _split,
    "tile": _tile,
    "transpose": _transpose,
}


@dataclass(frozen=True, eq=False)
class Reshaped:
    """The new shape, batch included."""

    shape: tuple[int, ...]


def lower_reshape(_node: Node, operands: Operands) -> Reshaped:
    """Take the shape of the output.

    Raises:
        GraphError: another number of elements.
    """
    x, output = operands.input(0), operands.output()
    if x.size != output.size:
        raise GraphError(f"{x.shape} cannot become {output.shape}: another number of elements")
    return Reshaped(output.shape)


def run_reshape(params: Reshaped, x: Array) -> tuple[Array, ...]:
    """Run Reshape: quantized [S, *old] -> quantized [S, *new]."""
    return (x.reshape(x.shape[0], *params.shape),)


@dataclass(frozen=True, eq=False)
class ConstantParams:
    """Nothing to decide."""


def lower_constant(_node: Node, _operands: Operands) -> ConstantParams:
    """Decide nothing: the quantizer made the quantized values."""
    return ConstantParams()


def run_constant(_integers: ConstantParams, weights: Array) -> tuple[Array, ...]:
    """Return the quantized values."""
    return (weights,)


KERNELS = {
    **dict.fromkeys(
        _MOVES,
        Kernel(lower_layout, run_layout, "values move, what is filled in stands for 0", "docs/rules/aipu/operators.md"),
    ),
    "reshape": Kernel(lower_reshape, run_reshape, "the same values in another shape", "docs/rules/aipu/operators.md"),
    "constant": Kernel(lower_constant, run_constant, "the values of its weights", "docs/rules/aipu/operators.md"),
}
