"""From a float graph of Compass's layers, with ranges, to the quantized one (docs/targets/aipu.md).

Which Softmax is made of a table and which of powers of two (docs/rules/aipu/operators.md).

Source: Compass Optimizer, passes/tune_op_extra_params_s1.py, for targets below X3.

One scale for all branches of a Concat (docs/targets/aipu.md#tuning-accuracy).
Source: whitepaper ACN-AWP-1002A, 4.12; Compass Optimizer, unify_scales_for_multi_inputs_operator.py, method "out".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tflq.converters.aipu.descriptor import ARITHMETIC, Layer, OutputType, by_range, code_type, like, says, typed
from tflq.converters.aipu.operators import LAYERS
from tflq.converters.aipu.options import AUTO, CHANNEL_WISE, LUT, TABLE_BITS, LayerOptions
from tflq.converters.aipu.origin import Origin
from tflq.converters.aipu.ranges import range_of, type_of_range, with_clipped_ranges, with_function_ranges
from tflq.converters.aipu.rewrites import MERGED, rewrite
from tflq.converters.aipu.weights import quantize_biases, quantize_weights
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Attributes, Graph, Node, Range, Tensor, validate
from tflq.graph.attributes import Attribute
from tflq.interpreter.kernels.aipu.float_sums import FLOAT_LIBRARY, FLOAT_SUMS
from tflq.interpreter.kernels.aipu.imported import MULTIPLIER_BITS
from tflq.interpreter.kernels.aipu.linear import REMAIN_SHIFT
from tflq.interpreter.kernels.aipu.scales import affine_of, bits_of, code_limits, is_plain, scale_of
from tflq.interpreter.kernels.aipu.softmax import ADJUST, FAST_EXP, METHOD
from tflq.interpreter.kernels.aipu.whitepaper import NAME as WHITEPAPER
from tflq.interpreter.kernels.aipu.whitepaper.operators import covers


def with_unified_branches(graph: Graph, quantized: Graph, names: Collection[str]) -> Graph:
    """Return the graph with the ranges that give branches the scale of their Concat; the graph itself without any.

    In each branch it is the nearest tensor with a range of its own that changes, found through layers that pass their
    input's type. A Concat whose branches differ in their type, or one of which has no such tensor of as many bits as
    the output, stays as it is. Symmetric activations then need no multiplier; asymmetric ones may still.

    Args:
        graph: float, with ranges.
        quantized: made of it; its nodes stand in the same order.
        names: of the Concat layers.
    """
    result = graph
    for node in graph.nodes:
        if node.operator != "concat" or node.name not in names:
            continue
        output = quantized.tensors[node.outputs[0]]
        owners = [_owner(graph, t) for t in node.inputs]
        found = [quantized.tensors[t] for t in owners if t is not None]
        is_alike = len({quantized.tensors[t].dtype for t in node.inputs}) == 1
        if len(found) < len(owners) or not is_alike or any(bits_of(t) != bits_of(output) for t in found):
            continue
        result = result.copy() if result is graph else result
        for t in owners:
            if t is not None:
                low, high = code_limits(quantized.tensors[t])
                width = np.float32(high - low) / scale_of(output)
                limits = (-width / 2, width / 2) if low < 0 else (np.float32(0), width)
                found_range = Range(*(np.array([limit], np.float32) for limit in limits))
                result.tensors[t] = replace(graph.tensors[t], range=found_range)
    return result


def _owner(graph: Graph, t: int) -> int | None:
    """Return the tensor whose range decides the scale of a tensor; None where no range does."""
    writers = graph.producers()
    while t in writers:
        node = graph.nodes[writers[t]]
        layer = LAYERS[node.operator]
        if layer.signed is not None:
            return t if graph.tensors[t].range is not None else None
        if not layer.passes:
            return None
        t = node.inputs[0]
    return t if t in graph.inputs and graph.tensors[t].range is not None else None


RANKING = ("arg_min_max", "in_top_k", "nms", "sort", "top_k")
"""Layers that need more than powers of two, directly behind a Softmax or further on."""


def with_softmax_methods(graph: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    """Return the graph with the method of each Softmax that uses powers of two; its output then reaches up to 1.

    Left to itself, a Softmax uses its table where nothing reads it, or where a ranking layer follows.
    """
    result = graph.copy()
    for index, node in enumerate(graph.nodes):
        requested = options[node.name]
        if node.operator != "softmax" or requested.softmax == LUT or requested.by_whitepaper:
            continue
        if requested.softmax == AUTO and _needs_table(graph, index):
            continue
        attributes = Attributes({**node.attributes, METHOD: FAST_EXP, ADJUST: requested.adjust_q})
        result.nodes[index] = replace(node, attributes=attributes)
        full = Range(np.zeros(1, np.float32), np.ones(1, np.float32))
        for t in node.outputs:
            result.tensors[t] = replace(graph.tensors[t], range=full)
    return result


def _needs_table(graph: Graph, index: int) -> bool:
    reached, readers = set(graph.nodes[index].outputs), list[Node]()
    for node in graph.nodes[index + 1 :]:
        if reached.intersection(node.inputs):
            reached.update(node.outputs)
            readers.append(node)
    return not readers or any(node.operator in RANKING for node in readers)


_DEPTHWISE = "depthwise_conv"
_NORMALISATION = "batch_norm"
_NORMALISATION_BITS = 16
_FLOAT_SUMS = ("mat_mul", "conv_transpose")
_EXPONENTIALS = ("exp", "softmax")
INTERNAL_BITS = 16


@dataclass
class _Quantizer:
    graph: Graph
    options: Mapping[str, LayerOptions]
    whole: LayerOptions

    @property
    def inputs(self) -> Mapping[str, str]:
        """Name of an input -> name of its Input layer."""
        return self.graph.extra.inputs if isinstance(self.graph.extra, Origin) else {}

    def run(self) -> Graph:
        for t in self.graph.inputs:
            tensor = self.graph.tensors[t]
            self.graph.tensors[t] = _input(tensor, self.options.get(self.inputs.get(tensor.name, ""), self.whole))
        for index, node in enumerate(self.graph.nodes):
            layer, options = LAYERS[node.operator], self._of(node)
            for t in node.intermediates or ():
                signed = layer.internal is None or layer.internal.signed
                self.graph.tensors[t] = _internal(self.graph.tensors[t], signed, options)
            self._outputs(index, node)
            own = layer.requested(node, self.graph.operands(index), options) if layer.requested else {}
            if layer.is_linear:
                self._weights(node)
            if layer.constants is not None:
                for key, constant in layer.constants(node, self.graph.operands(index), options).items():
                    self.graph.tensors[self._place(node, key)] = constant
            attributes = Attributes({**node.attributes, **_requested(node, options), **own})
            self.graph.nodes[index] = replace(node, arithmetic=self._arithmetic(node), attributes=attributes)
        validate(self.graph, "aipu graph")
        return self.graph

    def _of(self, node: Node) -> LayerOptions:
        return self.options.get(node.name, self.whole)

    def _arithmetic(self, node: Node) -> str:
        return WHITEPAPER if self._of(node).by_whitepaper and covers(node) else ARITHMETIC

    def _outputs(self, index: int, node: Node) -> None:
        tensors, layer = self.graph.tensors, LAYERS[node.operator]
        types = self._types(index, node, layer)
        for place, t in enumerate(node.outputs):
            if types is not None:
                dtype, quantization = types[place]
            elif layer.passes or place in layer.passed:
                dtype, quantization = like(tensors[node.inputs[0]])
            else:
                dtype, quantization = self._ranged(index, tensors[t])
            tensors[t] = replace(tensors[t], dtype=dtype, quantization=quantization)

    def _types(self, index: int, node: Node, layer: Layer) -> Sequence[OutputType] | None:
        """Return the types of outputs by a rule of the layer, the whitepaper's first; None where it has none."""
        operands, options = self.graph.operands(index), self._of(node)
        rules = [layer.types]
        if options.by_whitepaper and covers(node):
            rules.insert(0, layer.paper_types)
        found = (rule(node, operands, options) for rule in rules if rule is not None)
        return next((types for types in found if types is not None), None)

    def _ranged(self, index: int, tensor: Tensor) -> OutputType:
        """Return the type of an output by its range; where the layer says so, whole numbers stay whole."""
        node = self.graph.nodes[index]
        layer, read = LAYERS[node.operator], [self.graph.tensors[t] for t in node.inputs]
        assert layer.signed is not None
        signed = layer.signed(node, self.graph.operands(index))
        if layer.keeps_whole and all(is_plain(t) for t in read):
            return typed(_whole_type(tensor, read, signed))
        return by_range(tensor, signed, self._of(node))

    def _place(self, node: Node, key: str) -> int:
        tensors = self.graph.tensors
        found = [t for t in node.inputs if tensors[t].is_constant and tensors[t].name.endswith(f"/{key}")]
        if not found:
            raise UnsupportedError(f"layer '{node.name}': {key} must be a constant of the layer")
        return found[0]

    def _weights(self, node: Node) -> None:
        tensors, options = self.graph.tensors, self._of(node)
        places = {key: self._place(node, key) for key in ("weights", "biases")}
        x, y, w, b = (tensors[t] for t in (node.inputs[0], node.outputs[0], places["weights"], places["biases"]))
        groups = node.attributes.integer("group", 1)
        if options.per_channel or node.operator == _DEPTHWISE:
            groups = w.shape[0]
        if node.operator == _NORMALISATION and not node.attributes.boolean(MERGED, False):
            options = replace(options, weight_bits=max(options.weight_bits, _NORMALISATION_BITS))
        weights = quantize_weights(w, x, y, options, groups if groups > 1 else 0)
        tensors[places["weights"]] = weights
        tensors[places["biases"]] = quantize_biases(b, weights, x, options)


