"""Base of every kernel of the arithmetic: a function of arrays that lowering chooses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.arrays import Singles
from tflq.errors import GraphError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.activation import SLOPE
from tflq.interpreter.kernels.aipu.scales import required_constant
from tflq.interpreter.kernels.aipu.unweighted import BIASES
from tflq.interpreter.registry import Kernel

Compute = Callable[..., Array | tuple[Array, ...]]
"""Arrays [S, *shape] of a layer's inputs, constants left out -> those of its outputs."""

CONSTANTS = ("weights", BIASES, SLOPE)
"""Keys of the constants that layers of this arithmetic have; they stand behind the tensors that a layer reads."""

Rule = Callable[[Node, Operands], Compute]


@dataclass(frozen=True, eq=False)
class RealParams:
    """One layer in floating point.

    Attributes:
        compute: Function of the inputs that are no constants of the layer.
        count: Number of these inputs.
        types: Types of the outputs.
        within: Function that computes the values of the layer's intermediates, for their ranges; None if it has none.
    """

    compute: Compute
    count: int
    types: tuple[np.dtype[np.generic], ...]
    within: Compute | None = None

    def intermediate_values(self, *inputs: Array | None) -> tuple[Array, ...]:
        """Return the internally quantized values of the layer: real[S, ...] of each intermediate."""
        values = () if self.within is None else self.within(*inputs[: self.count])
        return values if isinstance(values, tuple) else (values,)


def own_constant(operands: Operands, key: str) -> Singles:
    """Return a constant of the layer, with the leading axis of samples; raises as `required_constant`."""
    constant: Singles = np.asarray(required_constant(operands, key).data, np.float32)[None]
    return constant


def _lower(rule: Rule, within: Rule | None, node: Node, operands: Operands) -> RealParams:
    mine = {f"{node.name}/{key}" for key in CONSTANTS}
    count = sum(t is None or t.name not in mine for t in operands.inputs)
    if not count:
        raise GraphError(f"{operands.where}: reads nothing; a layer needs an input")
    types = tuple(t.dtype.storage for t in operands.outputs)
    inside = None if within is None else within(node, operands)
    return RealParams(rule(node, operands), count, types, inside)


def _run(params: RealParams, *inputs: Array) -> tuple[Array, ...]:
    with np.errstate(all="ignore"):
        results = params.compute(*inputs[: params.count])
    each = results if isinstance(results, tuple) else (results,)
    return tuple(np.asarray(y).astype(dtype, copy=False) for y, dtype in zip(each, params.types, strict=True))


def kernels(rules: Mapping[str, tuple[Rule, str]], within: Mapping[str, Rule] | None = None) -> dict[str, Kernel]:
    """Return the rows of a family: operator -> rule and its formula in one line."""
    inside = within or {}
    return {
        operator: Kernel(
            partial(_lower, rule, inside.get(operator)),
            _run,
            words,
            "docs/rules/aipu/operators.md, docs/rules/aipu/compass_ir.md",
        )
        for operator, (rule, words) in rules.items()
    }
