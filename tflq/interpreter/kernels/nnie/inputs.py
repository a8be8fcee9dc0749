"""Layers without weights: sums, products, functions, concatenations, averages (docs/nnie.md, 5).

What every quantising layer does first: its computed inputs become logarithmic quantized values with one z for all of
them. Then the float kernel runs on what the quantized values stand for, with sums of float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from tflq.arrays import Singles
from tflq.errors import InputError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.nnie.logarithm import Scheme, fake_quantise, scheme_of, z_of
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

    def apply(self, x: Singles) -> Singles:
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
        quantised: for each input whether it is one that the layer quantises: no constant, no axes.
    """

    inputs: InputQuantiser
    inner: object
    quantised: tuple[bool, ...]


def input_quantiser(node: Node, operands: Operands, position: int | None = 0) -> InputQuantiser:
    """Read bits, clipping value and formula from the node; `position` is that of an input that must be float32.

    Raises:
        GraphError: an attribute is missing: the graph was not quantised for NNIE.
        UnsupportedError: another type than float32, or another width.
    """
    if position is not None:
        require_type(operands.input(position), (DType.FLOAT32,))
    scheme = scheme_of(node.attributes.integer("bits"))
    formula = node.attributes.text("formula", "library")
    z = z_of(node.attributes.real("activation_clipping"), scheme, formula)
    return InputQuantiser(scheme, z, formula, operands.where)


def _row(operator: str) -> Kernel:
    """Return a row: quantise all float inputs with the one z, and run the float kernel."""

    def lower(node: Node, operands: Operands) -> Quantised:
        computed = [t is not None and not t.is_constant and t.dtype is DType.FLOAT32 for t in operands.inputs]
        inner = kernel("float", operator).lower(node, operands)
        return Quantised(input_quantiser(node, operands, None), inner, tuple(computed))

    def run(params: Quantised, *arrays: Array) -> tuple[Array, ...]:
        pairs = zip(arrays, params.quantised, strict=True)
        seen = (params.inputs.apply(cast(Singles, x)) if own else x for x, own in pairs)
        return kernel("float", operator).run(params.inner, *seen)

    return Kernel(
        lower, run, f"{operator} of what logarithmic values with one z stand for, in float32", "docs/nnie.md, 5"
    )


OPERATORS = (
    *(
        "add",
        "average_pool_2d",
        "concatenation",
        "div",
        "hard_swish",
        "maximum",
        "mean",
        "minimum",
        "mul",
        "neg",
        "pow",
    ),
    *("rsqrt", "sqrt", "square", "squared_difference", "sub", "sum"),
)
KERNELS = {operator: _row(operator) for operator in OPERATORS}
