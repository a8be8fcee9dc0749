"""Arithmetic `tpu_mlir`: INT8 of BM1684X, symmetric and asymmetric, as TPU-MLIR computes it (docs/tpu_mlir.md)."""
