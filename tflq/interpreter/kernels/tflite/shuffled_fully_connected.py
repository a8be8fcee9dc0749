"""FULLY_CONNECTED of uint8 with shuffled weights and an int16 output.

Weights lie in blocks of 4 rows x 16 columns, their top bit flipped: as int8 they are what is left of a uint8 once the
zero point of 128 is off. The input loses 128 too, whatever its own zero point says. One or four rows of input. The
sum of products and bias goes through MBQ, si * sw a float32; the output's zero point bounds the fused activation, but
is not added. The second output is the input as the kernel rearranges it.

Source: TFLite kernels/fully_connected.cc (EvalShuffledQuantized), internal/reference/fully_connected.h.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tflite.fully_connected_types import scale_of
from tflq.interpreter.kernels.tflite.rescale import Rounding, Rule, make_rule, require_bias_scale
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.products import check_shapes, layout_of, require_clipping

_LAYOUT = "shuffled4x16int8"
_ROWS, _COLUMNS, _BATCHES = 4, 16, (1, 4)
_SIGN = np.uint8(0x80)


def is_shuffled(node: Node) -> bool:
    """Whether the weights are shuffled."""
    return layout_of(node) == _LAYOUT


def lower_shuffled(node: Node, operands: Operands) -> tuple[Rule, bool, tuple[int, ...]]:
    """Return how totals become quantized values, whether the output keeps the input's axes.

    And the shape of the second output.

    Raises:
        UnsupportedError: other types, or no bias.
        GraphError: sizes that do not fill blocks, or no second output of the input's size.
    """
    x, weights, bias, output = operands.input(0), operands.input(1), operands.optional(2), operands.output()
    if bias is None or len(operands.outputs) != 2:
        raise UnsupportedError("shuffled weights without a bias and a second output; TFLite uses both")
    workspace = operands.output(1)
    for tensor, dtype in ((x, DType.UINT8), (weights, DType.UINT8), (bias, DType.INT32), (workspace, DType.UINT8)):
        require_type(tensor, (dtype,))
    require_type(output, (DType.INT16,))
    require_clipping(node)
    keep = check_shapes(node, x, weights)
    rows, depth = weights.shape
    if rows % _ROWS or depth % _COLUMNS or x.size // depth not in _BATCHES or workspace.size != x.size:
        raise GraphError(
            f"input {x.shape}, weights {weights.shape}, second output {workspace.shape}: shuffled weights have a "
            f"multiple of {_ROWS} rows and of {_COLUMNS} columns, 1 or 4 rows of input, and an output for those"
        )
    require_bias_scale(x, weights, bias, output)
    rule = make_rule(node, output, scale_of(x, weights, output, Rounding.DOUBLE), Rounding.DOUBLE, 32)
    return replace(rule, zero_point=0), keep, workspace.shape


def unshuffled(weights: Array) -> Array:
    """Return weights row by row: uint8[..., O, K] -> int8[..., O, K]."""
    *outer, rows, depth = weights.shape
    blocks = weights.view(np.int8).reshape(*outer, rows // _ROWS, depth // _COLUMNS, _ROWS, _COLUMNS)
    return np.ascontiguousarray(np.moveaxis(blocks, -2, -3)).reshape(weights.shape)


def shuffled_input(x: Array) -> Array:
    """Return the input less 128: uint8 -> int8."""
    return np.asarray(np.bitwise_xor(x.astype(np.uint8), _SIGN).view(np.int8))


def shuffled_workspace(inner: Array, depth: int) -> Array:
    """Return what TFLite's kernel writes into its second output: int8[S, ...] -> uint8[S, elements]."""
    samples = len(inner)
    blocks = inner.view(np.uint8).reshape(samples, -1, depth // _COLUMNS, _COLUMNS)
    return np.ascontiguousarray(blocks.swapaxes(1, 2)).reshape(samples, -1)
