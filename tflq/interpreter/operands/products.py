"""Shapes and options of BATCH_MATMUL, FULLY_CONNECTED and SVDF, the same in every arithmetic.

Source: TFLite kernels/batch_matmul.cc (Prepare), fully_connected.cc (UpdateOutputSize, Prepare), svdf.cc (Prepare).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.graph.model import sparse_block
from tflq.graph.operators import FUSED_ACTIVATIONS, RECTIFIER_BOUNDS
from tflq.interpreter.operands.checks import require_result, require_type
from tflq.interpreter.samples import align

MOST_AXES = 5


@dataclass(frozen=True, eq=False)
class Adjoints:
    """Which operands are transposed.

    Attributes:
        adj_x: whether x is.
        adj_y: whether y is.
    """

    adj_x: bool
    adj_y: bool

    def factors(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Return both operands as [S or 1, ..., A, K] and [S or 1, ..., K, B], of equal rank."""
        left = np.swapaxes(x, -1, -2) if self.adj_x else x
        right = np.swapaxes(y, -1, -2) if self.adj_y else y
        first, second = align(left, right)
        return first, second


def require_product(node: Node, operands: Operands) -> tuple[bool, bool, int]:
    """Check the shapes [..., A, K] and [..., K, B]; return adj_x, adj_y and K.

    Raises:
        GraphError: they do not multiply, or have fewer than 2 axes or more than 5.
    """
    x, y = operands.input(0).shape, operands.input(1).shape
    adj_x, adj_y = (node.attributes.boolean(name, False) for name in ("adj_x", "adj_y"))
    if not 2 <= min(len(x), len(y)) <= max(len(x), len(y)) <= MOST_AXES:
        raise GraphError(f"shapes {x} and {y}; batch_matmul takes 2 to {MOST_AXES} axes")
    depth = x[-2] if adj_x else x[-1]
    try:
        batches = np.broadcast_shapes(x[:-2], y[:-2])
        fits = depth == (y[-1] if adj_y else y[-2])
    except ValueError:
        batches, fits = (), False
    if not fits:
        raise GraphError(f"shapes {x} and {y} do not multiply (adj_x {adj_x}, adj_y {adj_y})")
    require_result((*batches, x[-1 if adj_x else -2], y[-2 if adj_y else -1]), operands.output().dtype)
    return adj_x, adj_y, depth


_SPARSE_BLOCK = (1, 16)
_CLIPPING = tuple(a for a in FUSED_ACTIVATIONS if a == "none" or a in RECTIFIER_BOUNDS)


