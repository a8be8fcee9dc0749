"""Ranges that neighbors share, before they become types (docs/rules/tpu_mlir.md#ranges-that-are-unified-first).

In the symmetric mode a range is (-threshold, threshold), or (0, threshold) where the minimum is not negative. In the
asymmetric mode it is (minimum, maximum), but for products and differences of two activations and for absolute values,
which TPU-MLIR treats as in the symmetric mode. "Alone" is a tensor that one layer reads, once, and that is no output.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import numpy as np

from tflq.converters.tpu_mlir.passes.forms import COMPARISONS, Form, form_of, is_constant_first, is_pool, scalar_of
from tflq.converters.tpu_mlir.passes.moves import Moves
from tflq.converters.tpu_mlir.tables import CalibrationLine
from tflq.graph import ABSENT, Graph, Node
from tflq.graph.operators import Trait, with_traits
from tflq.graph.rewriting import GraphEditor
from tflq.schemas.tpu_mlir import operators_of

SIGN_SHARE = -0.1
"""What a minimum becomes, as a share of the maximum, where an operator keeps the sign of its input."""

LEAST_MINIMUM = -1e-5
"""What the minimum of a difference of two tensors becomes if it is not negative."""

ALL = ()
"""Operators of a step that checks its nodes."""
FIXED = operators_of("fixed_outputs", "operators")
"""Operators that always write uint8 with S = 1/255."""
RESHAPES = operators_of("ranges", "reshapes")
POOLS = operators_of("ranges", "sign_kept")
CHOICES = with_traits(Trait.CHOICE)
JOINED = operators_of("ranges", "joined")
FROM_OUTPUT = operators_of("ranges", "from_output")
KEEPS_MINIMUM = operators_of("ranges", "keeps_minimum")
FROM_INPUT = operators_of("ranges", "from_input")


class Span(NamedTuple):
    """A range."""

    minimum: float
    maximum: float

    @property
    def is_unsigned(self) -> bool:
        """Whether it becomes uint8; -0 counts as 0."""
        return self.minimum >= 0

    @property
    def magnitude(self) -> float:
        """The larger of |minimum| and |maximum|."""
        return max(abs(self.minimum), abs(self.maximum))


Spans = dict[int, Span]


def spans_of(graph: Graph, lines: Mapping[int, CalibrationLine], asymmetric: bool, moves: Moves) -> Spans:
    """Return the range of each tensor that has a line, after unification; moves as `moves_of` has them."""
    found = _Unification(graph, lines, asymmetric, moves)
    for step, operators in (
        (found.reshape, RESHAPES),
        (found.keep_sign, ALL),
        (found.product, ("mul",)),
        (found.difference, ("sub",)),
        (found.shift, ("add", "sub")),
        (found.join, JOINED),
        (found.take_output, ALL),
        (found.sum_of_products, ("add",)),
        (found.compare, COMPARISONS),
        (found.choose, CHOICES),
        (found.take_input, ALL),
        (found.keep_sign, ALL),
        (found.shift, ("add", "sub")),
        (found.choose, CHOICES),
    ):
        found.repeat(step, operators)
    return found.spans


def own_spans(graph: Graph, lines: Mapping[int, CalibrationLine], asymmetric: bool) -> Spans:
    """Return the ranges as TPU-MLIR reads them from the table, before it unifies them."""
    by_threshold = {n.outputs[0] for n in graph.nodes if not asymmetric or _is_by_threshold(graph, n)}
    if not asymmetric:
        by_threshold |= set(graph.inputs)
    fixed = {n.outputs[0] for n in graph.nodes if n.operator in FIXED}
    spans = {}
    for t, line in lines.items():
        if t in fixed:
            spans[t] = Span(0.0, 1.0)
        elif t not in by_threshold:
            spans[t] = Span(line.minimum, line.maximum)
        else:
            spans[t] = Span(0.0 if line.minimum >= 0 else -line.threshold, line.threshold)
    return spans


def _is_by_threshold(graph: Graph, node: Node) -> bool:
    if node.operator == "mul":
        return form_of(graph, node) in (Form.TWO, Form.FULL)
    return node.operator == "abs" or (node.operator == "sub" and form_of(graph, node) is not Form.SCALAR)


class _Unification:
    """The steps, each for one node."""

    def __init__(self, graph: Graph, lines: Mapping[int, CalibrationLine], asymmetric: bool, moves: Moves) -> None:
        self.graph = graph
        self._moves = moves
        self.spans = own_spans(graph, lines, asymmetric)
        self._readers = graph.consumers()
        self._writers = graph.producers()

    def repeat(self, step: Callable[[Node], None], operators: Collection[str]) -> None:
        """Take a step for all nodes of some operators, the last one first, until no range changes.

        The order matters if one CONCATENATION reads another: the last one sets the ranges first.
        """
        nodes = [node for node in reversed(self.graph.nodes) if operators == ALL or node.operator in operators]
        for _ in nodes:
            before = dict(self.spans)
            for node in nodes:
                step(node)
            if self.spans == before:
                return

    def _set(self, t: int, span: Span) -> None:
        if t in self.spans:
            self.spans[t] = span

    def _take_back(self, t: int, span: Span) -> None:
        """As `_set`, also for what TPU-MLIR's one layer in front moves, whoever reads that."""
        writer = self._writers.get(t)
        for moved in (t, *self._moves.get(t, ())):
            self._set(moved, span)
        if writer is not None and self.graph.nodes[writer].operator == "depth_to_space":
            self._set(self._data(self.graph.nodes[writer]), span)

    def _give(self, t: int, span: Span | None) -> None:
        """As `_set`, also for tensors without a line."""
        if span is not None:
            self.spans[t] = span

    def _alone(self, t: int, ignored: str = "") -> bool:
        readers = [i for i in self._readers.get(t, ()) if self.graph.nodes[i].operator != ignored]
        uses = sum(self.graph.nodes[i].inputs.count(t) for i in dict.fromkeys(readers))
        return uses == 1 and t not in self.graph.outputs

    def _computed(self, node: Node) -> list[int]:
        return [t for t in node.inputs if t >= 0 and not self.graph.tensors[t].is_constant]

    def _data(self, node: Node) -> int:
        found = self._computed(node)
        return found[0] if found else ABSENT

    def reshape(self, node: Node) -> None:
        """Step 1: what is reshaped or permuted has the range of the input."""
        self._give(node.outputs[0], self.spans.get(self._data(node)))

    def keep_sign(self, node: Node) -> None:
        """Steps 2 and 11: pools and absolute values have the sign of their input."""
        x, y = self.spans.get(self._data(node)), self.spans.get(node.outputs[0])
        if not (node.operator in POOLS or is_pool(self.graph, node)) or x is None or y is None:
            return
        if not x.is_unsigned and y.is_unsigned:
            # an absolute value is made signed before it counts as symmetric, a pool after that
            self._set(node.outputs[0], Span(-y.maximum, y.maximum) if node.operator == "abs" else _signed(y))
        elif x.is_unsigned and not y.is_unsigned:
            self._set(node.outputs[0], Span(0.0, y.maximum))

    def product(self, node: Node) -> None:
        """Step 3: a product of two signed tensors is signed."""
        spans = [self.spans.get(t) for t in self._computed(node)]
        y = self.spans.get(node.outputs[0])
        if form_of(self.graph, node) is not Form.TWO or y is None or not y.is_unsigned:
            return
        if all(x is not None and not x.is_unsigned for x in spans):
            self._set(node.outputs[0], _signed(y))

    def difference(self, node: Node) -> None:
        """Step 4: x - y is signed."""
        y = self.spans.get(node.outputs[0])
        if y is not None and y.is_unsigned and form_of(self.graph, node) is not Form.SCALAR:
            self._set(node.outputs[0], Span(LEAST_MINIMUM, y.maximum))

    def shift(self, node: Node) -> None:
        """Steps 4 and 11: c - x, and the sum of x and a negative number, are signed if x is unsigned."""
        x, y = self.spans.get(self._data(node)), self.spans.get(node.outputs[0])
        if x is None or y is None or not (x.is_unsigned and y.is_unsigned):
            return
        if form_of(self.graph, node) is Form.SCALAR and self._lowers(node):
            self._set(node.outputs[0], _signed(y))

    def _lowers(self, node: Node) -> bool:
        """Return True for c - x, and for the sum of x and a negative number."""
        if node.operator == "sub":
            return is_constant_first(self.graph, node) or scalar_of(self.graph, node) > 0
        return scalar_of(self.graph, node) < 0

    def join(self, node: Node) -> None:
        """Step 5: what is joined, and maxima and minima of two, have one range."""
        inputs, t = self._computed(node), node.outputs[0]
        if len(inputs) < len(node.inputs) or t not in self.spans:
            return
        if not all(x in self.spans for x in inputs):
            return
        found = [self.spans[x] for x in inputs]
        first, *others = inputs
        if others == [first] and len(set(self._readers[first])) == 1:
            if first not in self.graph.outputs:  # joined to itself counts as alone
                self._set(t, self.spans[first])
        elif not all(self._alone(x, "max_pool_2d") for x in inputs):
            return
        elif len(set(found)) == 1 and len(inputs) > 1:
            self._set(t, found[0])
        elif node.operator != "concatenation" or len({s.is_unsigned for s in (*found, self.spans[t])}) == 1:
            for x in inputs:
                self._take_back(x, self.spans[t])

    def take_output(self, node: Node) -> None:
        """Step 6: the only input of a rectifier, a maximum over windows and the like has the output's range."""
        if not (node.operator in (*FROM_OUTPUT, *KEEPS_MINIMUM) or _is_maximum(self.graph, node)):
            return
        x, y = self._data(node), self.spans.get(node.outputs[0])
        if y is not None and x in self.spans and self._alone(x):
            keeps = node.operator in KEEPS_MINIMUM
            self._take_back(x, Span(self.spans[x].minimum, y.maximum) if keeps else y)

    def sum_of_products(self, node: Node) -> None:
        """Step 7: two products that are added, each alone, have the range of the sum."""
        inputs, y = self._computed(node), self.spans.get(node.outputs[0])
        if len(inputs) != 2 or y is None:
            return
        if all(self._alone(x) and self._is_product(x) for x in inputs):
            for x in inputs:
                self._set(x, y)

    def compare(self, node: Node) -> None:
        """Step 8: two tensors that are compared have the range of both."""
        inputs = self._computed(node)
        if len(inputs) != 2 or not all(x in self.spans for x in inputs):
            return
        low, high = (choose(self.spans[x][i] for x in inputs) for i, choose in enumerate((min, max)))
        for x in inputs:
            self._set(x, Span(low, high))

    def choose(self, node: Node) -> None:
        """Steps 9 and 12: both branches of a choice have the range of its result, whoever reads them."""
        y = self.spans.get(node.outputs[0])
        if y is not None:
            for t in node.inputs[1:]:
                self._set(t, y)

    def take_input(self, node: Node) -> None:
        """Step 9: what does not change values has the range of the input; times a number, the range times it."""
        x, t = self.spans.get(self._data(node)), node.outputs[0]
        if node.operator in ("mul", "div", "neg"):
            factor = factor_of(self.graph, node)
            if factor is not None and x is not None:
                self._give(t, _times(x, factor))
        elif node.operator in ("maximum", "minimum") and form_of(self.graph, node) is Form.SCALAR:
            self._give(t, x)
        elif node.operator in FROM_INPUT or _is_maximum(self.graph, node) or is_upsampled(self.graph, node):
            for output in node.outputs:
                self._give(output, x)
        elif node.operator == "gather" and is_one_index(self.graph, node):
            self._give(t, x)

    def _is_product(self, t: int) -> bool:
        writer = self._writers.get(t)
        node = None if writer is None else self.graph.nodes[writer]
        return node is not None and node.operator == "mul" and form_of(self.graph, node) is Form.TWO


