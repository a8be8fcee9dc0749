"""Passes from graph to graph, one a file, in the order in which `quantize` runs them."""
