"""QUANTIZE and DEQUANTIZE where nothing is quantised: float32 in a model's float view, and float16 that is widened.

QUANTIZE: in a model's float view: both sides are float32, and the values stay. Source: docs/calibration.md (the float
view).
DEQUANTIZE: float16 is widened to float32; in a model's float view both sides are float32. Source: TFLite
kernels/dequantize.h.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.float.relu import Unary, lower_float32
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.registry import Kernel


def _lower_widened(node: Node, operands: Operands) -> Unary:  # noqa: ARG001
    require_type(operands.input(0), (DType.FLOAT16, DType.FLOAT32))
    require_type(operands.output(), (DType.FLOAT32,))
    return Unary()


def _run(params: Unary, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    return (x.astype(np.float32, copy=False),)


KERNELS = {
    "quantize": Kernel(lower_float32, _run),
    "dequantize": Kernel(_lower_widened, _run),
}
