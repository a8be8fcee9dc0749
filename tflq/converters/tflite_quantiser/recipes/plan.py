"""Which params each operand of a node has by a recipe: what it writes, and what each reader wants.

Nodes are asked in order; one whose outputs share the quantisation of its input hands the range on to those behind it.
Source: ai-edge-quantizer 0.10 (Apache-2.0), params_generator.py and algorithms/utils/common_utils.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tflq.converters.passes.requirements import refuse_missing_ranges
from tflq.converters.tflite_quantiser.choose_kinds import PLAIN
from tflq.converters.tflite_quantiser.recipes.columns import HESSIAN, MOMENTS, Statistics, scaled, spread
from tflq.converters.tflite_quantiser.recipes.params import (
    Bounds,
    Params,
    bias,
    bounds_of_codes,
    from_bounds,
    grown,
    quantised,
    rotated,
    weights_of,
)
from tflq.converters.tflite_quantiser.recipes.policy import (
    AS_INPUT,
    AS_OUTPUT,
    BIAS,
    FIXED,
    WEIGHT_AXIS,
    operation_of,
    why_not,
)
from tflq.converters.tflite_quantiser.recipes.rules import (
    FLOAT_CASTING,
    GPTQ,
    HADAMARD,
    NO_QUANTIZE,
    OSCAR,
    Config,
    Rule,
    Widths,
    matching,
    scope_of,
)
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, DType, Graph, Node

_NONE = Rule("", "", NO_QUANTIZE)
LARGER = "scales of weights grown, since the bias needs more than 32 bits; ai-edge-quantizer lets it overflow"


@dataclass(frozen=True)
class Choice:
    """The rule that counts for a node.

    Attributes:
        rule: of the algorithm NO_QUANTIZE where the node stays as it is.
        reason: why the rules that match were passed by; empty where none was.
    """

    rule: Rule
    reason: str = ""

    @property
    def kind(self) -> str:
        """The target's word: int8, int16x8, hybrid, weights, float, or PLAIN without real numbers."""
        if self.rule.operation == PLAIN:
            return PLAIN
        return "float" if self.rule.algorithm == NO_QUANTIZE else self.rule.config.kind


def choose(rules: Sequence[Rule], operation: str, names: Iterable[str]) -> Choice:
    """Return the last rule for an operator whose written tensors have these names that TFLite has a kernel for."""
    chosen, reason = _NONE, ""
    for rule in matching(rules, operation, scope_of(names)):
        found = "" if rule.algorithm == NO_QUANTIZE else why_not(rule.algorithm, operation, rule.config)
        chosen, reason = (chosen, found) if found else (rule, "")
    return Choice(chosen, "" if chosen is not _NONE else reason)


@dataclass(frozen=True)
class Operands:
    """What a node asks for.

    Attributes:
        inputs: position -> params; a position that is not there is read as float32 or as it is.
        outputs: the same of what it writes.
        note: what the package would write otherwise; empty for nearly all.
    """

    inputs: dict[int, Params] = field(default_factory=dict)
    outputs: dict[int, Params] = field(default_factory=dict)
    note: str = ""


