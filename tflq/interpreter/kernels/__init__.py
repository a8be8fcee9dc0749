"""Kernels by arithmetic: one package each, one module an operator; `move` is shared by all."""
