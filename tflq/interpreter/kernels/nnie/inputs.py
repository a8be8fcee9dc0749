"""Layers without weights: ADD, MUL, CONCATENATION, AVERAGE_POOL_2D and MEAN (docs/nnie.md, 5).

What every quantising layer does first: its inputs become logarithmic quantized values with one z for all of them. Then
the float kernel runs on what the quantized values stand for, with sums of float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from tflq.errors import InputError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.nnie.logarithm import Floats, Scheme, fake_quantise, scheme_of, z_of
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.registry import Kernel, kernel


@dataclass(frozen=True)
class InputQuantiser:
    """How a layer sees its inputs.

    Attributes:
        scheme: 8 or 16 bits.
        z: z_a.
        formula: "library", "page" or "mqbench".
        where: the layer, for messages.
    """

    scheme: Scheme
    z: int
    formula: str
    where: str

    def apply(self, x: Floats) -> Floats:
        """Return what the quantized values of an input stand for.

        Raises:
            InputError: infinity.
        """
        try:
            return fake_quantise(x, self.z, self.scheme, self.formula)
        except InputError as error:
            raise InputError(f"{self.where}: {error}") from None


@dataclass(frozen=True, eq=False)
class Quantised:
    """A layer without weights: quantised inputs, then the float kernel.

    Attributes:
        inputs: how it sees its inputs.
        inner: what the float kernel decided.
    """

    inputs: InputQuantiser
    inner: object


def input_quantiser(node: Node, operands: Operands) -> InputQuantiser:
    """Read bits, clipping value and formula from the node.

    Raises:
        GraphError: an attribute is missing: the graph was not quantised for NNIE.
        UnsupportedError: another type than float32, or another width.
    """
    require_type(operands.input(0), (DType.FLOAT32,))
    scheme = scheme_of(node.attributes.integer("bits"))
    formula = node.attributes.text("formula", "library")
    z = z_of(node.attributes.real("activation_clipping"), scheme, formula)
    return InputQuantiser(scheme, z, formula, operands.where)


def _row(operator: str) -> Kernel:
    """Return a row: quantise all float inputs with the one z, and run the float kernel."""

    def lower(node: Node, operands: Operands) -> Quantised:
        return Quantised(input_quantiser(node, operands), kernel("float", operator).lower(node, operands))

    def run(params: Quantised, *arrays: Array) -> tuple[Array, ...]:
        # The axes of MEAN are no floats and stay.
        seen = (params.inputs.apply(cast(Floats, x)) if x.dtype.kind == "f" else x for x in arrays)
        return kernel("float", operator).run(params.inner, *seen)

    return Kernel(
        lower, run, f"{operator} of what logarithmic values with one z stand for, in float32", "docs/nnie.md, 5"
    )


KERNELS = {operator: _row(operator) for operator in ("add", "average_pool_2d", "concatenation", "mean", "mul")}
