"""Layers of 8 bits in compiled C, equal to numpy's results to the bit: `Engine(backend="c")`.

Source: docs/guides/c99.md, section 2.

`kernels.c` contains the loops. It knows shapes, weights and tables, no network and no arithmetic, so that it is
compiled once on a machine: `compiler.py` does that and keeps the library. `forms.py` maps the params of a layer to a
form of kernels.c, `maps.py` makes the constants of its last step, `buffers.py` places tensors, `layers.py` packs
layers, `run.py` runs successive layers as one call. Layers of other kinds run in numpy between them.
"""
