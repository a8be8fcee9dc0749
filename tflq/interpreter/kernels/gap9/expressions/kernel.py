"""Kernel of EXPRESSION."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Affine, Array, Node, Operands, Tensor
from tflq.interpreter.kernels.gap9.activations import curve_table, run_curve
from tflq.interpreter.kernels.gap9.expressions.formula import Formula, constant
from tflq.interpreter.kernels.gap9.expressions.operators import Lowering, Value, rescale
from tflq.interpreter.kernels.gap9.expressions.steps import Step, run_steps, steps_of
from tflq.interpreter.kernels.gap9.expressions.tree import CONSTANT, INPUT, Symbol, Tree
from tflq.interpreter.numerics.lookup_tables import make_pairs, run_pairs
from tflq.interpreter.operands.checks import EIGHT_BITS
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align, with_rank

_FRACTION_BITS = {(8, True): 7, (8, False): 8, (16, True): 15, (16, False): 16}


@dataclass(frozen=True, eq=False)
class ExpressionParams:
    """The params of one expression.

    Attributes:
        steps: integer operations in order.
        results: positions of the outputs among them.
        shared: positions of the values that are computed once and read several times.
        dtypes: Storage types of the outputs.
        ranks: Ranks of the outputs; one that no input of the highest rank reaches has a lower one.
        flaws: Places in which NNTool's integers differ from the correct ones.
        table: Table of all quantized values, or of all pairs of two 8-bit inputs; None otherwise.
    """

    steps: tuple[Step, ...]
    results: tuple[int, ...]
    shared: tuple[int, ...]
    dtypes: tuple[np.dtype[np.generic], ...]
    ranks: tuple[int, ...]
    flaws: tuple[str, ...]
    table: Array | None = None

    def exact(self, *inputs: Integers) -> Integers:
        """Return the first output for inputs of one rank."""
        return run_steps(self.steps, inputs)[self.results[0]]


def lower(node: Node, operands: Operands) -> ExpressionParams:
    """Decide the integers of an expression.

    With numerics "nntool" they are NNTool's, flaws included; else the correct ones, which differ at the flaws only.

    Raises:
        UnsupportedError: an expression that NNTool cannot quantize.
    """
    tree = Tree.from_attributes(node.attributes)
    inputs = [operands.input(i) for i in range(len(operands.inputs))]
    as_nntool = node.attributes.text("numerics", "exact") == "nntool"
    flaws = Lowering(True)
    vendor = _formulas(tree, inputs, operands.outputs, flaws)
    _note_overflows(vendor, flaws)
    chosen = vendor if as_nntool else _formulas(tree, inputs, operands.outputs, Lowering(False))
    steps, places = steps_of(chosen, as_nntool)
    count = len(operands.outputs)
    dtypes, ranks = tuple(t.dtype.storage for t in operands.outputs), tuple(len(t.shape) for t in operands.outputs)
    params = ExpressionParams(steps, places[-count:], places[:-count], dtypes, ranks, tuple(flaws.flaws))
    return replace(params, table=_table(params, inputs, operands.outputs))


def run(params: ExpressionParams, *inputs: Array) -> tuple[Array, ...]:
    """Run an expression: quantized [S or 1, *shape] each, shapes broadcast -> quantized [S, *shape] for each output."""
    if params.table is not None and len(inputs) == 1:
        return (run_curve(params.table, params.exact, inputs[0], params.dtypes[0]),)
    if params.table is not None:
        return (run_pairs(params.table, inputs[0], inputs[1]),)
    values = run_steps(params.steps, align(*inputs))
    results = zip(params.results, params.dtypes, params.ranks, strict=True)
    return tuple(with_rank(values[place], rank).astype(dtype) for place, dtype, rank in results)


def _formulas(
    tree: Tree, inputs: Sequence[Tensor], outputs: Sequence[Tensor], lowering: Lowering
) -> tuple[Formula, ...]:
    """Return the shared values in order, then the outputs."""
    values: list[Value] = []
    shared = tree.shared_positions
    for symbol in tree.symbols:
        if symbol.operator == INPUT:
            values.append(_input(inputs[int(symbol.number)], symbol))
        elif symbol.operator == CONSTANT:
            values.append(Value.of_constant(symbol.number))
        else:
            values.append(lowering.lower_symbol(symbol, [values[o] for o in symbol.operands]))
        if len(values) - 1 in shared:
            # A value with several readers is not merged.
            values[-1] = replace(values[-1], formula=Formula("shared", (values[-1].formula,)), source=None)
    results = [
        _output(values[place], tensor.affine, lowering) for place, tensor in zip(tree.outputs, outputs, strict=True)
    ]
    return (*(values[place].formula for place in shared), *results)


def _input(tensor: Tensor, symbol: Symbol) -> Value:
    """Return v = code - Z, with Q = 7, 8, 15 or 16 by the type."""
    affine = tensor.affine
    q, zero_point = _FRACTION_BITS[affine.bits, affine.signed], int(affine.zero_point[0])
    low, high = affine.minimum_code, affine.maximum_code
    if tensor.data is not None and tensor.data.size:
        low, high = int(tensor.data.min()), int(tensor.data.max())
    formula = Formula("input", (), (int(symbol.number), low, high))
    if zero_point:
        formula = Formula("sub", (formula, constant(zero_point)))
    scale = float(affine.scale[0]) * 2.0**q
    return Value(formula, scale, q, symbol.range, own_bits=affine.bits if affine.signed and not zero_point else 0)


def _output(value: Value, affine: Affine, lowering: Lowering) -> Formula:
    """Return clip(rescaled + Z); NNTool clips unsigned values one too high, and keeps their low bits."""
    q = _FRACTION_BITS[affine.bits, affine.signed]
    formula = rescale(value, float(affine.scale[0]) * 2.0**q, q).formula
    zero_point = int(affine.zero_point[0])
    if zero_point:
        formula = Formula("add", (formula, constant(zero_point)))
    low, high = affine.minimum_code, affine.maximum_code
    if not affine.signed and lowering.as_nntool:
        high += 1
        if formula.bounds[1] >= high:
            lowering.note(f"a result above {high - 1} becomes 0 in NNTool (22.6)")
    return Formula("clip", (formula,), (low, high))


def _note_overflows(formulas: Sequence[Formula], lowering: Lowering) -> None:
    seen: set[Formula] = set()
    waiting = list(formulas)
    while waiting:
        formula = waiting.pop()
        if formula in seen:
            continue
        seen.add(formula)
        waiting += formula.operands
        if formula.operation == "norm" and formula.numbers[0] < 0:
            lowering.note("NNTool merges two shifts to a negative one, which gives 0 or -1 (22.7)")
        if formula.overflows:
            lowering.note("NNTool's products can wrap in 32 bits (22.2)")


def _table(params: ExpressionParams, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Array | None:
    if len(outputs) > 1 or any(t.dtype not in EIGHT_BITS for t in inputs):
        return None
    if len(inputs) == 1:
        return curve_table(params.exact, inputs[0], outputs[0])
    if len(inputs) == 2:
        return make_pairs(params.exact, inputs[0].dtype, inputs[1].dtype, outputs[0].dtype)
    return None


KERNELS = {
    "expression": Kernel(
        lower, run, "y = clip((operators in 32-bit integers) * M 2^-N + Z_y)", "docs/rules/gap9/expressions.md"
    ),
}
