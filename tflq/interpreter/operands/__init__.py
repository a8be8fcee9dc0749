"""Operands: checks of types, scales, shapes and indices that kernels of every arithmetic make before they lower."""
