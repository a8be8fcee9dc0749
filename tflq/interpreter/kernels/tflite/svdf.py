"""SVDF in TFLite's integer arithmetic, and hybrid: float32 activations with integer weights.

Source: docs/rules/tflite/index.md.

int8, the state and the time weights int16: newest[f] = sat16(MBQ(sum over i of wf[f, i] * (x[i] - zi), f32(si * swf /
ss))); the state keeps the M newest of each filter; y[u] = sat8(MBQ(sum over filters and steps of wt * state + bias[u],
f32(ss * swt / so)) + zo). Both ratios are formed in float32. Sums are int32 and wrap. Fused is relu, which is no more
than the clamp to int8.

Hybrid, with int8 or uint8 weights: the feature product is that of hybrid.py; time weights become f32(w * scale)
and the rest is the float kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Singles
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate import MatrixProduct, accumulate_product, prepare_product
from tflq.interpreter.kernels.float.svdf import finish
from tflq.interpreter.kernels.float.vector_functions import require_activation
from tflq.interpreter.kernels.tflite.hybrid import (
    HybridProduct,
    hybrid_product,
    prepare_hybrid,
    quantize_rows,
    signed_weights,
)
from tflq.interpreter.numerics.fixed_point import (
    multiply_by_quantized_multiplier,
    saturate,
    scalar_multiplier,
    wrap_int32,
)
from tflq.interpreter.operands.checks import meets_integer_weights, per_tensor, require_same_type, require_type
from tflq.interpreter.operands.products import SvdfShapes, require_state, shift_state, svdf_shapes
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import run_each


@dataclass(frozen=True, eq=False)
class HybridSvdf:
    """The params of a hybrid SVDF.

    Attributes:
        shapes: rank, units, memory.
        activation: fused.
        asymmetric: whether inputs get a zero point.
        scale: Scale of the feature weights.
        time: time weights as float32[F, M].
        product: feature weights packed.
    """

    shapes: SvdfShapes
    activation: str
    asymmetric: bool
    scale: np.float32
    time: Singles
    product: HybridProduct


def _lower_hybrid(node: Node, operands: Operands) -> HybridSvdf:
    """Check the operands and prepare the weights, which must be constants.

    Raises:
        UnsupportedError: other types, or an unknown activation.
        GraphError: shapes that contradict each other.
    """
    feature, time = operands.input(1), operands.input(2)
    for tensor in (operands.input(0), operands.optional(3), operands.input(4), operands.output()):
        if tensor is not None:
            require_type(tensor, (DType.FLOAT32,))
    require_type(feature, (DType.INT8, DType.UINT8))
    require_same_type(feature, time)
    scale, time_scale = per_tensor(feature)[0], per_tensor(time)[0]
    codes = signed_weights(operands.constant(2)).astype(np.float32)
    return HybridSvdf(
        svdf_shapes(node, operands),
        require_activation(node.attributes.text("fused_activation_function", "none")),
        node.attributes.boolean("asymmetric_quantize_inputs", False),
        scale,
        codes * time_scale,
        prepare_hybrid(signed_weights(operands.constant(1))),
    )


def _run_hybrid(layer: HybridSvdf, x: Array, bias: Array | None, state: Array) -> tuple[Array, ...]:
    """Run it: float32[S, B, I], state [S, B, M * F] -> float32[S, B, U] and the new state."""
    rows = quantize_rows(cast(Singles, x), layer.asymmetric)
    newest = hybrid_product(layer.product, rows) * (rows.scale * layer.scale)[..., None]
    return finish(layer.shapes, layer.activation, newest, layer.time, cast(Singles | None, bias), state)


@dataclass(frozen=True, eq=False)
class Svdf:
    """The params of one SVDF.

    Attributes:
        shapes: rank, units, memory.
        input_zero_point: zi.
        output_zero_point: zo.
        feature: (multiplier, shift) from feature sums to the state.
        time: (multiplier, shift) from time sums to the output.
        prepared: feature weights packed; None if they are computed at run time.
    """

    shapes: SvdfShapes
    input_zero_point: int
    output_zero_point: int
    feature: tuple[int, int]
    time: tuple[int, int]
    prepared: MatrixProduct | None


_LARGEST_DIFFERENCE = np.iinfo(np.uint8).max  # of a code of int8 and a zero point


def lower(node: Node, operands: Operands) -> Svdf | HybridSvdf:
    """Decide the params of SVDF; float inputs are lowered to a hybrid SVDF.

    Raises:
        UnsupportedError: types that the kernel does not take, or an activation other than relu.
        GraphError: shapes that contradict each other.
    """
    if meets_integer_weights(operands):
        return _lower_hybrid(node, operands)
    x, feature, time, bias, state = (*(operands.input(i) for i in range(3)), operands.optional(3), operands.input(4))
    output = operands.output()
    for tensor, dtype in ((x, DType.INT8), (feature, DType.INT8), (time, DType.INT16), (output, DType.INT8)):
        require_type(tensor, (dtype,))
    if bias is not None:
        require_type(bias, (DType.INT32,))
    shapes = svdf_shapes(node, operands)
    require_state(state, state.shape, DType.INT16)
    activation = node.attributes.text("fused_activation_function", "none")
    if activation != "relu":
        raise UnsupportedError(f"fused activation '{activation}'; SVDF of int8 takes relu only")
    (si, zi), (so, zo), (ss, _) = per_tensor(x), per_tensor(output), per_tensor(state)
    prepared = None if feature.data is None else prepare_product(feature.data, _LARGEST_DIFFERENCE)
    to_state = scalar_multiplier(si * per_tensor(feature)[0] / ss)
    return Svdf(shapes, zi, zo, to_state, scalar_multiplier(ss * per_tensor(time)[0] / so), prepared)


def run(
    params: Svdf | HybridSvdf, x: Array, feature: Array, time: Array, bias: Array | None, state: Array
) -> tuple[Array, ...]:
    """Run it: int8[S, B, I], state int16[S, B, M * F] -> int8[S, B, U] and the new state."""
    if isinstance(params, HybridSvdf):
        return _run_hybrid(params, x, bias, state)
    if len(feature) > 1 or len(time) > 1:
        return run_each(partial(run, params), x, feature, time, bias, state)
    prepared = params.prepared
    if prepared is None:
        prepared = prepare_product(feature[0], _LARGEST_DIFFERENCE)
    total = accumulate_product(prepared, x.astype(np.int16) - np.int16(params.input_zero_point))
    newest = saturate(multiply_by_quantized_multiplier(wrap_int32(total.astype(np.int64)), *params.feature), 16)
    newest = np.broadcast_to(newest, (max(len(state), len(newest)), *newest.shape[1:]))
    moved = cast(NDArray[np.int16], shift_state(state, newest.astype(np.int16)))
    each = (moved.astype(np.int64) * time[0].astype(np.int64)).sum(axis=-1)
    sums = each.reshape(*each.shape[:2], params.shapes.units, params.shapes.rank).sum(axis=-1)
    if bias is not None:
        sums = sums + bias.astype(np.int64).reshape(bias.shape[0], 1, -1)
    scaled = multiply_by_quantized_multiplier(wrap_int32(sums), *params.time)
    result = saturate(scaled + params.output_zero_point, 8).astype(np.int8)
    return result, moved.reshape(*moved.shape[:2], -1)


KERNELS = {
    "svdf": Kernel(lower, run,
        "SVDF in TFLite's integer arithmetic, and hybrid: float32 activations with integer weights "
            "(docs/rules/tflite/index.md)",
        "TFLite kernels/svdf.cc, internal/reference/svdf.h (EvalIntegerSVDF, EvalHybridSVDF)"),
}  # fmt: skip
