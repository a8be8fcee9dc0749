"""REDUCE_WINDOW: windows folded by one of six functions; sizes, strides and dilations of the window are constants.

Source: TFLite kernels/stablehlo_reduce_window.cc (TFLiteData).
"""

from __future__ import annotations

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.window_fold import WindowFold, fold_windows, require_fold, require_foldable
from tflq.interpreter.operands.movable import constant_vector


def lower(node: Node, operands: Operands) -> WindowFold:
    """Read function and sizes.

    Raises:
        UnsupportedError: types or a function that TFLite does not fold, or sizes that are computed at run time.
        GraphError: sizes that do not fit the input, or that TFLite has no result for.
    """
    rank = require_foldable(operands)
    sizes = [_sizes(operands, i, rank) for i in (2, 3, 4)]
    window, strides, dilations = sizes
    if min(window) < 0 or min(strides) < 1 or min(dilations) < 0:
        raise GraphError(f"window {window}, strides {strides}, dilations {dilations}; 0, 1 and 0 are the least")
    return WindowFold(require_fold(node.attributes.text("reduce_function", "unsupported")), *sizes)


def _sizes(operands: Operands, position: int, rank: int) -> tuple[int, ...]:
    tensor = operands.input(position)
    if not tensor.is_constant:
        raise UnsupportedError(f"input {position} '{tensor.name}' is computed at run time; TFLite takes a constant")
    sizes = constant_vector(operands, position, (DType.INT64,))
    if len(sizes) != rank:
        raise GraphError(f"input {position} '{tensor.name}' has {len(sizes)} numbers for {rank} axes")
    return sizes


def run(params: WindowFold, x: Array, start: Array, *_: Array) -> tuple[Array, ...]:
    """Run REDUCE_WINDOW: T[S or 1, *shape], T[S or 1], the sizes -> T[S, *output shape]."""
    return (fold_windows(params, x, start),)
