"""Which types meet in FULLY_CONNECTED, how their totals are rounded, and by which scale.

| input | weights | output | rounding | accumulator, bias |
| --- | --- | --- | --- | --- |
| int8 | int8, int4, int2 | int8 | real | int32 |
| int8 | int8, sparse in blocks of 1 x 16 | int8 | MBQ | int32 |
| uint8 | uint8 | uint8; int16 with a bias | real | int32 |
| int16 | int8, int4, int2 | int16 | real | int64; int32 where quantized_bias_type says so |
| int16 | int16 | int16 | MBQ64 | int64; bias of int32, or int64 where quantized_bias_type says so |

TFLite looks at no other pairing of input and output: it reads the bytes of one type as another. tflq refuses those.

Source: TFLite kernels/fully_connected.cc (CheckTypes, PrepareImpl, EvalQuantized).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType, Node, Operands, Tensor
from tflq.interpreter.kernels.tflite.rescale import Rounding
from tflq.interpreter.operands.checks import EIGHT_BITS, per_tensor, require_type
from tflq.interpreter.operands.products import are_sparse, require_default_layout

SIGNED_WEIGHTS = (DType.INT8, DType.INT4, DType.INT2)
_WEIGHTS = {
    DType.INT8: SIGNED_WEIGHTS,
    DType.UINT8: (DType.UINT8,),
    DType.INT16: (*SIGNED_WEIGHTS, DType.INT16),
}


def require_pairing(node: Node, operands: Operands) -> tuple[Rounding, int]:
    """Return the rounding and the width of the accumulator.

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
    return (Rounding.DOUBLE if _is_sparse(x, weights) else Rounding.REAL), bits


def scale_of(x: Tensor, weights: Tensor, output: Tensor, rounding: Rounding) -> NDArray[np.float64]:
    """Return si * sw / so, float64[O]; si * sw is a float32 for fixed-point multipliers of weights with one scale.

    Raises:
        GraphError: another number of scales than one or one for each row of the weights.
    """
    si, so = per_tensor(x)[0], per_tensor(output)[0]
    sw, outputs = weights.affine.scale.astype(np.float32), weights.shape[0]
    if sw.size not in (1, outputs):
        raise GraphError(f"weights '{weights.name}' have {sw.size} scales; allowed are 1 or {outputs}")
    product = np.float64(si) * sw.astype(np.float64)
    if rounding is not Rounding.REAL and sw.size == 1:
        product = (si * sw).astype(np.float64)
    return np.array(np.broadcast_to(product / np.float64(so), (outputs,)))


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
