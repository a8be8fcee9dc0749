"""Operands: what kernels of every arithmetic ask of types, scales, shapes and indices before they lower."""
