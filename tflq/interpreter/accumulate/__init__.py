"""Exact accumulators: the only convolution, depthwise, matrix-product and window-sum code of the project."""
