"""A float network by a recipe.

Writes the graph that a plan asks for: typed tensors, constants, and QUANTIZE and DEQUANTIZE where two sides differ.

Source: ai-edge-quantizer 0.10 (Apache-2.0), transformation_instruction_generator.py and transformations/*.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.converters.calibration import CalibrationSamples
from tflq.converters.passes.conversions import Conversions
from tflq.converters.passes.rewrite import constant
from tflq.converters.settings import Options, Settings
from tflq.converters.tflite_quantiser.choose_kinds import PLAIN
from tflq.converters.tflite_quantiser.options import LayerOptions
from tflq.converters.tflite_quantiser.recipes.columns import statistics_of
from tflq.converters.tflite_quantiser.recipes.files import dynamic, recipe_of, static, weight_only
from tflq.converters.tflite_quantiser.recipes.params import Params, hadamard
from tflq.converters.tflite_quantiser.recipes.plan import Choice, Operands, Plan, choose
from tflq.converters.tflite_quantiser.recipes.policy import AS_INPUT, AS_OUTPUT, FIXED, INPUT, OUTPUT, operation_of
from tflq.converters.tflite_quantiser.recipes.rules import (
    ANY,
    CHANNELWISE,
    GPTQ,
    MIN_MAX,
    NO_QUANTIZE,
    OSCAR,
    TENSORWISE,
    Config,
    Rule,
)
from tflq.converters.tflite_quantiser.rules import VERSIONS
from tflq.graph import ABSENT, Array, Attributes, Blockwise, DType, Graph, Node, Tensor, pruned

_CONSTRAINED = AS_INPUT | AS_OUTPUT | FIXED.keys()


@dataclass
class Writer:
    """Writes nodes in order; tensors keep their indices in the type that their producer writes.

    Attributes:
        source: the float network.
        choices: the rule of each node.
        operands: what each node asks for.
        inputs: params of the graph's inputs: tensor -> params.
        outputs: params of the graph's outputs.
    """

    source: Graph
    choices: Sequence[Choice]
    operands: Sequence[Operands]
    inputs: dict[int, Params]
    outputs: dict[int, Params]
    _graph: Graph = field(init=False)
    _conversions: Conversions = field(init=False)
    _homes: dict[int, Params | None] = field(default_factory=dict)
    _constants: dict[tuple[int, bytes, bytes], int] = field(default_factory=dict)
    _moved: dict[tuple[int, str], int] = field(default_factory=dict)

    def written(self) -> Graph:
        """Return the graph, without what nobody reads."""
        self._graph = replace(self.source.copy(), nodes=[], extra=None)
        self._graph.tensors = [replace(t, range=None) for t in self._graph.tensors]
        self._conversions = Conversions(self._graph)
        readers = self._readers()
        for t in self.source.inputs:
            self._settle(t, self.inputs.get(t))
        for node, choice, operands in zip(self.source.nodes, self.choices, self.operands, strict=True):
            inputs = [self._input(node, p, operands, choice) for p in range(len(node.inputs))]
            for p, t in enumerate(node.outputs):
                self._settle(t, _home(node, operands.outputs.get(p), readers.get(t, [])))
            self._append(node, inputs, replace(choice, reason=choice.reason or operands.note))
            if operands.inputs and operation_of(node.operator) == "EMBEDDING_LOOKUP":
                self._rotate_output(node, operands.inputs[1].rotation)
        ends = tuple(self._read(t, self.outputs.get(t)) for t in self.source.outputs)
        self._graph.outputs = ends
        return pruned(self._graph)

    def _readers(self) -> dict[int, list[Params | None]]:
        found: dict[int, list[Params | None]] = {}
        for node, operands in zip(self.source.nodes, self.operands, strict=True):
            for p, t in enumerate(node.inputs):
                found.setdefault(t, []).append(operands.inputs.get(p))
        for t in self.source.outputs:
            found.setdefault(t, []).append(self.outputs.get(t))
        return found

    def _settle(self, t: int, params: Params | None) -> None:
        self._homes[t] = params
        if params is not None:
            self._graph.tensors[t] = _typed(self._graph.tensors[t], params)

    def _input(self, node: Node, position: int, operands: Operands, choice: Choice) -> int:
        t, params = node.inputs[position], operands.inputs.get(position)
        if t == ABSENT:
            return t
        if params is not None and params.data is not None:
            found = self._constant(t, params)
            return found if choice.rule.config.is_integer else self._dequantised(found, self._graph.tensors[t])
        found = self._read(t, params)
        weights = operands.inputs.get(1)
        if position == 0 and weights is not None and operation_of(node.operator) == "FULLY_CONNECTED":
            if weights.rotation:
                return self._rotate(found, weights.rotation)
            if weights.multiplier is not None:
                return self._multiply(found, weights.multiplier)
        return found

    def _read(self, t: int, params: Params | None) -> int:
        """Return a tensor that holds activation t with these params, or as float32."""
        home = self._homes.get(t)
        t = self._moved.get((t, "embedding"), t)
        if home is None:
            return t if params is None else self._quantised(t, params)
        if params is None:
            return self._dequantised(t, self.source.tensors[t])
        return t if home.is_like(params) else self._quantised(t, params)

    def _quantised(self, t: int, params: Params) -> int:
        wanted = _typed(self._named(t, "quantized"), params)
        widest = max(params.widths.bits, 16 if self._graph.tensors[t].dtype is DType.INT16 else 8)
        return self._convert(t, wanted, "quantize", VERSIONS["quantize"]["int16x8" if widest == 16 else "int8"])

    def _dequantised(self, t: int, like: Tensor) -> int:
        wanted = replace(self._named(t, "dequantized"), dtype=DType.FLOAT32, quantisation=None, shape=like.shape)
        short = self._graph.tensors[t].dtype in (DType.INT16, DType.FLOAT16)
        return self._convert(t, wanted, "dequantize", VERSIONS["dequantize"]["int16x8" if short else "int8"])

    def _convert(self, t: int, wanted: Tensor, operator: str, version: int) -> int:
        return self._conversions.convert(
            t, wanted, Node(operator, (), (), name=f"{operator.upper()}_{wanted.name}", version=version)
        )

    def _named(self, t: int, what: str) -> Tensor:
        """Return a computed tensor like another one, under a name that is free."""
        name = f"{self._graph.tensors[t].name}_{what}"
        same = sum(1 for tensor in self._graph.tensors if tensor.name.startswith(name))
        return replace(self._graph.tensors[t], name=f"{name}_{same}" if same else name, data=None, extra=None)

    def _constant(self, t: int, params: Params) -> int:
        assert params.data is not None
        key = (t, params.scale.tobytes(), params.data.tobytes())
        if key not in self._constants:
            tensor = self.source.tensors[t]
            if params.widths.dtype == "FLOAT":
                made = constant(tensor.name, params.data)
            elif params.widths.block_size:
                scales = self._graph.add_tensor(constant(f"{tensor.name}_scales", params.scale.astype(np.float16)))
                blocks = Blockwise(scales, -1, params.widths.block_size)
                made = constant(tensor.name, params.data, blocks, _dtype(params))
            else:
                made = constant(tensor.name, params.data, params.affine, _dtype(params))
            self._constants[key] = self._graph.add_tensor(replace(made, has_rank=tensor.has_rank))
        return self._constants[key]

    def _append(self, node: Node, inputs: Sequence[int], choice: Choice) -> None:
        changes = {"engine": choice.kind, "engine_reason": choice.reason} if choice.kind != PLAIN else {}
        version = max(node.version, VERSIONS.get(node.operator, {}).get(choice.kind, 1))
        attributes = node.attributes.updated(**changes)
        self._graph.nodes.append(replace(node, inputs=tuple(inputs), attributes=attributes, version=version))

    def _rotate_output(self, node: Node, size: int) -> None:
        if size:
            t = node.outputs[0]
            self._moved[t, "embedding"] = self._rotate(t, size)

    def _rotate(self, t: int, size: int) -> int:
        """Return x in rows of `size` times the Hadamard matrix, back in its shape; one for all readers."""
        if (t, "rotated") not in self._moved:
            tensor = self._graph.tensors[t]
            rows = (int(np.prod(tensor.shape)) // size, size)
            matrix = (hadamard(size).astype(np.int64) / np.sqrt(size)).astype(np.float32)
            x = self._step("reshape", t, self._values(t, "prerotate_shape", np.asarray(rows, np.int32)), rows)
            fused = {"fused_activation_function": "none"}
            x = self._step("fully_connected", x, self._values(t, "hadamard_matrix", matrix), rows, **fused)
            shape = self._values(t, "postrotate_shape", np.asarray(tensor.shape, np.int32))
            self._moved[t, "rotated"] = self._step("reshape", x, shape, tensor.shape)
        return self._moved[t, "rotated"]

    def _multiply(self, t: int, factors: Array) -> int:
        """Return x times a factor for each column; one for all readers that ask for the same."""
        key = (t, str(factors.tobytes()))
        if key not in self._moved:
            shape = self._graph.tensors[t].shape
            fused = {"fused_activation_function": "none"}
            self._moved[key] = self._step("mul", t, self._values(t, "multiplier", factors), shape, **fused)
        return self._moved[key]

    def _values(self, t: int, what: str, data: Array) -> int:
        return self._graph.add_tensor(constant(self._named(t, what).name, data))

    def _step(self, operator: str, x: int, other: int, shape: Sequence[int], **attributes: str) -> int:
        wanted = replace(self._named(x, operator), shape=tuple(shape), shape_signature=None)
        result = self._graph.add_tensor(wanted)
        name = f"{operator.upper()}_{wanted.name}"
        self._graph.nodes.append(Node(operator, (x, other), (result,), Attributes(attributes), name=name))
        return result


def _home(node: Node, written: Params | None, readers: Sequence[Params | None]) -> Params | None:
    """Return how a node writes a tensor: as it asks, or at once as all readers do where its kernel is free in that."""
    first = readers[0] if readers else None
    if written is None or first is None or operation_of(node.operator) in _CONSTRAINED:
        return written
    agree = all(first.is_like(other) for other in readers) and first.widths == written.widths
    return replace(first, data=None) if agree else written


def _typed(tensor: Tensor, params: Params) -> Tensor:
    return replace(tensor, dtype=_dtype(params), quantisation=params.affine, extra=None)


def _dtype(params: Params) -> DType:
    return DType(f"{'u' if params.widths.dtype == 'UINT' else ''}int{params.widths.bits}")


_LEFT = Rule("", ANY, NO_QUANTIZE)


def quantise_by_recipe(
    graph: Graph, options: Options[LayerOptions], settings: Settings, samples: CalibrationSamples | None
) -> Graph:
    """Return the graph that a recipe makes of a float network.

    Args:
        graph: the network; its activations have ranges where the recipe asks for static ones.
        options: what the user asked for; type, weight_bits, per_channel, symmetric, inputs and outputs win.
        settings: which of them a rule for a layer gives.
        samples: that a calibration kept.

    Raises:
        OptionError: an unknown recipe, or one that contradicts what TFLite runs.
        InputError: a recipe file that cannot be read.
        UnsupportedError: tensors without a range; constants that an algorithm does not take.
    """
    rules = [_adapted(rule, options.whole) for rule in recipe_of(options.whole.recipe)]
    choices = [_choice(graph, index, rules, options, settings) for index in range(len(graph.nodes))]
    fitted = [node.inputs[0] for node, c in zip(graph.nodes, choices, strict=True) if c.rule.algorithm in (GPTQ, OSCAR)]
    plan = Plan(graph, statistics_of(graph, fitted, samples))
    operands = [plan.node(node, choice) for node, choice in zip(graph.nodes, choices, strict=True)]
    ends = []
    for operation, tensors, wanted in (
        (INPUT, graph.inputs, options.whole.inputs),
        (OUTPUT, graph.outputs, options.whole.outputs),
    ):
        chosen = choose(rules, operation, (graph.tensors[t].name for t in tensors))
        ends.append(plan.border(tensors, Choice(_LEFT) if wanted == "float" else chosen))
    plan.require_ranges()
    return Writer(graph, choices, operands, ends[0], ends[1]).written()


def _choice(graph: Graph, index: int, rules: list[Rule], options: Options[LayerOptions], settings: Settings) -> Choice:
    node = graph.nodes[index]
    operands = (graph.tensors[t] for t in (*node.inputs, *node.outputs) if t != ABSENT)
    if not any(tensor.dtype.is_floating for tensor in operands):
        return Choice(replace(_LEFT, operation=PLAIN))
    names = [graph.tensors[t].name for t in node.outputs]
    operation = operation_of(node.operator)
    found = choose(rules, operation, names)
    layer = options.layers[node.name]
    if settings.names(graph, index, ("type",)) and layer.kind == "float":
        return Choice(_LEFT)
    if settings.names(graph, index, ("type", "weight_bits")):
        named = settings.names(graph, index, ("type",)) or found.kind == "float"
        kind = layer.kind if named else found.kind
        bits = layer.weight_bits
        if not settings.names(graph, index, ("weight_bits",)) and found.rule.config.weights is not None:
            bits = found.rule.config.weights.bits
        found = choose([_adapted(Rule("", ANY, MIN_MAX, _config(kind, bits)), layer)], operation, names)
    return found


def _config(kind: str, bits: int) -> Config:
    if kind in ("int8", "int16x8"):
        return static(bits, 8 if kind == "int8" else 16)
    return dynamic(bits) if kind == "hybrid" else weight_only(bits)


def _adapted(rule: Rule, layer: LayerOptions) -> Rule:
    """Return a rule with one scale for all weights, or symmetric activations, where that is asked for."""
    config = rule.config
    weights, activations = config.weights, config.activations
    if weights is not None and weights.granularity == CHANNELWISE and not layer.per_channel:
        weights = replace(weights, granularity=TENSORWISE)
    if activations is not None and layer.symmetric:
        activations = replace(activations, symmetric=True)
    return replace(rule, config=replace(config, weights=weights, activations=activations))
