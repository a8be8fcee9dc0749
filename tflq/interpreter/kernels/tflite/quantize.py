"""QUANTIZE and DEQUANTIZE: float32 to integers, integers to integers, and back to float32.

Source: docs/rules/tflite/index.md.

QUANTIZE: From float32: y = clamp(int32(round_half_away(f32(x / s))) + z), per tensor or per channel; a value that does
not fit int32, and NaN, becomes -2^31 (x86) before the zero point is added. Between integers: y = clamp(MBQ(x - z_i, m,
s) + z_o), (m, s) of s_i / s_o in float64. From 8 and 16 bits that is a table.

DEQUANTIZE: Per tensor: y = f32(f64(s) * (x - z)), one rounding. Per channel: y = f32(s_c * f32(x - z_c)), a product of
float32. From 8 bits per tensor that is a table. int2, int4, uint4, int8, uint8, int16.

Other runtimes, per tensor (docs/guides/runtimes.md). XNNPACK: QUANTIZE from float32 to 8 bits y =
clamp(half_to_even(f32(x f32(1 / s))) + z); between 8 bits of one type y = clamp(((x - z_i) m + 128 >> 8) + z_o), m =
half_to_even(256 f32(s_i / s_o)). LiteRT's optimized kernels: the first 8 * floor(n / 8) of n elements are computed as
vectors: QUANTIZE as XNNPACK's from float32, DEQUANTIZE y = f32(f32(s x) + f32(-z s)); the rest y =
clamp(half_away(f64(x) / f64(s)) + z), DEQUANTIZE as above.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Integers, Reals, Singles
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.tflite.rescale import Rounding
from tflq.interpreter.numerics.fixed_point import (
    INT32_MAX,
    INT32_MIN,
    float_to_int32,
    norm,
    quantize_multiplier,
    round_half_away,
    wrap_int32,
)
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier as mbq
from tflq.interpreter.numerics.lookup_tables import Table, is_used, look_up, make_table
from tflq.interpreter.operands.checks import EIGHT_BITS, per_tensor, require_symmetric, require_type
from tflq.interpreter.recording.primitive import recorder
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import join_vectors_and_rest

VECTOR = 8
"""Elements of a vector in LiteRT's optimized kernels."""
FROM_FLOAT = (*EIGHT_BITS, DType.INT16, DType.INT4, DType.UINT4)
BETWEEN = {
    DType.INT16: (DType.INT8, DType.INT16, DType.INT32),
    DType.INT32: (DType.INT8, DType.INT16),
    DType.INT8: (*EIGHT_BITS, DType.INT16),
    DType.UINT8: (*EIGHT_BITS, DType.INT16),
}
HALF = np.nextafter(np.float32(0.5), np.float32(0))
"""The float32 below 1/2: trunc(q ± HALF) rounds half away from zero for every float32 |q| < 2^22."""


@dataclass(frozen=True, eq=False)
class FromFloat:
    """float32 -> integers.

    Attributes:
        scale: float32, shaped to broadcast against [S, *shape].
        zero_point: int64, shaped likewise.
        dtype: Type of the output.
    """

    scale: Singles
    zero_point: Integers
    dtype: DType


@dataclass(frozen=True, eq=False)
class Requantize:
    """Integers -> integers.

    Attributes:
        input_zero_point: Zero point of the input.
        output_zero_point: Zero point of the output.
        multiplier: int32; in 1/256 if there is no shift.
        shift: positive is left; None for XNNPACK's multiplier of 8 fraction bits.
        dtype: Type of the output.
        table: T[256] or T[65536] by the raw bits of the code; None from int32.
    """

    input_zero_point: int
    output_zero_point: int
    multiplier: int
    shift: int | None
    dtype: DType
    table: Table | None = None


@dataclass(frozen=True, eq=False)
class ByReciprocal(FromFloat):
    """float32 -> integers by the reciprocal of the scale.

    Attributes:
        reciprocal: Reciprocal f32(1 / scale).
        has_rest: Whether only whole vectors of 8 elements are computed so.
    """

    reciprocal: np.float32
    has_rest: bool

    @property
    def depends_on_place(self) -> bool:
        """Whether elements of the last incomplete vector follow another rule."""
        return self.has_rest


