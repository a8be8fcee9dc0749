"""REDUCE_WINDOW and STABLEHLO_REDUCE_WINDOW: windows folded by a function.

    y[p] = fold(fold(start, x[p*stride + k[0]*dilation]), x[p*stride + k[1]*dilation]), ...

over the places k of the window, the last axis fastest. Results are cut to the type after each step: integers wrap,
sums of floats depend on the order. bool is a byte, so that the sum of two true elements is the byte 2, as in TFLite;
`all` and `any` of numbers return 1 or 0. NaN: the larger is `a >= b ? a : b`, the smaller `a <= b ? a : b`.

REDUCE_WINDOW: sizes, strides and dilations of the window are constants. STABLEHLO_REDUCE_WINDOW: the input is dilated
and padded with the start value first, negative padding crops; the function is a graph of one operator, which TFLite
knows by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.move.blocks import pad_or_crop
from tflq.interpreter.kernels.move.pad import dilate
from tflq.interpreter.operands.checks import require_result, require_same_type, require_type
from tflq.interpreter.operands.computations import COMPUTATION
from tflq.interpreter.operands.movable import constant_vector, equal_samples
from tflq.interpreter.registry import Kernel

TYPES = (
    DType.FLOAT32, DType.FLOAT64, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8, DType.BOOL,
)  # fmt: skip
_MAXIMUM_RANK = 6
_FOLDS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "mul": np.multiply,
    "minimum": lambda a, b: np.where(np.less_equal(a, b), a, b),
    "maximum": lambda a, b: np.where(np.greater_equal(a, b), a, b),
    "all": np.logical_and,
    "any": np.logical_or,
}


@dataclass(frozen=True)
class WindowFold:
    """Sizes along each of the model's own axes.

    Attributes:
        fold: name of the function.
        window: elements of the window.
        strides: distance of neighboring windows.
        dilations: distance of neighboring elements of a window.
    """

    fold: str
    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]

    def output_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return how many windows fit along each axis: 0 where none does."""
        spans = [(n - 1) * d + 1 for n, d in zip(self.window, self.dilations, strict=True)]
        return tuple(
            0 if n < span else (n - span) // step + 1 for n, span, step in zip(shape, spans, self.strides, strict=True)
        )


def _require_foldable(operands: Operands) -> int:
    """Check input, start value and output; return the rank.

    Raises:
        UnsupportedError: types that differ or that TFLite does not fold.
        GraphError: no axis or more than six, or a start value without elements.
    """
    source, start = operands.input(0), operands.input(1)
    require_type(source, TYPES)
    require_same_type(source, start, operands.output())
    if not 1 <= len(source.shape) <= _MAXIMUM_RANK or start.size < 1:
        raise GraphError(
            f"input {source.shape} and start value {start.shape}; 1 to {_MAXIMUM_RANK} axes and an element are needed"
        )
    return len(source.shape)


def _require_fold(name: str) -> str:
    """Return the name of a function that TFLite folds with.

    Raises:
        UnsupportedError: it is none.
    """
    if name not in _FOLDS:
        raise UnsupportedError(f"windows are folded with {name}; TFLite knows {', '.join(_FOLDS)}")
    return name


def _fold_windows(params: WindowFold, x: Array, start: Array) -> Array:
    """Fold all windows: T[S or 1, *shape], T[S or 1, ...] -> T[S, *output shape]."""
    x, start = equal_samples(x, start.reshape(start.shape[0], -1)[:, 0])
    kind = np.dtype(np.int8) if x.dtype == np.bool_ else x.dtype
    shape = params.output_shape(x.shape[1:])
    source, fold = x.view(kind), _FOLDS[params.fold]
    first = start.view(kind).reshape(-1, *(1,) * len(shape))
    folded: Array = np.broadcast_to(first, (x.shape[0], *shape)).copy()
    if folded.size:
        with np.errstate(all="ignore"):
            for place in product(*(range(n) for n in params.window)):
                taps = (slice(None), *_taps(params, place, shape))
                folded = fold(folded, source[taps]).astype(kind, copy=False)
    return np.asarray(folded.view(x.dtype))


def _taps(params: WindowFold, place: Sequence[int], shape: Sequence[int]) -> list[slice]:
    """Return the slices of the element at `place` of every window."""
    return [
        slice(k * dilation, k * dilation + (count - 1) * step + 1, step)
        for k, dilation, count, step in zip(place, params.dilations, shape, params.strides, strict=True)
    ]


def _lower_window(node: Node, operands: Operands) -> WindowFold:
    """Read function and sizes.

    Raises:
        UnsupportedError: types or a function that TFLite does not fold, or sizes that are computed at run time.
        GraphError: sizes that do not fit the input, or that TFLite has no result for.
    """
    rank = _require_foldable(operands)
    sizes = [_sizes(operands, i, rank) for i in (2, 3, 4)]
    window, strides, dilations = sizes
    if min(window) < 0 or min(strides) < 1 or min(dilations) < 0:
        raise GraphError(f"window {window}, strides {strides}, dilations {dilations}; 0, 1 and 0 are the least")
    return WindowFold(_require_fold(node.attributes.text("reduce_function", "unsupported")), *sizes)


def _sizes(operands: Operands, position: int, rank: int) -> tuple[int, ...]:
    tensor = operands.input(position)
    if not tensor.is_constant:
        raise UnsupportedError(f"input {position} '{tensor.name}' is computed at run time; TFLite takes a constant")
    sizes = constant_vector(operands, position, (DType.INT64,))
    if len(sizes) != rank:
        raise GraphError(f"input {position} '{tensor.name}' has {len(sizes)} numbers for {rank} axes")
    return sizes


def _run_window(params: WindowFold, x: Array, start: Array, *_: Array) -> tuple[Array, ...]:
    """Run REDUCE_WINDOW: T[S or 1, *shape], T[S or 1], the sizes -> T[S, *output shape]."""
    return (_fold_windows(params, x, start),)


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
    """The operations along each of the model's own axes.

    Attributes:
        steps: distance of neighboring elements of the input.
        edges: elements before and after.
        windows: the fold.
    """

    steps: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    windows: WindowFold


def _lower_stablehlo(node: Node, operands: Operands) -> StablehloReduceWindow:
    """Read the sizes and the computation; sizes that are left out are 1, paddings 0.

    Raises:
        UnsupportedError: types or a computation that TFLite does not fold.
        GraphError: sizes that do not fit the input, or padding that leaves no element.
    """
    rank = _require_foldable(operands)
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
        steps, edges, WindowFold(_require_fold(_FOLD_OF.get(name, name)), window, strides, dilations)
    )


def _run_stablehlo(params: StablehloReduceWindow, x: Array, start: Array) -> tuple[Array, ...]:
    """Run STABLEHLO_REDUCE_WINDOW: T[S or 1, *shape], T[S or 1] -> T[S, *output shape]."""
    fill = start.reshape(start.shape[0], -1)[:, 0]
    return (_fold_windows(params.windows, pad_or_crop(dilate(x, params.steps, fill), params.edges, fill), start),)


KERNELS = {
    "reduce_window": Kernel(_lower_window, _run_window,
        "windows folded by one of six functions", "TFLite kernels/stablehlo_reduce_window.cc (TFLiteData)"),
    "stablehlo_reduce_window": Kernel(_lower_stablehlo, _run_stablehlo,
        "the input, dilated and padded with the start value, in windows folded by a computation",
        "TFLite kernels/stablehlo_reduce_window.cc (StablehloData)"),
}  # fmt: skip
