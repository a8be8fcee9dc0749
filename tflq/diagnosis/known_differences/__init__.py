"""Known differences from TFLite's reference interpreter: a table with reasons, and the elements it explains.

`rows.py` is the table; `row.py` defines a row, with the conditions on nodes and elements.
`blame.py` judges the elements of one node and of a whole model. `tflq verify`, `tflq compare`, the
table of conformance (docs/differences/tflite_operators.md) and the tests read this one table.
"""

from __future__ import annotations

from tflq.diagnosis.known_differences.blame import Blame, KnownElements, known_elements, summed, units_apart
from tflq.diagnosis.known_differences.row import Effect, KnownDifference, Place, label_of
from tflq.diagnosis.known_differences.rows import KNOWN_DIFFERENCES, rows_of, rows_of_node

__all__ = [
    "KNOWN_DIFFERENCES",
    "Blame",
    "Effect",
    "KnownDifference",
    "KnownElements",
    "Place",
    "known_elements",
    "label_of",
    "rows_of",
    "rows_of_node",
    "summed",
    "units_apart",
]
