"""A group of nodes as an expression: its inputs, its operators with their ranges, its results."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tflq.converters.calibration.calibrate import DIFFERENCE_RANGE
from tflq.converters.gap9.affine_types import data_range
from tflq.converters.gap9.expressions.groups import Group
from tflq.converters.gap9.expressions.operators import COPY
from tflq.converters.gap9.passes.constants import real_constant
from tflq.graph import Graph, Node, Tensor
from tflq.interpreter.kernels.gap9.expressions.tree import CONSTANT, INPUT, Symbol, Tree


@dataclass
class Expression:
    """An expression that grows operator by operator.

    Attributes:
        graph: that its nodes stand in.
        as_nntool: whether constants of one element are the raw codes of an int8 file, and squares keep NNTool's sign.
        symbols: of the tree.
        places: tensor -> its place among the symbols.
        inputs: tensors that it reads.
        departures: where NNTool's integers are not the right ones.
    """

    graph: Graph
    as_nntool: bool
    symbols: list[Symbol] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    inputs: list[int] = field(default_factory=list)
    departures: list[str] = field(default_factory=list)

    @staticmethod
    def of(graph: Graph, group: Group, outputs: tuple[int, ...], as_nntool: bool) -> tuple[Tree, Expression]:
        """Return the expression of a group, whose `outputs` others read."""
        made = Expression(graph, as_nntool)
        for index in group:
            made._operator(graph.nodes[index])
        return Tree(tuple(made.symbols), tuple(made.places[t] for t in outputs)), made

    def _operator(self, node: Node) -> None:
        operands = tuple(self._operand(t) for t in node.inputs)
        if node.operator == COPY:
            place = operands[0]
        elif node.operator == "hard_sigmoid":
            place = self._hard_sigmoid(node, operands[0])
        elif node.operator == "squared_difference":
            place = self._squared_difference(node, *operands)
        else:
            place = self._add(Symbol(node.operator, node.name, operands, 0.0, self._range(node)))
        self.places[node.outputs[0]] = place

    def _hard_sigmoid(self, node: Node, x: int) -> int:
        """min(6, max(0, x + 3)) * 1/6, in true numbers."""
        if node.attributes.real("offset", 3.0):
            x = self._add(Symbol("add", node.name, (x, self._number(3.0))))
        x = self._add(Symbol("maximum", node.name, (self._number(0.0), x)))
        x = self._add(Symbol("minimum", node.name, (self._number(6.0), x)))
        return self._add(Symbol("mul", node.name, (x, self._number(1 / 6)), 0.0, self._range(node)))

    def _squared_difference(self, node: Node, a: int, b: int) -> int:
        """(a - b) (b - a), as NNTool reads it, or (a - b)^2."""
        self.departures.append("NNTool's SQUARED_DIFFERENCE has the wrong sign (22.1)")
        low, high = node.attributes.reals(DIFFERENCE_RANGE)
        first = self._add(Symbol("sub", node.name, (a, b), 0.0, (low, high)))
        second = self._add(Symbol("sub", node.name, (b, a), 0.0, (-high, -low))) if self.as_nntool else first
        return self._add(Symbol("mul", node.name, (first, second), 0.0, self._range(node)))

    def _range(self, node: Node) -> tuple[float, float] | None:
        """The tensor's; of a ReLU only a float file has one."""
        tensor = self.graph.tensors[node.outputs[0]]
        if tensor.range is None or (node.operator in ("relu", "relu6") and not tensor.dtype.is_floating):
            return None
        return float(tensor.range.minimum[0]), float(tensor.range.maximum[0])

    def _operand(self, t: int) -> int:
        tensor = self.graph.tensors[t]
        if tensor.is_constant and tensor.size == 1:
            return self._number(self._constant(tensor))
        if t not in self.places:
            bounds = tensor.range
            if tensor.is_constant:
                bounds = data_range(real_constant(tensor))
            assert bounds is not None
            ends = float(bounds.minimum[0]), float(bounds.maximum[0])
            self.places[t] = self._add(Symbol(INPUT, "", (), float(len(self.inputs)), ends))
            self.inputs.append(t)
        return self.places[t]

    def _constant(self, tensor: Tensor) -> float:
        """The real value; of an int8 file NNTool takes the code itself."""
        assert tensor.data is not None
        raw, real = float(tensor.data.reshape(-1)[0]), float(np.asarray(real_constant(tensor)).reshape(-1)[0])
        if raw != real:
            self.departures.append(f"NNTool reads the constant {real:.6g} as {raw:g}, its code in the file (22.1)")
        return raw if self.as_nntool else real

    def _number(self, value: float) -> int:
        return self._add(Symbol(CONSTANT, "", (), value))

    def _add(self, symbol: Symbol) -> int:
        self.symbols.append(symbol)
        return len(self.symbols) - 1
