"""STABLEHLO_REDUCE_WINDOW: the input, dilated and padded with the start value, in windows folded by a computation.

Negative padding crops. The computation is a graph of one operator, which TFLite knows by its name.

Source: TFLite kernels/stablehlo_reduce_window.cc (StablehloData).
"""

from __future__ import annotations

from dataclasses import dataclass

from tflq.errors import GraphError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.move.dilate import dilated
from tflq.interpreter.kernels.plain.window_fold import WindowFold, fold_windows, require_fold, require_foldable
from tflq.interpreter.operands.blocks import pad_or_crop
from tflq.interpreter.operands.computations import COMPUTATION
from tflq.interpreter.operands.result_size import require_result

_FOLD_OF = {
    "stablehlo_add": "add",
    "stablehlo_multiply": "mul",
    "stablehlo_maximum": "maximum",
    "stablehlo_minimum": "minimum",
    "logical_and": "all",
    "stablehlo_and": "all",
    "logical_or": "any",
    "stablehlo_or": "any",
}
_SIZES = ("window_dimensions", "window_strides", "window_dilations", "base_dilations")


@dataclass(frozen=True)
class StablehloReduceWindow:
    """What happens along each of the model's own axes.

    Attributes:
        steps: distance of neighbouring elements of the input.
        edges: elements before and after.
        windows: the fold.
    """

    steps: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    windows: WindowFold


def lower(node: Node, operands: Operands) -> StablehloReduceWindow:
    """Read the sizes and the computation; sizes that are left out are 1, paddings 0.

    Raises:
        UnsupportedError: types or a computation that TFLite does not fold.
        GraphError: sizes that do not fit the input, or padding that leaves no element.
    """
    rank = require_foldable(operands)
    shape = operands.input(0).shape
    window, strides, dilations, steps = (node.attributes.integers(name, ()) or (1,) * rank for name in _SIZES)
    padding = node.attributes.integers("padding", ()) or (0,) * (2 * rank)
    if {len(window), len(strides), len(dilations), len(steps)} != {rank} or len(padding) != 2 * rank:
        raise GraphError(f"input {shape} needs {rank} numbers in {', '.join(_SIZES)} and {2 * rank} in padding")
    if min(*window, *strides, *dilations, *steps) < 1:
        raise GraphError(f"{window}, {strides}, {dilations} and {steps} in {', '.join(_SIZES)}; 1 is the least")
    edges = tuple(zip(padding[::2], padding[1::2], strict=True))
    if min((n - 1) * step + 1 + sum(edge) for n, step, edge in zip(shape, steps, edges, strict=True)) < 1:
        raise GraphError(f"padding {padding} of input {shape} leaves nothing")
    spread = [(n - 1) * step + 1 + sum(map(abs, edge)) for n, step, edge in zip(shape, steps, edges, strict=True)]
    require_result([max(0, n) for n in spread], operands.input(0).dtype, "the padded input")
    name = node.attributes.text(COMPUTATION, "a graph that is not at hand")
    return StablehloReduceWindow(
        steps, edges, WindowFold(require_fold(_FOLD_OF.get(name, name)), window, strides, dilations)
    )


def run(params: StablehloReduceWindow, x: Array, start: Array) -> tuple[Array, ...]:
    """Run STABLEHLO_REDUCE_WINDOW: T[S or 1, *shape], T[S or 1] -> T[S, *output shape]."""
    fill = start.reshape(start.shape[0], -1)[:, 0]
    return (fold_windows(params.windows, pad_or_crop(dilated(x, params.steps, fill), params.edges, fill), start),)
