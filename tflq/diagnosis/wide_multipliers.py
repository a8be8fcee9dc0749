"""Layers with multipliers so large that C leaves their shifts undefined: TFLite's result depends on the processor.

A multiplier is M * 2^(shift - 31). From 2^31 on (2^15 with a 64-bit accumulator) TFLite shifts by more than the width
of the type, or by a negative count. tflq computes TFLite's result on x86-64 (docs/rules/tflite/index.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass

import numpy as np

from tflq.errors import TflqError
from tflq.graph import ABSENT, Affine, Graph, Model
from tflq.interpreter.execution.control import CONTROL
from tflq.interpreter.execution.settle import lower_node, settle
from tflq.interpreter.kernels.tflite.rescale import Rounding, Rule
from tflq.interpreter.registry import arithmetic_of, kernel, kernel_name

_SUSPICIOUS = 2.0**10
"""Layers with all ratios of scales below this limit have no such multiplier and are not lowered."""


@dataclass(frozen=True)
class WideMultiplier:
    """One layer.

    Attributes:
        graph: number of the graph.
        index: Index of the node.
        operator: Operator of the node.
        name: Name of the node.
        exponent: the largest multiplier is below 2^exponent and at least half of that.
    """

    graph: int
    index: int
    operator: str
    name: str
    exponent: int

    def __str__(self) -> str:
        """Return it as one line."""
        return (
            f"graph {self.graph}, operator {self.index} ({self.operator} '{self.name}'): a multiplier of about "
            f"2^{self.exponent} shifts further than C defines: TFLite's result depends on the processor, tflq's is "
            f"that of x86-64"
        )


def wide_multipliers(model: Model) -> tuple[WideMultiplier, ...]:
    """Return the layers of a model, as TFLite runs it, with such multipliers."""
    return tuple(layer for number, graph in enumerate(model.graphs) for layer in _of_graph(number, graph))


def _of_graph(number: int, stated: Graph) -> Iterator[WideMultiplier]:
    if not any(_is_suspicious(stated, index) for index in range(len(stated.nodes))):
        return
    try:
        graph = settle(stated).graph
    except TflqError:  # it does not run at all
        return
    for index, node in enumerate(graph.nodes):
        if node.operator in CONTROL or not _is_suspicious(graph, index):
            continue
        name = arithmetic_of(node, graph.operands(index), "tflite")
        try:
            params = lower_node(graph, index, name, kernel(name, kernel_name(node))).params
        except TflqError:
            continue
        exponent = max(_exponents(params), default=0)
        if exponent:
            yield WideMultiplier(number, index, node.operator, node.name, exponent)


def _is_suspicious(graph: Graph, index: int) -> bool:
    """Whether the product of the inputs' scales, or of one and the slope, is far above the output's scale."""
    node = graph.nodes[index]
    above = max(1.0, abs(node.attributes.real("alpha", 1.0)))
    for t in node.inputs:
        affine = None if t == ABSENT else graph.tensors[t].quantization
        if isinstance(affine, Affine) and affine.scale.size and not graph.tensors[t].dtype.bits > 16:
            above *= float(affine.scale.max())
    scales = [graph.tensors[t].quantization for t in node.outputs]
    below = min((float(a.scale.min()) for a in scales if isinstance(a, Affine) and a.scale.size), default=1.0)
    return not above < _SUSPICIOUS * below


def _exponents(part: object) -> Iterator[int]:
    """Yield the shifts that C does not define, over all multipliers among the params of a kernel."""
    if isinstance(part, tuple):
        for item in part:
            yield from _exponents(item)
    if not is_dataclass(part) or isinstance(part, type):
        return
    if isinstance(part, Rule) and part.rounding is Rounding.REAL:  # its multiplier is not used
        return
    defined = 15 if isinstance(part, Rule) and part.rounding is Rounding.SINGLE_64 else 31
    for field in fields(part):
        value: object = getattr(part, field.name)
        if field.name.endswith(("shift", "shifts")):
            yield from (int(s) for s in np.ravel(np.asarray(value, np.int64)) if s > defined)
        else:
            yield from _exponents(value)
