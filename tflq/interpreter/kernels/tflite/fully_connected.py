"""FULLY_CONNECTED in TFLite's integer arithmetic: int8, uint8, int16 (docs/rules/tflite/index.md).

total = sum of (w - zw) * (x - zi) + bias; y = clamp(round_half_away(float64(total) * (si * sw / so)) + zo), the scale
in float64: the reference kernels use no fixed-point multiplier except for sparse int8 weights (MBQ) and int16 weights
(MBQ64). zw counts only if weights have one scale. Accumulators are int32 and wrap; int16 has int64 ones unless
quantized_bias_type is int32 with 8-bit weights. `lower_shuffled` lowers shuffled weights.

Which types meet:

| input | weights | output | rounding | accumulator, bias |
| --- | --- | --- | --- | --- |
| int8 | int8, int4, int2 | int8 | real | int32 |
| int8 | int8, sparse in blocks of 1 x 16 | int8 | MBQ | int32 |
| uint8 | uint8 | uint8; int16 with a bias | real | int32 |
| int16 | int8, int4, int2 | int16 | real | int64; int32 if quantized_bias_type is int32 |
| int16 | int16 | int16 | MBQ64 | int64; bias of int32, or of int64 if quantized_bias_type is |

TFLite looks at no other pairing of input and output: it reads the bytes of one type as another. tflq refuses those.

Shuffled weights, of uint8 and with an output of int16: they are stored in blocks of 4 rows x 16 columns, their top bit
flipped: as int8 they are the uint8 weights minus the zero point of 128. The input loses 128 too, whatever its zero
point. One or four rows of input. The sum of products and bias is rescaled by MBQ, si * sw a float32; the output's zero
point bounds the fused activation, but is not added. The second output is the input as the kernel rearranges it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.accumulate import MatrixProduct, accumulate_product, prepare_product
from tflq.interpreter.kernels.tflite.hybrid_fully_connected import (
    BlockwiseFullyConnected,
    HybridFullyConnected,
    is_blockwise,
    lower_blockwise,
    lower_hybrid,
    run_blockwise,
    run_hybrid,
)
from tflq.interpreter.kernels.tflite.rescale import Rounding, Rule, effective_scale, make_rule, require_bias_scale
from tflq.interpreter.kernels.tflite.weighted import LayerConstants, WeightedLayer, make_constants, with_constants
from tflq.interpreter.layers.linear import Linear, linear_product
from tflq.interpreter.operands.checks import (
    EIGHT_BITS,
    meets_integer_weights,
    per_tensor,
    require_symmetric,
    require_type,
)
from tflq.interpreter.operands.products import (
    are_sparse,
    check_shapes,
    layout_of,
    output_shape,
    require_clipping,
    require_default_layout,
)
from tflq.interpreter.registry import Kernel

TFLM = (Rounding.DOUBLE, Rounding.SINGLE)
"""Last steps of 8 bits in TensorFlow Lite Micro, which computes multipliers in float64."""
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
    rule = _build_rule(node, operands, Rounding.DOUBLE, 32)
    return replace(rule, zero_point=0), keep, workspace.shape


def unshuffle_weights(weights: Array) -> Array:
    """Return weights row by row: uint8[..., O, K] -> int8[..., O, K]."""
    *outer, rows, depth = weights.shape
    blocks = weights.view(np.int8).reshape(*outer, rows // _ROWS, depth // _COLUMNS, _ROWS, _COLUMNS)
    return np.ascontiguousarray(np.moveaxis(blocks, -2, -3)).reshape(weights.shape)


def shuffled_input(x: Array) -> Array:
    """Return the input less 128: uint8 -> int8."""
    return np.asarray(np.bitwise_xor(x.astype(np.uint8), _SIGN).view(np.int8))


def shuffled_workspace(inner: Array, depth: int) -> Array:
    """Return the second output of TFLite's kernel: int8[S, ...] -> uint8[S, elements]."""
    samples = len(inner)
    blocks = inner.view(np.uint8).reshape(samples, -1, depth // _COLUMNS, _COLUMNS)
    return np.ascontiguousarray(blocks.swapaxes(1, 2)).reshape(samples, -1)


SIGNED_WEIGHTS = (DType.INT8, DType.INT4, DType.INT2)
_WEIGHTS = {
    DType.INT8: SIGNED_WEIGHTS,
    DType.UINT8: (DType.UINT8,),
    DType.INT16: (*SIGNED_WEIGHTS, DType.INT16),
}


def require_pairing(node: Node, operands: Operands, rounding_of_8_bits: Rounding) -> tuple[Rounding, int]:
    """Return the rounding and the width of the accumulator.

    Args:
        node: FULLY_CONNECTED.
        operands: Operands of the node.
        rounding_of_8_bits: Last step of int8 and uint8 with dense weights.

    Raises:
        UnsupportedError: types that do not meet in TFLite, weights stored in another way than it reads them.
    """
    x, weights, bias, output = operands.input(0), operands.input(1), operands.optional(2), operands.output()
    require_default_layout(node)
    dtype = require_type(x, (*EIGHT_BITS, DType.INT16))
    require_type(weights, _WEIGHTS[dtype])
    require_type(output, (DType.UINT8, DType.INT16) if dtype is DType.UINT8 else (dtype,))
    if bias is None and dtype is not output.dtype:
        raise UnsupportedError(f"{dtype.value} to {output.dtype.value} without a bias; TFLite reads one there")
    bits, bias_type = _accumulator(node, x, weights)
    if bias is not None:
        require_type(bias, (bias_type,))
    if weights.dtype is DType.INT16:
        return Rounding.SINGLE_64, bits
    if _is_sparse(x, weights):
        return Rounding.DOUBLE, bits
    if dtype in EIGHT_BITS:
        return rounding_of_8_bits, bits
    if rounding_of_8_bits in TFLM:  # by the width of the accumulator
        return (Rounding.SINGLE_64 if bits == 64 else Rounding.DOUBLE), bits
    return Rounding.REAL, bits


def _build_rule(node: Node, operands: Operands, rounding: Rounding, bits: int, is_wide: bool = False) -> Rule:
    """Return the last step; LiteRT rounds si * sw to float32 for fixed-point multipliers of weights with one scale."""
    x, weights, output = operands.input(0), operands.input(1), operands.output()
    is_single = not is_wide and rounding is not Rounding.REAL and weights.affine.scale.size == 1
    scale = effective_scale(x, weights, output, weights.shape[0], rounding, product_in_float32=is_single)
    return make_rule(node, output, scale, rounding, bits)


def _accumulator(node: Node, x: Tensor, weights: Tensor) -> tuple[int, DType]:
    """Return the width of the accumulator and the type of the bias."""
    if x.dtype in EIGHT_BITS:
        return 32, DType.INT32
    stated = node.attributes.text("quantized_bias_type", "float32")
    if weights.dtype is DType.INT16:
        return 64, DType.INT64 if stated == "int64" else DType.INT32
    return (32, DType.INT32) if stated == "int32" else (64, DType.INT64)


def _is_sparse(x: Tensor, weights: Tensor) -> bool:
    if not are_sparse(weights):
        return False
    if x.dtype is not DType.INT8 or (weights.affine.zero_point.any() and not weights.affine.is_per_axis):
        raise UnsupportedError(
            f"sparse weights '{weights.name}' with an input of {x.dtype.value}; TFLite takes int8, and weights without "
            f"zero point: store them densely"
        )
    return True


FloatInput = HybridFullyConnected | BlockwiseFullyConnected


@dataclass(frozen=True, eq=False)
class FullyConnected(WeightedLayer[MatrixProduct]):
    """The params of one FULLY_CONNECTED.

    Attributes:
        input_dtype: Type of the input.
        keep_dimensions: whether the output keeps the input's axes; else it is [rows, O].
    """

    input_dtype: DType
    keep_dimensions: bool

    @property
    def linear(self) -> Linear | None:
        """The layer as `Linear`; None if weights are computed at run time, or no map serves it."""
        constants = self.constants
        if constants is None or constants.rescale.step_map is None:
            return None
        return linear_product(constants.weights, constants.rescale.step_map)

    def make(self, weights: Array, bias: Array | None, fit: bool) -> LayerConstants[MatrixProduct]:
        """Return the constants of weights [O, K] and a bias, as `make_constants`."""
        bounds = (self.input_dtype.minimum, self.input_dtype.maximum)
        zero_points = (self.input_zero_point, self.weights_zero_point)
        return make_constants(self.rule, bounds, zero_points, weights, bias, prepare_product, fit)

    def compute(self, constants: LayerConstants[MatrixProduct], x: Array) -> Array:
        """Return the quantized values of x as [S, rows, O], or [S, ..., O] with axes kept."""
        shape = output_shape(x.shape, constants.weights.shape, self.keep_dimensions)
        rows = x.reshape(-1, constants.weights.shape[1])
        return constants.rescale.apply(accumulate_product(constants.prepared, rows)).reshape(shape)


@dataclass(frozen=True, eq=False)
class ShuffledFullyConnected:
    """The params of one FULLY_CONNECTED with shuffled weights.

    Attributes:
        layer: Layer with int8 inputs and weights in order.
        workspace: shape of the second output.
    """

    layer: FullyConnected
    workspace: tuple[int, ...]


def lower(
    node: Node, operands: Operands, rounding: Rounding = Rounding.REAL
) -> FullyConnected | FloatInput | ShuffledFullyConnected:
    """Decide the params of FULLY_CONNECTED; float inputs are lowered by hybrid_fully_connected.py.

    Args:
        node: FULLY_CONNECTED.
        operands: Operands of the node.
        rounding: Last step of int8 and uint8, a property of the runtime (docs/guides/runtimes.md).

    Raises:
        UnsupportedError: types or quantization that TFLite's kernel does not take.
        GraphError: shapes that contradict each other.
    """
    if meets_integer_weights(operands):
        return lower_blockwise(node, operands) if is_blockwise(operands) else lower_hybrid(node, operands)
    if is_shuffled(node):
        return _lower_shuffled(node, operands)
    x, weights, bias, output = operands.input(0), operands.input(1), operands.optional(2), operands.output()
    chosen, bits = require_pairing(node, operands, rounding)
    require_clipping(node)
    if x.dtype is DType.INT16:
        require_symmetric(x, output)
    if bias is not None and not weights.affine.is_per_axis:
        require_bias_scale(x, weights, bias, output)
    rule = _build_rule(node, operands, chosen, bits, is_wide=rounding in TFLM)
    zw = 0 if weights.affine.is_per_axis else int(weights.affine.zero_point[0])
    layer = FullyConnected(per_tensor(x)[1], zw, rule, None, x.dtype, check_shapes(node, x, weights))
    return with_constants(layer, weights.data, bias)


def run(
    params: FullyConnected | FloatInput | ShuffledFullyConnected,
    x: Array,
    weights: Array,
    bias: Array | None = None,
) -> tuple[Array, ...]:
    """Run FULLY_CONNECTED: T[S, ..., K], weights [O, K], bias [O] -> T[S, rows, O], or T[S, ..., O] with axes kept."""
    if isinstance(params, FullyConnected):
        return (params.run(x, weights, bias),)
    if isinstance(params, HybridFullyConnected):
        return run_hybrid(params, x, weights, bias)
    if isinstance(params, BlockwiseFullyConnected):
        return run_blockwise(params, x, weights, bias)
    inner = shuffled_input(x)
    total = params.layer.run(inner, unshuffle_weights(weights), bias)
    return total, shuffled_workspace(inner, weights.shape[2]).reshape(len(x), *params.workspace)


def _lower_shuffled(node: Node, operands: Operands) -> ShuffledFullyConnected:
    rule, keep, workspace = lower_shuffled(node, operands)
    stored = operands.input(1).data
    weights = None if stored is None else unshuffle_weights(stored)
    layer = with_constants(FullyConnected(0, 0, rule, None, DType.INT8, keep), weights, operands.input(2))
    return ShuffledFullyConnected(layer, workspace)


KERNELS = {
    "fully_connected": Kernel(lower, run,
        "FULLY_CONNECTED in TFLite's integer arithmetic: int8, uint8, int16 (docs/rules/tflite/index.md)",
        "TFLite kernels/fully_connected.cc (CheckTypes, PrepareImpl, EvalQuantized, EvalShuffledQuantized), "
        "internal/reference/fully_connected.h, internal/reference/integer_ops/fully_connected.h"),
}  # fmt: skip