@dataclass
class Plan:
    """Asks the nodes of a float network in order.

    Attributes:
        graph: the network; activations have ranges where a rule needs them.
        statistics: of the activations that GPTQ's and OSCAR's layers read.
    """

    graph: Graph
    statistics: Mapping[int, Statistics] = field(default_factory=dict)
    _ranges: dict[int, Bounds] = field(init=False)
    _missing: dict[str, None] = field(default_factory=dict)
    _asked: int = 0

    def __post_init__(self) -> None:
        self._ranges = {}
        for t, tensor in enumerate(self.graph.tensors):
            if tensor.range is not None and tensor.data is None:
                shape = (1,) * len(tensor.shape)
                ends = (tensor.range.minimum.min(), tensor.range.maximum.max())
                low, high = (np.asarray(end, np.float32).reshape(shape) for end in ends)
                self._ranges[t] = low, high

    def require_ranges(self) -> None:
        """Refuse the graph where an activation was asked for that has no range.

        Raises:
            UnsupportedError: all of them at once.
        """
        way_out = "calibrate the model on samples (--calibrate) or give a file of ranges (--ranges)"
        refuse_missing_ranges(list(self._missing), self._asked, way_out)

    def border(self, tensors: Sequence[int], choice: Choice) -> dict[int, Params]:
        """Return the params of the graph's inputs or outputs: tensor -> params."""
        widths = choice.rule.config.activations
        if choice.rule.algorithm == NO_QUANTIZE or widths is None:
            return {}
        return {t: self._activation(t, widths) for t in tensors if self.graph.tensors[t].dtype is DType.FLOAT32}

    def node(self, node: Node, choice: Choice) -> Operands:
        """Return the params of a node's operands.

        Raises:
            UnsupportedError: constants that its algorithm does not take.
        """
        rule, config = choice.rule, choice.rule.config
        if rule.algorithm == NO_QUANTIZE:
            return Operands()
        operation = operation_of(node.operator)
        reals = self._reals(node, operation, config)
        outputs = [p for p, t in enumerate(node.outputs) if self.graph.tensors[t].dtype is DType.FLOAT32]
        if config.activations is None:
            constants = (p for p in reals if self._value(node, p) is not None)
            return Operands({p: self._constant(node, p, rule) for p in constants})
        if operation in AS_INPUT:
            return self._as_input(node, rule, reals, outputs)
        if operation in AS_OUTPUT:
            return self._as_output(node, rule, reals, outputs)
        found = Operands({p: self._operand(node, p, rule) for p in reals})
        for p in outputs:
            found.outputs[p] = self._written(node.outputs[p], operation, config.activations)
        return self._with_bias(node, operation, found)

    def _reals(self, node: Node, operation: str, config: Config) -> list[int]:
        """Return the positions of float32 inputs but for a bias, and for weights that are too few."""
        skipped = {BIAS.get(operation, -1)}
        if operation in BIAS:
            values = self._value(node, 1)
            if values is not None and values.size < config.least_elements:
                skipped.add(1)
        here = ((p, t) for p, t in enumerate(node.inputs) if t != ABSENT and p not in skipped)
        return [p for p, t in here if self.graph.tensors[t].dtype is DType.FLOAT32]

    def _value(self, node: Node, position: int) -> NDArray[np.float32] | None:
        t = node.inputs[position]
        found = None if t == ABSENT else self.graph.tensors[t].data
        return None if found is None else np.asarray(found, np.float32)

    def _as_input(self, node: Node, rule: Rule, reals: list[int], outputs: list[int]) -> Operands:
        if not reals:
            return Operands()
        first = self._operand(node, reals[0], rule)
        bounds = self._ranges.get(node.inputs[reals[0]])
        if bounds is None:
            bounds = bounds_of_codes(first)
        for p in outputs:
            self._ranges[node.outputs[p]] = bounds
        return Operands({reals[0]: first}, dict.fromkeys(outputs, replace(first, data=None)))

    def _as_output(self, node: Node, rule: Rule, reals: list[int], outputs: list[int]) -> Operands:
        if not outputs:
            return Operands()
        widths = rule.config.activations
        assert widths is not None
        found = self._activation(node.outputs[outputs[0]], widths)
        inputs = {}
        for p in reals:
            values = self._value(node, p)
            inputs[p] = found if values is None else quantised(values, found)
        return Operands(inputs, {outputs[0]: found})

    def _written(self, t: int, operation: str, widths: Widths) -> Params:
        if operation not in FIXED:
            return self._activation(t, widths)
        scale, zero_point = FIXED[operation][widths.bits]
        found = Params(np.asarray(scale), np.asarray(zero_point), Widths(widths.bits, widths.bits == 16))
        self._ranges[t] = bounds_of_codes(found)
        return found

    def _operand(self, node: Node, position: int, rule: Rule) -> Params:
        if self._value(node, position) is not None:
            return self._constant(node, position, rule)
        assert rule.config.activations is not None
        return self._activation(node.inputs[position], rule.config.activations)

    def _activation(self, t: int, widths: Widths) -> Params:
        self._asked += 1
        if t not in self._ranges:
            self._missing[self.graph.tensors[t].name] = None
            return from_bounds((np.zeros((), np.float32), np.ones((), np.float32)), widths)
        bounds = self._ranges[t]
        if not np.isfinite(bounds).all():
            raise UnsupportedError(f"tensor '{self.graph.tensors[t].name}' has a range that is not finite")
        return from_bounds(bounds, widths)

    def _constant(self, node: Node, position: int, rule: Rule) -> Params:
        """Return weights of operators that have some; other constants are quantised as activations are."""
        values, operation, config = self._value(node, position), operation_of(node.operator), rule.config
        assert values is not None
        name = self.graph.tensors[node.inputs[position]].name
        if not np.isfinite(values).all():
            raise UnsupportedError(f"constant '{name}' holds NaN or infinity; its values must be finite")
        axis = WEIGHT_AXIS.get(operation)
        if operation == "BATCH_MATMUL":
            axis = values.ndim - (2 if node.attributes.boolean("adj_y", False) else 1)
        widths = config.weights if operation in WEIGHT_AXIS else config.activations
        assert widths is not None
        if rule.algorithm == FLOAT_CASTING:
            with np.errstate(over="ignore"):  # infinity, where TFLiteConverter cuts
                return Params(np.zeros(0), np.zeros(0, np.int64), widths, data=values.astype(np.float16))
        try:
            if rule.algorithm == HADAMARD:
                return rotated(values, widths, axis)
            if rule.algorithm in (GPTQ, OSCAR):
                return self._fitted(node, values, widths, axis, rule.algorithm)
            return weights_of(values, widths, axis, rule.algorithm)
        except UnsupportedError as error:
            raise UnsupportedError(f"constant '{name}' of {node.name}: {error}") from None

    def _fitted(
        self, node: Node, values: NDArray[np.float32], widths: Widths, axis: int | None, algorithm: str
    ) -> Params:
        known = self.statistics.get(node.inputs[0], {})
        if algorithm == OSCAR:
            return scaled(values, widths, known.get(MOMENTS))
        if HESSIAN not in known:
            raise UnsupportedError(
                "GPTQ needs samples (--calibrate), or a calibration that ai-edge-quantizer saved (--ranges)"
            )
        return spread(values, widths, axis, known[HESSIAN])

    def _with_bias(self, node: Node, operation: str, found: Operands) -> Operands:
        position = BIAS.get(operation)
        if position is None or position >= len(node.inputs) or node.inputs[position] == ABSENT:
            return found
        values, name = self._value(node, position), self.graph.tensors[node.inputs[position]].name
        source = 2 if operation == "CONV_2D_TRANSPOSE" else 0
        if values is None or 1 not in found.inputs or source not in found.inputs:
            raise UnsupportedError(f"{node.name}: bias '{name}' needs a constant, quantised weights and input")
        weights, reals = found.inputs[1], self._value(node, 1)
        larger = None if reals is None else grown(reals, values, found.inputs[source], weights)
        found.inputs[1] = weights if larger is None else larger
        found.inputs[position] = bias(values, found.inputs[source], found.inputs[1])
        return replace(found, note="" if larger is None else LARGER)
