"""Kernels of arithmetic `float`."""
