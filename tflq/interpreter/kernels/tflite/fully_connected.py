"""FULLY_CONNECTED in TFLite's integer arithmetic: int8, uint8, int16 (docs/tflite.md).

total = sum of (w - zw) * (x - zi) + bias; y = clamp(round_half_away(float64(total) * (si * sw / so)) + zo), the scale
in float64: the reference kernels use no fixed-point multiplier but for sparse int8 weights (MBQ) and int16 weights
(MBQ64). zw counts only where weights have one scale. Accumulators are int32 and wrap; int16 has int64 ones unless
quantized_bias_type is int32 beside 8-bit weights. Shuffled weights are those of shuffled_fully_connected.py.

Source: TFLite kernels/fully_connected.cc, internal/reference/fully_connected.h,
internal/reference/integer_ops/fully_connected.h.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate import MatrixProduct, accumulate_product, prepare_product
from tflq.interpreter.kernels.tflite.fully_connected_types import require_pairing, scale_of
from tflq.interpreter.kernels.tflite.hybrid_fully_connected import (
    BlockwiseFullyConnected,
    HybridFullyConnected,
    is_blockwise,
    lower_blockwise,
    lower_hybrid,
    run_blockwise,
    run_hybrid,
)
from tflq.interpreter.kernels.tflite.rescale import make_rule, require_bias_scale
from tflq.interpreter.kernels.tflite.shuffled_fully_connected import (
    is_shuffled,
    lower_shuffled,
    shuffled_input,
    shuffled_workspace,
    unshuffled,
)
from tflq.interpreter.kernels.tflite.weighted import LayerConstants, WeightedLayer, make_constants, with_constants
from tflq.interpreter.layers.linear import Linear, linear_product
from tflq.interpreter.operands.checks import meets_integer_weights, per_tensor, require_symmetric
from tflq.interpreter.operands.products import check_shapes, output_shape, require_clipping

FloatInput = HybridFullyConnected | BlockwiseFullyConnected


@dataclass(frozen=True, eq=False)
class FullyConnected(WeightedLayer[MatrixProduct]):
    """The params of one FULLY_CONNECTED.

    Attributes:
        input_dtype: of the input.
        keep_dimensions: whether the output keeps the input's axes; else it is [rows, O].
    """

    input_dtype: DType
    keep_dimensions: bool

    @property
    def linear(self) -> Linear | None:
        """The layer as `Linear`; None where weights are computed at run time, or no map serves it."""
        found = self.constants
        if found is None or found.rescale.step_map is None:
            return None
        return linear_product(found.weights, found.rescale.step_map)

    def make(self, weights: Array, bias: Array | None, fit: bool) -> LayerConstants[MatrixProduct]:
        """Return the constants of weights [O, K] and a bias, as `make_constants`."""
        bounds = (self.input_dtype.minimum, self.input_dtype.maximum)
        zero_points = (self.input_zero_point, self.weights_zero_point)
        return make_constants(self.rule, bounds, zero_points, weights, bias, prepare_product, fit)

    def compute(self, constants: LayerConstants[MatrixProduct], x: Array) -> Array:
        """Return the quantized values of x as [S, rows, O]."""
        rows = x.reshape(x.shape[0], -1, constants.weights.shape[1])
        return constants.rescale.apply(accumulate_product(constants.prepared, rows))


@dataclass(frozen=True, eq=False)
class ShuffledFullyConnected:
    """The params of one FULLY_CONNECTED with shuffled weights.

    Attributes:
        layer: of int8 inputs and weights in order.
        workspace: shape of the second output.
    """

    layer: FullyConnected
    workspace: tuple[int, ...]


def lower(node: Node, operands: Operands) -> FullyConnected | FloatInput | ShuffledFullyConnected:
    """Decide the params of FULLY_CONNECTED; float inputs are those of hybrid_fully_connected.py.

    Raises:
        UnsupportedError: types or quantisation that TFLite's kernel does not take.
        GraphError: shapes that contradict each other.
    """
    if meets_integer_weights(operands):
        return lower_blockwise(node, operands) if is_blockwise(operands) else lower_hybrid(node, operands)
    if is_shuffled(node):
        return _lower_shuffled(node, operands)
    x, weights, bias, output = operands.input(0), operands.input(1), operands.optional(2), operands.output()
    rounding, bits = require_pairing(node, operands)
    require_clipping(node)
    if x.dtype is DType.INT16:
        require_symmetric(x, output)
    if bias is not None and not weights.affine.is_per_axis:
        require_bias_scale(x, weights, bias, output)
    rule = make_rule(node, output, scale_of(x, weights, output, rounding), rounding, bits)
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
    if isinstance(params, HybridFullyConnected):
        return run_hybrid(params, x, weights, bias)
    if isinstance(params, BlockwiseFullyConnected):
        return run_blockwise(params, x, weights, bias)
    if isinstance(params, ShuffledFullyConnected):
        inner = shuffled_input(x)
        total = _run_dense(params.layer, inner, unshuffled(weights), bias)
        return total, shuffled_workspace(inner, weights.shape[2]).reshape(len(x), *params.workspace)
    return (_run_dense(params, x, weights, bias),)


def _lower_shuffled(node: Node, operands: Operands) -> ShuffledFullyConnected:
    rule, keep, workspace = lower_shuffled(node, operands)
    stored = operands.input(1).data
    weights = None if stored is None else unshuffled(stored)
    layer = with_constants(FullyConnected(0, 0, rule, None, DType.INT8, keep), weights, operands.input(2))
    return ShuffledFullyConnected(layer, workspace)


def _run_dense(layer: FullyConnected, x: Array, weights: Array, bias: Array | None) -> Array:
    shape = output_shape(x.shape, weights.shape[1:], layer.keep_dimensions)
    found = layer.run(x, weights, bias)
    return found.reshape(len(found), *shape[1:])