def quantize_layers(graph: Graph, options: Mapping[str, LayerOptions], whole: LayerOptions) -> Graph:
    """Return the quantized graph of Compass's layers.

    Args:
        graph: float, with ranges; of `ingest.graph_of` or `translate`.
        options: name of a layer -> its requested options.
        whole: for the rest, and for inputs.

    Raises:
        UnsupportedError: tensors without a range, all at once; ratios of scales without multiplier.
    """
    every = {**dict.fromkeys((n.name for n in graph.nodes), whole), **options}
    rewritten = with_softmax_methods(with_function_ranges(with_clipped_ranges(rewrite(graph), every), every), every)
    _refuse_missing_ranges(rewritten)
    quantized = _Quantizer(rewritten, options, whole).run()
    unified = with_unified_branches(rewritten, quantized, {name for name, o in every.items() if o.unify_concat})
    if unified is not rewritten:
        quantized = _Quantizer(unified, options, whole).run()
    assert isinstance(graph.extra, Origin)
    quantized.extra = replace(graph.extra, floats=graph)
    return quantized


def _requested(node: Node, options: LayerOptions) -> dict[str, Attribute]:
    """Return the requested options that a kernel reads beside the keys of its layer.

    The multipliers of Concat are as wide as its activations were requested, though its values are as wide as its
    branches.
    """
    keys: dict[str, Attribute] = {TABLE_BITS: options.table_bits}
    layer = LAYERS[node.operator]
    if layer.is_linear and node.operator != _NORMALISATION and options.remain_shift is not None:
        keys[REMAIN_SHIFT] = options.remain_shift
    if layer.is_linear and (options.per_channel or node.operator == _DEPTHWISE):
        keys[CHANNEL_WISE] = True
    if node.operator in _FLOAT_SUMS and options.float_sums:
        keys[FLOAT_SUMS] = True
    if node.operator in (*_FLOAT_SUMS, *_EXPONENTIALS):
        keys[FLOAT_LIBRARY] = options.float_library
    width = options.multiplier_bits or (options.activation_bits if node.operator == "concat" else 0)
    if width and says(layer.has_width, node):
        keys[MULTIPLIER_BITS] = width
    return keys


