"""Arithmetic `nnie`: products of dequantised logarithmic quantized values, as in the hardware's simulation.

Source: docs/nnie.md.
"""
