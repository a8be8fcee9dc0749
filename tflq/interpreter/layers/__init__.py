"""Layers that several arithmetics compute alike but for their last step.

`linear.py`: convolutions and fully connected layers. `pooling.py`: average pools, means and maxima. The sums are
shared; what an arithmetic adds is a frozen dataclass with the exact rule over arrays, written in the primitives of
`numerics`, and the few lines that make it from a node.
"""
