"""Arithmetic `nnie`: products of dequantized logarithmic quantized values, as in the hardware's simulation.

Source: docs/targets/nnie.md.
"""
