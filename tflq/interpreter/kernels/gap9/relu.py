"""RELU and RELU6 in GAP9's arithmetic: the lower clamp; the upper one is the end of the type (docs/gap9.md, 1.4)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, Node, Operands
from tflq.interpreter.kernels.gap9.curves import curve_table, run_curve
from tflq.interpreter.kernels.gap9.mul_bias import MulBias, mul_bias
from tflq.interpreter.kernels.gap9.rounding import Stored
from tflq.interpreter.numerics.lookup_tables import Table
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class ReluParams:
    """The clamp.

    Attributes:
        lower_bound: the input's code of 0.
        idle: whether nothing changes.
        mul_bias: M, N about S_i / S_o where the types differ; None where they are equal, as NNTool counts it.
        zero_point: of the output.
        stored: smallest and largest quantized value, type of the output.
        table: of all quantized values where the types differ.
    """

    lower_bound: int
    idle: bool
    mul_bias: MulBias | None
    zero_point: int
    stored: Stored
    table: Table | None = None

    def exact(self, x: Integers) -> Integers:
        """clip(norm((max(x, Z_i) - Z_i) * M, N) + Z_o); with equal types max(x, Z_i)."""
        y = np.maximum(x, self.lower_bound)
        if self.mul_bias is not None:
            y = self.mul_bias.times(y - self.lower_bound) + self.zero_point
        return self.stored.clip(y)


def lower(node: Node, operands: Operands) -> ReluParams:  # noqa: ARG001
    """Decide the clamp, and M, N where input and output differ.

    Raises:
        UnsupportedError: types of other widths or signs, or a ratio of scales without M and N.
    """
    source, target = operands.input(0), operands.output()
    x, y = source.affine, target.affine
    if source.dtype is not target.dtype:
        raise UnsupportedError(
            f"input '{source.name}' is {source.dtype.value}, output '{target.name}' {target.dtype.value}; "
            "a ReLU keeps the integer type"
        )
    bound = int(x.zero_point[0])
    ratio = None if _equal(x, y) else mul_bias(float(x.scale[0]) / float(y.scale[0]))
    idle = ratio is None and bound <= y.minimum_code
    params = ReluParams(bound, idle, ratio, int(y.zero_point[0]), Stored.of(target))
    return params if ratio is None else replace(params, table=curve_table(params.exact, source, target))


def run(params: ReluParams, x: Array) -> tuple[Array, ...]:
    """Run RELU: quantized [S, *shape] -> quantized [S, *shape]."""
    if params.mul_bias is not None:
        return (run_curve(params.table, params.exact, x, params.stored.dtype),)
    return (x if params.idle else np.maximum(x, x.dtype.type(params.lower_bound)),)


def samples_last(params: object, operands: Operands) -> float | None:
    """Return 0 where quantized values are compared with one bound, which goes as fast in any order; None for tables."""
    assert isinstance(params, ReluParams)
    return 0.0 if params.mul_bias is None and len(operands.input(0).shape) == 4 else None


def _equal(x: Affine, y: Affine) -> bool:
    return bool(np.allclose(x.scale, y.scale)) and np.array_equal(x.zero_point, y.zero_point)


_RULE = "y = clip(norm((max(x, Z_i) - Z_i) * M, N) + Z_o), with equal types max(x, Z_i)"
KERNELS = {
    "relu": Kernel(lower, run, _RULE, "docs/gap9.md, 1.4", samples_last=samples_last),
    "relu6": Kernel(lower, run, f"{_RULE}, in a type that ends at 6", "docs/gap9.md, 1.4"),
}
