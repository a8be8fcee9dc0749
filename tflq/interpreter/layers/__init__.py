"""Layers with the same computation in several arithmetics, except their last step.

`linear.py`: convolutions and fully connected layers. `pooling.py`: average pools, means and maxima. The sums are
shared; each arithmetic adds a frozen dataclass with the exact rule over arrays, written in the primitives of
`numerics`, and the few lines that make it from a node.
"""