def check_shapes(node: Node, x: Tensor, weights: Tensor) -> bool:
    """Check that the input falls into rows of K; return whether the output keeps the input's axes.

    Args:
        node: Node with keep_num_dims.
        x: [..., K], or any shape with a size that is a multiple of K.
        weights: [O, K].

    Raises:
        GraphError: it does not.
    """
    keep = node.attributes.boolean("keep_num_dims", False)
    if len(weights.shape) != 2 or weights.shape[1] < 1 or x.size % weights.shape[1]:
        raise GraphError(f"input {x.shape} does not fall into rows for weights {weights.shape}")
    if keep and (not x.shape or x.shape[-1] != weights.shape[1]):
        raise GraphError(f"input {x.shape} must end with {weights.shape[1]}, because keep_num_dims is set")
    require_result((x.size // weights.shape[1], weights.shape[0]), DType.INT32, "the accumulators")
    return keep


def require_clipping(node: Node) -> None:
    """Check that the fused activation clips, as TFLite requires except for hybrid layers.

    Raises:
        UnsupportedError: it is another one.
    """
    activation = node.attributes.text("fused_activation_function", "none")
    if activation not in _CLIPPING:
        raise UnsupportedError(f"fused activation '{activation}'; the kernel takes {', '.join(_CLIPPING)}")


def layout_of(node: Node) -> str:
    """Return the name of the weights' layout."""
    return node.attributes.text("weights_format", "default")


def require_default_layout(node: Node) -> None:
    """Check that the weights are stored row by row.

    Raises:
        UnsupportedError: they are shuffled.
    """
    layout = layout_of(node)
    if layout != "default":
        raise UnsupportedError(f"weights_format '{layout}'; these types take 'default' only")


def are_sparse(weights: Tensor) -> bool:
    """Whether integer weights are stored sparsely, in the only way that TFLite multiplies them.

    Raises:
        UnsupportedError: they are in another way: TFLite refuses them, or reads their values from wrong places.
    """
    block = sparse_block(weights)
    if block is not None and (block != _SPARSE_BLOCK or weights.dtype is not DType.INT8):
        raise UnsupportedError(
            f"weights '{weights.name}' ({weights.dtype.value}) are sparse with blocks {block or 'in another order'}; "
            f"TFLite multiplies int8 in blocks of {_SPARSE_BLOCK}: store them densely"
        )
    return block is not None


def output_shape(x_shape: tuple[int, ...], weights_shape: tuple[int, ...], keep: bool) -> tuple[int, ...]:
    """Return the shape of the output with a leading sample axis: [S, rows, O] or [S, ..., O].

    Args:
        x_shape: Shape with the sample axis.
        weights_shape: (O, K).
        keep: Result of `check_shapes`.
    """
    outputs, depth = weights_shape
    if keep:
        return (*x_shape[:-1], outputs)
    return (x_shape[0], prod(x_shape[1:]) // depth, outputs)


@dataclass(frozen=True)
class SvdfShapes:
    """Sizes of one SVDF.

    Attributes:
        rank: filters of one unit.
        units: outputs.
        memory: steps that the state remembers.
    """

    rank: int
    units: int
    memory: int

    @property
    def filters(self) -> int:
        """Number of filters."""
        return self.rank * self.units


def svdf_shapes(node: Node, operands: Operands) -> SvdfShapes:
    """Check the shapes of input [B, I], feature weights [F, I], time weights [F, M], bias [U], state [B, M * F].

    Raises:
        GraphError: they contradict each other, or the state is no variable.
    """
    x, feature, time, bias, state = (*(operands.input(i) for i in range(3)), operands.optional(3), operands.input(4))
    rank = node.attributes.integer("rank")
    if not len(x.shape) == len(feature.shape) == len(time.shape) == 2 or feature.shape[1] != x.shape[1]:
        raise GraphError(f"input {x.shape}, feature weights {feature.shape} and time weights {time.shape} do not fit")
    filters, memory = time.shape
    if rank < 1 or filters != feature.shape[0] or filters % rank or memory < 1:
        raise GraphError(f"{feature.shape[0]} and {filters} filters do not fit rank {rank}; they are a multiple of it")
    require_state(state, (x.shape[0], memory * filters))
    if bias is not None and bias.size != filters // rank:
        raise GraphError(f"the bias has {bias.size} elements, there are {filters // rank} units")
    return SvdfShapes(rank, filters // rank, memory)


def require_state(state: Tensor, shape: tuple[int, ...], dtype: DType | None = None) -> None:
    """Check a tensor that keeps state.

    Raises:
        GraphError: it is no variable, or has another shape.
        UnsupportedError: it has another type.
    """
    if not state.is_variable:
        raise GraphError(f"tensor '{state.name}' keeps the state and must be a variable")
    if int(np.prod(state.shape)) != int(np.prod(shape)):
        raise GraphError(f"state '{state.name}' has shape {state.shape}, it needs {shape}")
    if dtype is not None:
        require_type(state, (dtype,))


def shift_state(state: Array, newest: Array) -> Array:
    """Drop the oldest step of each filter and append the newest.

    Args:
        state: T[S or 1, B, F * M].
        newest: T[S, B, F].

    Returns:
        T[S, B, F, M].
    """
    old = state.reshape(len(state), *newest.shape[1:], -1)[..., 1:]
    return np.concatenate([np.broadcast_to(old, (len(newest), *old.shape[1:])), newest[..., None]], axis=-1)
