"""Shapes and options of FULLY_CONNECTED, the same in every arithmetic.

Source: TFLite kernels/fully_connected.cc, UpdateOutputSize and Prepare.
"""

from __future__ import annotations

from math import prod

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType, Node, Tensor
from tflq.graph.extras import sparse_block
from tflq.interpreter.operands.result_size import require_result

_SPARSE_BLOCK = (1, 16)
_CLIPPING = ("none", "relu", "relu_n1_to_1", "relu6")


def check_shapes(node: Node, x: Tensor, weights: Tensor) -> bool:
    """Check that the input falls into rows of K; return whether the output keeps the input's axes.

    Args:
        node: with keep_num_dims.
        x: [..., K], or any shape whose size is a multiple of K.
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
    """Check that the fused activation clips, as TFLite demands but for hybrid layers.

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
    """Check that the weights lie row by row.

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
    """Return the shape of the output, sample axis in front: [S, rows, O] or [S, ..., O].

    Args:
        x_shape: with the sample axis.
        weights_shape: (O, K).
        keep: of `check_shapes`.
    """
    outputs, depth = weights_shape
    if keep:
        return (*x_shape[:-1], outputs)
    return (x_shape[0], prod(x_shape[1:]) // depth, outputs)
