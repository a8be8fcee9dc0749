"""The types of tensors that tests of kernels name most."""

from __future__ import annotations

from tflq.graph import DType

INT8, UINT8, INT16, FLOAT32 = DType.INT8, DType.UINT8, DType.INT16, DType.FLOAT32
EIGHT_BITS = (INT8, UINT8)
QUANTIZED = (INT8, UINT8, INT16)
