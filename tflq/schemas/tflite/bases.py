"""The bases that tie the members of each union together for type checkers."""

from __future__ import annotations

from tflq.schemas.flatbuffer.table import Table


class BuiltinOptions(Table):
    """Base of the options in the first union of Operator."""


class BuiltinOptions2(Table):
    """Base of the options in the second union of Operator."""


class QuantizationDetails(Table):
    """Base of the quantisations beyond scale and zero point."""


class SparseIndexVector(Table):
    """Base of the index vectors of a sparse dimension."""
