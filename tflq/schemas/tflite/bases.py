"""The unions: a table says at its declaration of which one it is a member, and under which number."""

from __future__ import annotations

from tflq.schemas.flatbuffer.table import Union


class BuiltinOptions(Union):
    """The options in the first union of Operator."""


class BuiltinOptions2(Union):
    """The options in the second union of Operator."""


class QuantizationDetails(Union):
    """The quantisations beyond scale and zero point."""


class SparseIndexVector(Union):
    """The index vectors of a sparse dimension."""
