"""Arithmetic `openvino`: levels between linear operators, as the CPU plug-in executes them.

Source: docs/rules/openvino.md#levels-as-integers.
"""
