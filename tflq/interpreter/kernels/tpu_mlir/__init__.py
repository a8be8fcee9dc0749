"""Arithmetic `tpu_mlir`: INT8 of BM1684X, symmetric and asymmetric, as TPU-MLIR computes it.

Source: docs/targets/tpu_mlir.md.
"""
