"""Arithmetic `openvino`: levels between linear operators, as the CPU plug-in executes them (docs/openvino.md, 2)."""
