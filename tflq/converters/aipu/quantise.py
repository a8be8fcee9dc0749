"""From a float graph of Compass's layers, with ranges, to the quantised one (docs/aipu.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tflq.converters.aipu.constants import quantised_constants
from tflq.converters.aipu.hidden import UNSIGNED
from tflq.converters.aipu.layers import ARITHMETIC, RULES, Signs
from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.origin import Origin
from tflq.converters.aipu.outputs import code_type, fixed_types
from tflq.converters.aipu.own_keys import own_keys
from tflq.converters.aipu.ranges import range_of, type_of_range
from tflq.converters.aipu.rewrites import MERGED, rewrite
from tflq.converters.aipu.softmax_methods import with_softmax_methods
from tflq.converters.aipu.special import is_truth, passes, quantise_constant, whole_type
from tflq.converters.aipu.unify import with_unified_branches
from tflq.converters.aipu.weights import quantise_biases, quantise_weights
from tflq.converters.aipu.whitepaper import paper_types
from tflq.errors import UnsupportedError
from tflq.graph import Attributes, Graph, Node, Tensor, validate
from tflq.interpreter.kernels.aipu.scales import affine_of, bits_of, is_plain
from tflq.interpreter.kernels.aipu.softmax_fast import FAST_EXP, METHOD
from tflq.interpreter.kernels.aipu.whitepaper import NAME as WHITEPAPER
from tflq.interpreter.kernels.aipu.whitepaper import covers

_DEPTHWISE = "depthwise_conv"
_NORMALISATION = "batch_norm"
_NORMALISATION_BITS = 16
HIDDEN_BITS = 16


@dataclass
class _Quantiser:
    graph: Graph
    options: Mapping[str, LayerOptions]
    whole: LayerOptions

    def run(self) -> Graph:
        for t in self.graph.inputs:
            self.graph.tensors[t] = _input(self.graph.tensors[t], self.whole)
        for index, node in enumerate(self.graph.nodes):
            for t in node.intermediates or ():
                self.graph.tensors[t] = _hidden(self.graph.tensors[t], node.operator not in UNSIGNED, self._of(node))
            self._outputs(index, node)
            if RULES[node.operator].is_linear:
                self._constants(node)
            for key, constant in quantised_constants(node, self.graph.operands(index), self._of(node)).items():
                self.graph.tensors[self._place(node, key)] = constant
            attributes = Attributes({**node.attributes, **own_keys(node, self._of(node))})
            self.graph.nodes[index] = replace(node, arithmetic=self._arithmetic(node), attributes=attributes)
        validate(self.graph, "aipu graph")
        return self.graph

    def _of(self, node: Node) -> LayerOptions:
        return self.options.get(node.name, self.whole)

    def _arithmetic(self, node: Node) -> str:
        return WHITEPAPER if self._of(node).by_whitepaper and covers(node) else ARITHMETIC

    def _outputs(self, index: int, node: Node) -> None:
        rule, asked, tensors = RULES[node.operator], self._of(node), self.graph.tensors
        types = paper_types(node, self.graph.operands(index), asked)
        if types is not None or rule.signs is Signs.FIXED:
            types = types or fixed_types(node, self.graph.operands(index), asked)
            for t, (dtype, quantisation) in zip(node.outputs, types, strict=True):
                tensors[t] = replace(tensors[t], dtype=dtype, quantisation=quantisation)
            return
        for t in node.outputs:
            if node.operator == "constant":
                tensors[t], tensors[node.inputs[0]] = quantise_constant(tensors[t], tensors[node.inputs[0]], asked)
            elif is_truth(node):
                affine = affine_of(np.float32(1), 0, 8, False)
                tensors[t] = replace(tensors[t], dtype=code_type(affine), quantisation=affine)
            elif rule.signs is Signs.PASS or passes(node) or node.outputs.index(t) in rule.passed:
                source = tensors[node.inputs[0]]
                tensors[t] = replace(tensors[t], dtype=source.dtype, quantisation=source.quantisation)
            else:
                tensors[t] = self._ranged(index, tensors[t])

    def _ranged(self, index: int, tensor: Tensor) -> Tensor:
        node = self.graph.nodes[index]
        rule = RULES[node.operator]
        signed = rule.signed(node, self.graph.operands(index))
        read = [self.graph.tensors[t] for t in node.inputs]
        if rule.keeps_whole and all(is_plain(t) for t in read):
            affine = whole_type(tensor, read, signed)
            return replace(tensor, dtype=code_type(affine), quantisation=affine)
        asked = self._of(node)
        if node.operator == "concat":
            if all((t.dtype, t.quantisation) == (read[0].dtype, read[0].quantisation) for t in read):
                return replace(tensor, dtype=read[0].dtype, quantisation=read[0].quantisation)
            asked = replace(asked, activation_bits=max(bits_of(t) for t in read))
        if node.attributes.text(METHOD, "") == FAST_EXP:
            asked = replace(asked, is_symmetric=True)
        return _typed(tensor, signed, asked)

    def _place(self, node: Node, key: str) -> int:
        tensors = self.graph.tensors
        found = [t for t in node.inputs if tensors[t].is_constant and tensors[t].name.endswith(f"/{key}")]
        if not found:
            raise UnsupportedError(f"layer '{node.name}': {key} must be a constant of the layer")
        return found[0]

    def _constants(self, node: Node) -> None:
        tensors, asked = self.graph.tensors, self._of(node)
        places = {key: self._place(node, key) for key in ("weights", "biases")}
        x, y, w, b = (tensors[t] for t in (node.inputs[0], node.outputs[0], places["weights"], places["biases"]))
        groups = node.attributes.integer("group", 1)
        if asked.per_channel or node.operator == _DEPTHWISE:
            groups = w.shape[0]
        if node.operator == _NORMALISATION and not node.attributes.boolean(MERGED, False):
            asked = replace(asked, weight_bits=max(asked.weight_bits, _NORMALISATION_BITS))
        weights = quantise_weights(w, x, y, asked, groups if groups > 1 else 0)
        tensors[places["weights"]] = weights
        tensors[places["biases"]] = quantise_biases(b, weights, x, asked)


def quantise_layers(graph: Graph, options: Mapping[str, LayerOptions], whole: LayerOptions) -> Graph:
    """Return the quantised graph of Compass's layers.

    Args:
        graph: float, with ranges; of `ingest.graph_of` or `translate`.
        options: name of a layer -> what was asked of it.
        whole: for the rest, and for inputs.

    Raises:
        UnsupportedError: tensors without a range, all at once; ratios of scales without multiplier.
    """
    every = {**dict.fromkeys((n.name for n in graph.nodes), whole), **options}
    rewritten = with_softmax_methods(rewrite(graph), every)
    _refuse_missing_ranges(rewritten)
    quantised = _Quantiser(rewritten, options, whole).run()
    unified = with_unified_branches(rewritten, quantised, {name for name, o in every.items() if o.unify_concat})
    if unified is not rewritten:
        quantised = _Quantiser(unified, options, whole).run()
    assert isinstance(graph.extra, Origin)
    quantised.extra = replace(graph.extra, floats=graph)
    return quantised


def _input(tensor: Tensor, asked: LayerOptions) -> Tensor:
    if tensor.dtype.is_integer:
        return tensor
    return _typed(tensor, range_of(tensor)[0] < 0, asked)


def _typed(tensor: Tensor, signed: bool, asked: LayerOptions) -> Tensor:
    low, high = range_of(tensor)
    affine = type_of_range(low, high, asked.activation_bits, signed, asked.is_symmetric, asked.restricted)
    return replace(tensor, dtype=code_type(affine), quantisation=affine)


def _hidden(tensor: Tensor, signed: bool, asked: LayerOptions) -> Tensor:
    """Type what a layer computes within itself: symmetric, restricted, at least 16 bits."""
    low, high = range_of(tensor)
    affine = type_of_range(low, high, max(HIDDEN_BITS, asked.activation_bits), signed, True, restricted=True)
    return replace(tensor, dtype=code_type(affine), quantisation=affine)


def _needs_range(node: Node) -> bool:
    rule = RULES[node.operator]
    own = rule.signs is Signs.OWN and node.operator != "constant"
    return rule.needs_range or (own and not passes(node) and not is_truth(node))


def _refuse_missing_ranges(graph: Graph) -> None:
    needed = [t for t in graph.inputs if not graph.tensors[t].dtype.is_integer]
    needed += [t for node in graph.nodes if _needs_range(node) for t in node.outputs]
    needed += [t for node in graph.nodes for t in node.intermediates or ()]
    missing = [f"'{graph.tensors[t].name}'" for t in needed if graph.tensors[t].range is None]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise UnsupportedError(
            f"{len(missing)} tensors have no range: {', '.join(missing[:3])}{more}; calibrate the model or give a "
            f"quantised one"
        )
