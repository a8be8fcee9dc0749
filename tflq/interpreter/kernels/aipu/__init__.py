"""Arithmetic `aipu`: Zhouyi's integers as the Compass Optimizer computes them (docs/targets/aipu.md).

Operators have the names of Compass's layers, and their nodes the keys of its IR. A node reads the layer's tensors
first, then its constants; the name of a constant ends in "/" and the key.
"""
