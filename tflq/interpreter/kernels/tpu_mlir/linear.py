"""CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED (Gemm): y = sat(up((acc + bias) * m, s) + Zy).

Source: docs/rules/tpu_mlir.md#convolutions-and-fully-connected-layers.

acc = sum x * w with raw quantized values x, padding holding Zx; the bias contains -Zx * sum(w) already, as TPU-MLIR
stores it.

BATCH_MATMUL: Integers, in the symmetric mode: y = sat(up(sum of qa * qb * m, s)), 32-bit m; m and s approximate Sa * Sb
/ Sy. Reals: each sum in the order of k by fused multiply-add in float32, as TPU-MLIR's simulator has it
(docs/rules/tpu_mlir_operators.md#elementwise-operators).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate import accumulator_range
from tflq.interpreter.accumulate.products import fused_products
from tflq.interpreter.accumulate.transposed import (
    Transposed,
    TransposedWindow,
    accumulate_transposed,
    prepare_transposed,
)
from tflq.interpreter.kernels.tpu_mlir.multiplier import Multiplier, find_multiplier, saturate, search_of, shift_half_up
from tflq.interpreter.layers.linear import Scheme, linear_kernels
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN
from tflq.interpreter.numerics.requantize import StepMaps, fit_step_map
from tflq.interpreter.numerics.thresholds import LARGEST_SHIFT, of_rounded_shift
from tflq.interpreter.operands.checks import EIGHT_BITS, require_same_type, require_type
from tflq.interpreter.operands.products import Adjoints, require_product
from tflq.interpreter.operands.windows import transposed_window
from tflq.interpreter.registry import Kernel

MULTIPLIER_BITS = 32


@dataclass(frozen=True, eq=False)
class FilterParams(Scheme):
    """The params of one filter, except its window.

    Attributes:
        weights: int64[O, ...], output channel first; int8, or uint8 if no weight is negative.
        bias: int64[O], input zero point folded in.
        rescale: m and s, one for each output channel or one for all.
        input_zero_point: Zx, also the padding value.
        output_zero_point: Zy.
        minimum: smallest quantized value of the output.
        maximum: largest quantized value.
        dtype: storage of the quantized values.
        step_map: proven map from accumulators to quantized values; None if the rule itself runs.
    """

    weights: Integers
    bias: Integers
    rescale: Multiplier
    input_zero_point: int
    output_zero_point: int
    minimum: int
    maximum: int
    dtype: np.dtype[np.generic]
    step_map: StepMaps | None = None

    def exact(self, accumulators: Integers) -> Integers:
        """The rule itself: accumulators without bias, int64[..., O] -> quantized values int64[..., O]."""
        scaled = shift_half_up((accumulators + self.bias) * self.rescale.multiplier, self.rescale.shift)
        return np.clip(scaled + self.output_zero_point, self.minimum, self.maximum)

    def reach(self, codes: Integers) -> Integers:
        """Return the smallest accumulators without bias with quantized values of at least `codes`."""
        whole = codes - self.output_zero_point
        return of_rounded_shift(whole, self.rescale.multiplier, self.rescale.shift) - self.bias

    @property
    def pad_value(self) -> int:
        """Zx, which the bias folds."""
        return self.input_zero_point


def lower_filter(node: Node, operands: Operands, channel_axis: int) -> FilterParams:
    """Decide m, s for the scale Sb / Sy, in float64, and check that accumulators fit int32.

    Sb is the scale of the bias: Sw * Sx, or that of a larger Sx (docs/rules/tpu_mlir.md).

    Args:
        node: Layer; its attribute `formulas` chooses the search for multipliers.
        operands: input, weights and bias in the target's types, and the output.
        channel_axis: Axis of the weights' output channels.

    Raises:
        UnsupportedError: an accumulator that leaves int32, or a ratio of scales without multiplier.
    """
    x, output = operands.input(0), operands.output()
    codes = np.moveaxis(operands.constant(1), channel_axis, 0).astype(np.int64)
    bias = operands.constant(2).astype(np.int64)
    lower, upper = accumulator_range(codes, x.dtype.minimum, x.dtype.maximum)
    _refuse_overflow(lower + bias, upper + bias)
    ratio = operands.input(2).affine.scale.astype(np.float64) / output.affine.scale
    params = FilterParams(
        codes,
        bias,
        search_of(node)(ratio, MULTIPLIER_BITS),
        int(x.affine.zero_point[0]),
        int(output.affine.zero_point[0]),
        output.dtype.minimum,
        output.dtype.maximum,
        output.dtype.storage,
    )
    return replace(params, step_map=_fit_map(params, lower, upper))


def _fit_map(params: FilterParams, lower: Integers, upper: Integers) -> StepMaps | None:
    m, s = params.rescale.multiplier, params.rescale.shift
    slope = np.broadcast_to(m * np.exp2(-s.astype(np.float64)), params.bias.shape)
    limits = (params.output_zero_point, params.minimum, params.maximum)
    reach = params.reach if np.all(s >= 0) and np.all(s <= LARGEST_SHIFT) else None
    return fit_step_map(params.exact, slope, params.bias, lower, upper, *limits, reach)


def _refuse_overflow(lower: Integers, upper: Integers) -> None:
    bad = (lower < INT32_MIN) | (upper > INT32_MAX)
    if bad.any():
        channel = int(np.argmax(bad))
        raise UnsupportedError(
            f"channel {channel}: accumulators with bias reach {int(lower[channel])}..{int(upper[channel])}, beyond "
            f"int32; the bias is too large for the scales: widen the range of the input"
        )


@dataclass(frozen=True, eq=False)
class TransposedLayer:
    """The params of one TRANSPOSE_CONV.

    Attributes:
        filter: weights and rule; its bias belongs to inputs without their zero point.
        prepared: the packed weights, and the window.
    """

    filter: FilterParams
    prepared: Transposed


def lower_transposed(node: Node, operands: Operands) -> TransposedLayer:
    """Decide the params of TRANSPOSE_CONV: elements between and around the pixels of x are Zx.

    Raises:
        UnsupportedError: as `lower_filter`.
    """
    order = (operands.input(2), operands.input(1), operands.input(3))
    params = lower_filter(node, Operands(order, operands.outputs), 0)
    zero_point = params.input_zero_point
    folded = params.bias + zero_point * params.weights.reshape(len(params.bias), -1).sum(axis=1)
    plain = replace(params, bias=folded, step_map=None)
    place = TransposedWindow(*transposed_window(node, operands))
    return TransposedLayer(plain, prepare_transposed(params.weights, place, 255))


def run_transposed(
    params: TransposedLayer, _shape: Array, _weights: Array, x: Array, _bias: Array
) -> tuple[Array, ...]:
    """Run TRANSPOSE_CONV: quantized values [S, N, H, W, C] -> [S, N, OH, OW, O]."""
    shifted = x.astype(np.int32) - params.filter.input_zero_point
    return (params.filter.finish(accumulate_transposed(params.prepared, shifted)),)


_RULE, _SOURCE = (
    "y = sat(up((acc + bias) * m, s) + Zy)",
    "docs/rules/tpu_mlir.md#convolutions-and-fully-connected-layers",
)


@dataclass(frozen=True, eq=False)
class MatmulParams(Adjoints):
    """The params of one product of two activations.

    Attributes:
        rescale: m and s; None for reals.
        dtype: Storage type of the output.
    """

    rescale: Multiplier | None
    dtype: DType


def _lower_batch_matmul(node: Node, operands: Operands) -> MatmulParams:
    """Decide m and s.

    Raises:
        UnsupportedError: other types than 8 bits or reals, a zero point other than 0, or a ratio without multiplier.
        GraphError: shapes that do not multiply.
    """
    a, b, y = operands.input(0), operands.input(1), operands.output()
    adj_x, adj_y, _ = require_product(node, operands)
    if y.dtype.is_floating:
        require_same_type(a, b, y)
        return MatmulParams(adj_x, adj_y, None, require_type(y, (DType.FLOAT16, DType.FLOAT32)))
    for tensor in (a, b, y):
        require_type(tensor, EIGHT_BITS)
        if int(tensor.affine.zero_point[0]):
            raise UnsupportedError(f"tensor '{tensor.name}' has a zero point; a product of activations has none")
    ratio = float(a.affine.scale[0]) * float(b.affine.scale[0]) / float(y.affine.scale[0])
    return MatmulParams(adj_x, adj_y, find_multiplier(ratio, MULTIPLIER_BITS), y.dtype)


def _run_batch_matmul(params: MatmulParams, x: Array, y: Array) -> tuple[Array, ...]:
    """Run BATCH_MATMUL: [S or 1, ..., A, K], [S or 1, ..., K, B] -> [S, ..., A, B]; integer sums are exact."""
    left, right = params.factors(x, y)
    if params.rescale is None:
        return (fused_products(left.astype(np.float32), right.astype(np.float32)).astype(params.dtype.storage),)
    total = np.matmul(left.astype(np.float64), right.astype(np.float64)).astype(np.int64)
    return (saturate(shift_half_up(total * params.rescale.multiplier[0], params.rescale.shift[0]), params.dtype),)


KERNELS = linear_kernels(lower_filter, _RULE, _SOURCE) | {
    "transpose_conv": Kernel(lower_transposed, run_transposed, _RULE, _SOURCE),
    "batch_matmul": Kernel(
        _lower_batch_matmul,
        _run_batch_matmul,
        "BATCH_MATMUL of two activations",
        "docs/rules/tpu_mlir_operators.md#elementwise-operators",
    ),
}
