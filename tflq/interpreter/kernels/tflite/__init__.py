"""Kernels of arithmetic `tflite`."""