def _lower_quantize(
    node: Node,  # noqa: ARG001
    operands: Operands,
    rounding: Rounding = Rounding.DOUBLE,
    by_reciprocal: bool = False,
) -> FromFloat | Requantize:
    """Decide the params.

    Args:
        node: QUANTIZE.
        operands: Tensors of the node.
        rounding: DOUBLE, FLOAT32 (XNNPACK) or UP (optimized).
        by_reciprocal: Rule of TOSA for float32: half_to_even(x * float32(1 / s)).

    Raises:
        UnsupportedError: a pair of types that TFLite's kernel does not take.
        GraphError: a tensor without scale.
    """
    source, output = operands.input(0), operands.output()
    if require_type(source, (DType.FLOAT32, *BETWEEN)) is DType.FLOAT32:
        if by_reciprocal and not output.affine.is_per_axis:
            return _multiply_by_reciprocal(output, has_rest=False)
        return _choose_reciprocal(output, rounding) if rounding is not Rounding.DOUBLE else _from_float(output)
    require_type(output, BETWEEN[source.dtype])
    if source.dtype is DType.INT16 and output.dtype is DType.INT16:
        require_symmetric(source, output)
    (si, zi), (so, zo) = per_tensor(source), per_tensor(output)
    multiplier, shift = (int(part) for part in quantize_multiplier(float(si) / float(so)))
    params = Requantize(zi, zo, multiplier, shift, output.dtype)
    if rounding is Rounding.FLOAT32 and source.dtype is output.dtype and output.dtype in EIGHT_BITS:
        params = replace(params, multiplier=int(np.rint(np.float32(256) * (si / so))), shift=None)
    if source.dtype is DType.INT32:
        return params
    table = make_table(lambda code: _requantize(params, code), source.dtype, output.dtype)
    return replace(params, table=table)


def _run_quantize(params: FromFloat | Requantize, x: Array) -> tuple[Array, ...]:
    """Run QUANTIZE: T[S, *shape] -> U[S, *shape]."""
    if isinstance(params, ByReciprocal):
        return (_quantize_by_reciprocal(params, x),)
    if isinstance(params, FromFloat):
        return (quantize_reals(x, params.scale, params.zero_point, params.dtype),)
    if is_used(params.table):
        return (look_up(params.table, x),)
    return (_requantize(params, x.astype(np.int64)).astype(params.dtype.storage),)


def quantize_reals(x: Array, scale: Singles, zero_point: Integers, dtype: DType) -> Array:
    """Return clamp(int32(round_half_away(f32(x / scale))) + zero_point) as `dtype`.

    Args:
        x: float32[S, *shape].
        scale: float32, broadcasts against x.
        zero_point: int64, broadcasts against x.
        dtype: Type of the result.
    """
    with np.errstate(all="ignore"):
        quotient = np.asarray(x.astype(np.float32, copy=False) / scale)
    smallest, largest = (float(quotient.min()), float(quotient.max())) if quotient.size else (0.0, 0.0)
    is_small = smallest > INT32_MIN and largest < INT32_MAX  # False if there is a NaN
    if not is_small or recorder() is not None:
        code = wrap_int32(float_to_int32(round_half_away(quotient)) + zero_point)
        return np.clip(code, dtype.minimum, dtype.maximum).astype(dtype.storage)
    # Beyond these bounds every quotient clamps to the same code, and HALF rounds exactly within them.
    low = np.float32(dtype.minimum - int(zero_point.max()) - 1)
    high = np.float32(dtype.maximum - int(zero_point.min()) + 1)
    np.clip(quotient, low, high, out=quotient)
    quotient += np.copysign(HALF, quotient)
    code32 = quotient.astype(np.int32)
    code32 += zero_point.astype(np.int32)
    np.clip(code32, dtype.minimum, dtype.maximum, out=code32)
    return code32.astype(dtype.storage)


def _from_float(output: Tensor) -> FromFloat:
    dtype = require_type(output, FROM_FLOAT)
    affine = output.affine
    if not affine.is_per_axis:
        scale, zero_point = per_tensor(output)
        return FromFloat(np.array([scale]), np.array([zero_point], np.int64), dtype)
    require_type(output, (*EIGHT_BITS, DType.INT16))
    axis = affine.axis
    if axis is None or not 0 <= axis < len(output.shape) or output.shape[axis] != affine.scale.size:
        raise GraphError(
            f"tensor '{output.name}' of shape {output.shape} has {affine.scale.size} scales along axis {axis}; "
            f"their number must be the size of that axis"
        )
    scales, zero_points = affine.along(len(output.shape))
    return FromFloat(scales.astype(np.float32), zero_points.astype(np.int64), dtype)


def _requantize(params: Requantize, code: Integers) -> Integers:
    difference = wrap_int32(code - params.input_zero_point)
    if params.shift is None:
        scaled = norm(difference * params.multiplier, 8)
    else:
        scaled = mbq(difference, params.multiplier, params.shift)
    rescaled = wrap_int32(scaled + params.output_zero_point)
    return np.clip(rescaled, params.dtype.minimum, params.dtype.maximum)


def _choose_reciprocal(output: Tensor, rounding: Rounding) -> FromFloat:
    params = _from_float(output)
    takes = EIGHT_BITS if rounding is Rounding.FLOAT32 else (*EIGHT_BITS, DType.INT16)
    is_taken = not output.affine.is_per_axis and params.dtype in takes
    return _multiply_by_reciprocal(output, rounding is Rounding.UP) if is_taken else params


