"""Kernels of arithmetic `gap9`."""
