"""Which operators take part in expressions, whether the matcher runs, and what NNTool refuses in them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tflq.converters.calibration.calibrate import DIFFERENCE_RANGE
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.passes.patterns import constant_operand
from tflq.graph import Graph, Node

NEEDING = frozenset(
    ("div", "maximum", "minimum", "pow", "squared_difference", "abs", "exp", "sqrt", "rsqrt", "sin", "cos")
)
"""Operators that NNTool has as parts of expressions only."""
ACTIVATIONS = frozenset(("relu", "relu6", "tanh", "logistic", "hard_sigmoid"))
CANDIDATES = NEEDING | ACTIVATIONS | {"add", "sub", "mul"}

COPY = "copy"
"""Takes part like a candidate: hands a tensor on."""


def is_matching(graph: Graph, options: Mapping[str, LayerOptions]) -> bool:
    """Whether the matcher runs: setting expressions, or with "auto" an operator that needs it."""
    chosen = next((o.expressions for o in options.values()), "auto")
    return chosen == "true" or (chosen == "auto" and any(n.operator in NEEDING for n in graph.nodes))


def expression_problem(graph: Graph, node: Node, options: LayerOptions) -> str:
    """Say why an operator cannot become part of an expression; "" where it can."""
    if options.expressions == "false":
        return "NNTool takes it as a part of an expression only: set expressions=auto or true"
    if node.operator == "squared_difference" and DIFFERENCE_RANGE not in node.attributes:
        return (
            "NNTool computes it from two differences, and no file holds their range: give the float model, and "
            "calibrate it with samples"
        )
    return _exponent_problem(graph, node) if node.operator == "pow" else ""


def _exponent_problem(graph: Graph, node: Node) -> str:
    """NNTool takes one constant 1, 2, or between 0 and 1, rounded to 4 decimals; of an int8 file the code itself."""
    allowed = "NNTool takes one constant 1, 2 or between 0 and 1"
    exponent = graph.tensors[node.inputs[1]]
    if constant_operand(graph, node) != 1 or exponent.data is None or exponent.size != 1:
        return f"its exponent is no constant of one element; {allowed}"
    p = float(np.round(float(exponent.data.reshape(-1)[0]), 4))
    return "" if p in (1.0, 2.0) or 0 < p < 1 else f"its exponent is {p:g} as NNTool reads it; {allowed}"