def _whole_type(output: Tensor, inputs: Sequence[Tensor], signed: bool) -> Affine:
    """Return the type of whole numbers made of whole numbers: s = 1, as many bits as the range or an input needs.

    Without a range, as indices that no calibration looks at, 32.

    Source: Compass Optimizer, ops/eltwise.py, where both inputs are quantization-invariant.
    """
    needed = 32
    if output.range is not None:
        low, high = range_of(output)
        needed = next((b for b in (8, 16) if _fits(low, high, b, signed)), needed)
    return affine_of(np.float32(1), 0, max(needed, *(bits_of(t) for t in inputs)), signed)


def _fits(low: float, high: float, bits: int, signed: bool) -> bool:
    lowest, highest = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return lowest <= low and high <= highest


def _input(tensor: Tensor, options: LayerOptions) -> Tensor:
    if tensor.dtype.is_integer:
        return tensor
    dtype, quantization = by_range(tensor, range_of(tensor)[0] < 0, options)
    return replace(tensor, dtype=dtype, quantization=quantization)


def _internal(tensor: Tensor, signed: bool, options: LayerOptions) -> Tensor:
    """Type what a layer computes within itself: symmetric, restricted, at least 16 bits."""
    low, high = range_of(tensor)
    affine = type_of_range(low, high, max(INTERNAL_BITS, options.activation_bits), signed, True, restricted=True)
    return replace(tensor, dtype=code_type(affine), quantization=affine)


def _needs_range(node: Node) -> bool:
    layer = LAYERS[node.operator]
    return says(layer.needs_range, node) or (layer.signed is not None and not callable(layer.needs_range))


def _is_whole(graph: Graph, node: Node, t: int) -> bool:
    """Whether a layer makes whole numbers of whole numbers, which need no range."""
    return LAYERS[node.operator].keeps_whole and graph.tensors[t].dtype.is_integer


def _refuse_missing_ranges(graph: Graph) -> None:
    needed = [t for t in graph.inputs if not graph.tensors[t].dtype.is_integer]
    needed += [t for node in graph.nodes if _needs_range(node) for t in node.outputs if not _is_whole(graph, node, t)]
    needed += [t for node in graph.nodes for t in node.intermediates or ()]
    missing = [f"'{graph.tensors[t].name}'" for t in needed if graph.tensors[t].range is None]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise UnsupportedError(
            f"{len(missing)} tensors have no range: {', '.join(missing[:3])}{more}; calibrate the model or give a "
            f"quantized one"
        )
