"""QUANTIZE in GAP9's arithmetic: clip(rnd((x - Z_i) * S_i / S_o) + Z_o), evaluated in float64.

Source: docs/gap9.md, 9
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.gap9.rounding import dequantise, quantise
from tflq.interpreter.numerics.lookup_tables import Table, look_up, make_table


@dataclass(frozen=True, eq=False)
class QuantizeParams:
    """The whole operator as a table.

    Attributes:
        table: output code for each raw code of the input, 256 or 65536 entries.
    """

    table: Table


def lower(node: Node, operands: Operands) -> QuantizeParams:  # noqa: ARG001
    """Tabulate clip(rnd((x - Z_i) * S_i / S_o) + Z_o), evaluated in float64."""
    x, y = operands.input(0), operands.output()
    return QuantizeParams(make_table(lambda q: quantise(dequantise(q, x.affine), y.affine), x.dtype, y.dtype))


def run(params: QuantizeParams, x: Array) -> tuple[Array, ...]:
    """Run QUANTIZE: codes [S, *shape] -> codes [S, *shape]."""
    return (np.asarray(look_up(params.table, x)),)