def factor_of(graph: Graph, node: Node) -> float | None:
    """Return the number that a layer multiplies by: Mul, Div by one number, Neg; None where it does something else."""
    if node.operator == "neg":
        return -1.0
    if node.operator not in ("mul", "div") or form_of(graph, node) is not Form.SCALAR:
        return None
    number = scalar_of(graph, node)
    if node.operator == "mul":
        return number
    return None if is_constant_first(graph, node) or number == 0 else 1.0 / number


def _signed(span: Span) -> Span:
    """The minimum is cut to float32: of a maximum 13.6007624 it is -1.3600761890411377, S (13.6007624 + that) / 255."""
    return Span(float(np.float32(SIGN_SHARE * span.maximum)), span.maximum)


def _times(span: Span, factor: float) -> Span:
    low, high = span.minimum * factor, span.maximum * factor
    return Span(min(low, high), max(low, high))


def _is_maximum(graph: Graph, node: Node) -> bool:
    return node.operator == "reduce_max" and is_pool(graph, node)


def is_one_index(graph: Graph, node: Node) -> bool:
    """Whether a gather takes one constant index: a Slice and a Squeeze in TPU-MLIR."""
    index = graph.tensors[node.inputs[1]]
    return index.is_constant and index.size == 1


def is_upsampled(graph: Graph | GraphEditor, node: Node) -> bool:
    """Whether every pixel is doubled along both axes: TPU-MLIR's Upsample."""
    if node.operator != "resize_nearest_neighbor":
        return False
    x, y = (graph.tensors[t].shape for t in (node.inputs[0], node.outputs[0]))
    return y[1:3] == (2 * x[1], 2 * x[2]) and not node.attributes.boolean("align_corners", False)