def _multiply_by_reciprocal(output: Tensor, has_rest: bool) -> ByReciprocal:
    params = _from_float(output)
    reciprocal = np.float32(1.0 / float(params.scale[0]))
    return ByReciprocal(**vars(params), reciprocal=reciprocal, has_rest=has_rest)


def _quantize_by_reciprocal(params: ByReciprocal, x: Array) -> Array:
    with np.errstate(all="ignore"):
        product = np.rint(x.astype(np.float32, copy=False) * params.reciprocal)
        if not params.has_rest:
            low, high = params.dtype.minimum, params.dtype.maximum
            return np.asarray(np.clip(product + params.zero_point, low, high), params.dtype.storage)
        quotient = round_half_away(x.astype(np.float64) / float(params.scale[0]))
    code = wrap_int32(float_to_int32(join_vectors_and_rest(product, quotient, VECTOR)) + params.zero_point)
    return np.clip(code, params.dtype.minimum, params.dtype.maximum).astype(params.dtype.storage)


NARROW = (DType.INT2, DType.INT4, DType.UINT4)


@dataclass(frozen=True, eq=False)
class Dequantize:
    """The params of DEQUANTIZE.

    Attributes:
        scale: float64[1] per tensor; float32 per channel, shaped to broadcast against [S, *shape].
        zero_point: int64, shaped likewise.
        table: float32[256] by the raw bits of the code; None if there is none.
        offset: Product f32(-z s) for vectors of 8 elements in LiteRT's optimized kernel; None if no vector differs.
    """

    scale: Reals
    zero_point: Integers
    table: Table | None = None
    offset: np.float32 | None = None

    @property
    def depends_on_place(self) -> bool:
        """Whether elements of the last incomplete vector follow another rule."""
        return self.offset is not None


def _lower_dequantize(node: Node, operands: Operands, in_vectors: bool = False) -> Dequantize:  # noqa: ARG001
    """Decide scale and table; `in_vectors` is the rule of LiteRT's optimized kernel.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or int16 with a zero point.
        GraphError: a tensor without scale.
    """
    source = operands.input(0)
    require_type(operands.output(), (DType.FLOAT32,))
    dtype = require_type(source, (*NARROW, *EIGHT_BITS, DType.INT16))
    if source.affine.is_per_axis:
        return _per_channel(source)
    scale, zero_point = per_tensor(source)
    if dtype is DType.INT16 and zero_point:
        raise UnsupportedError(f"tensor '{source.name}' (int16) has zero point {zero_point}; the kernel takes 0 only")
    params = Dequantize(np.array([scale], np.float64), np.array([zero_point], np.int64))
    if in_vectors and zero_point and dtype in (*EIGHT_BITS, DType.INT16):
        return replace(params, offset=np.float32(-zero_point * float(scale)))
    if dtype not in EIGHT_BITS:
        return params
    table = make_table(lambda code: _evaluate(params, code), dtype, DType.FLOAT32)
    return Dequantize(params.scale, params.zero_point, table)


def _run_dequantize(params: Dequantize, x: Array) -> tuple[Array, ...]:
    """Run DEQUANTIZE: T[S, *shape] -> float32[S, *shape]."""
    if is_used(params.table):
        return (look_up(params.table, x),)
    real = _evaluate(params, x.astype(np.int64))
    if params.offset is None:
        return (real,)
    vectors = params.scale.astype(np.float32) * x.astype(np.float32) + params.offset
    return (join_vectors_and_rest(vectors, real, VECTOR),)


def _evaluate(params: Dequantize, code: Integers) -> Singles:
    difference = (code - params.zero_point).astype(params.scale.dtype)
    return np.asarray(difference * params.scale, np.float32)


def _per_channel(source: Tensor) -> Dequantize:
    affine, axis = source.affine, source.affine.axis
    require_type(source, (*NARROW, *EIGHT_BITS))
    if axis is None or not 0 <= axis < len(source.shape) or source.shape[axis] != affine.scale.size:
        raise GraphError(
            f"tensor '{source.name}' of shape {source.shape} has {affine.scale.size} scales along axis {axis}; "
            f"their number must be the size of that axis"
        )
    scales, zero_points = affine.along(len(source.shape))
    return Dequantize(scales.astype(np.float32), zero_points.astype(np.int64))


KERNELS = {
    "quantize": Kernel(_lower_quantize, _run_quantize,
        "real numbers to integers, or integers of one quantization to another (docs/rules/tflite/index.md)",
        "TFLite kernels/quantize.cc, internal/reference/quantize.h and requantize.h"),
    "dequantize": Kernel(_lower_dequantize, _run_dequantize,
        "integers to float32 (docs/rules/tflite/index.md)",
        "TFLite kernels/dequantize.h, internal/reference/dequantize.h and integer_ops/dequantize.h"),
}  # fmt: skip
