"""Target `tpu-mlir`: INT8 on BM1684X as TPU-MLIR quantises and runs it (docs/tpu_mlir.md)."""

from __future__ import annotations

from tflq.converters.tpu_mlir.target import TPU_MLIR

__all__ = ["TPU_MLIR"]
