"""From a float network with ranges to a graph of TFLite's integers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tflq.converters.calibration import samples_of
from tflq.converters.passes.conversions import Conversions
from tflq.converters.passes.requirements import collect_problems, refuse
from tflq.converters.settings import Options, Settings, read_options
from tflq.converters.tflite_quantizer.choose_kinds import PLAIN, Choice, choose_kinds, float_constants
from tflq.converters.tflite_quantizer.constants import Constants, type_of
from tflq.converters.tflite_quantizer.options import LayerOptions
from tflq.converters.tflite_quantizer.prepare import Prepared, prepare
from tflq.converters.tflite_quantizer.recipes.quantize import quantize_by_recipe
from tflq.converters.tflite_quantizer.rules import VERSIONS, rule_of
from tflq.converters.tflite_quantizer.scales import (
    Scales,
    activation_inputs,
    activation_outputs,
    choose_scales,
    unsigned,
)
from tflq.graph import ABSENT, Affine, DType, Graph, Node, Tensor, pruned, validate
from tflq.graph.operators import Trait, has_trait
from tflq.graph.rewriting import graph_pass, rewrite_graph

ARITHMETIC = "tflite"


def problems_of(graph: Graph) -> tuple[str, ...]:
    """Return one line for each operator that runs other graphs; those without integer kernels stay in float."""
    why = "it runs other graphs, whose tensors are not calibrated; cut the graph in front of it"
    return collect_problems(graph, lambda _, node: why if has_trait(node, Trait.CONTROL) else "")


def quantize_graph(graph: Graph, settings: Settings) -> Graph:
    """Return the graph that TFLite runs in integers, with QUANTIZE and DEQUANTIZE where it changes the type.

    Raises:
        UnsupportedError: operators that run other graphs; tensors without a range; values that are not finite.
        OptionError: settings that do not fit the graph.
    """
    options = read_options(LayerOptions, graph, settings)
    refuse(problems_of(graph))
    prepared = prepare(graph)
    by_recipe = graph_pass(
        "quantize_by_recipe",
        lambda network: quantize_by_recipe(network, options, settings, samples_of(graph)),
        "recipe: ai-edge-quantizer quantizes the network",
        "docs/targets/tflite.md",
    )
    by_rules = graph_pass(
        "quantize",
        lambda network: _quantize(replace(prepared, graph=network), options),
        "type: operators with a kernel on integers run on them; QUANTIZE and DEQUANTIZE where types meet",
        "docs/targets/tflite.md",
    )
    result = rewrite_graph(prepared.graph, [by_recipe if options.whole.recipe else by_rules], owner="tflite-integers")
    validate(result, "quantized graph")
    return result


def _quantize(prepared: Prepared, options: Options[LayerOptions]) -> Graph:
    choices = choose_kinds(prepared.graph, options.layers)
    return _Writer(prepared, choose_scales(prepared, choices, options.whole.symmetric), choices, options).written()


@dataclass
class _Writer:
    """Writes nodes in order; tensors keep their indices in the type that their producer writes."""

    prepared: Prepared
    scales: Scales
    choices: list[Choice]
    options: Options[LayerOptions]
    graph: Graph = field(init=False)
    constants: Constants = field(init=False)
    _homes: dict[int, Affine | None] = field(default_factory=dict)
    _conversions: Conversions = field(init=False)

    def __post_init__(self) -> None:
        self.graph = replace(self.prepared.graph.copy(), nodes=[], extra=None)
        self.graph.tensors = [replace(t, range=None) for t in self.graph.tensors]
        self.constants, self._conversions = Constants(self.prepared, self.graph), Conversions(self.graph)

    def written(self) -> Graph:
        source = self.prepared.graph
        for t in source.inputs:
            wanted = None if self.options.whole.inputs == "float" else self._first_reader(t)
            self._settle(t, unsigned(wanted) if self.options.whole.inputs == "uint8" else wanted)
        for node, choice in zip(source.nodes, self.choices, strict=True):
            if choice.is_integer:
                self._integer(node, choice)
            else:
                self._float(node, choice)
        outputs = source.outputs
        if self.options.whole.outputs == "float":
            outputs = tuple(self._as(t, None) if t in self._homes else t for t in outputs)
        elif self.options.whole.outputs == "uint8":
            outputs = tuple(self._as(t, unsigned(self._homes[t])) if t in self._homes else t for t in outputs)
        self.graph.outputs = outputs
        return pruned(self.graph)

    def _first_reader(self, t: int) -> Affine | None:
        """Return the quantization in which the first node in integers reads an input of the graph."""
        if self.prepared.graph.tensors[t].dtype is not DType.FLOAT32:
            return None
        for node, choice in zip(self.prepared.graph.nodes, self.choices, strict=True):
            if choice.is_integer and t in (i for _, i in activation_inputs(self.prepared.graph, node)):
                return self.scales.of(t, choice.kind)
        return None

    def _settle(self, t: int, affine: Affine | None) -> None:
        """Fix the type in which a tensor is written."""
        self._homes[t] = affine
        if affine is not None:
            changed = replace(self.graph.tensors[t], dtype=type_of(affine), quantization=affine, extra=None)
            self.graph.tensors[t] = changed

    def _integer(self, node: Node, choice: Choice) -> None:
        source, rule = self.prepared.graph, rule_of(node)
        assert rule is not None
        outputs = activation_outputs(source, node)
        inputs = list(node.inputs)
        for position, t in activation_inputs(source, node):
            inputs[position] = self._activation(t, choice.kind, outputs[0] if rule.same and outputs else None)
        for t in outputs:
            self._settle(t, self.scales.of(t, choice.kind))
        if rule.filter is not None:
            scale = self._input_scale(node, inputs, rule.filter.weights)
            layer = self.options.layers[node.name]
            found = self.constants.weights(node, rule.filter, choice.kind, layer, float(scale))
            inputs[rule.filter.weights] = found
            if rule.filter.bias < len(inputs):
                inputs[rule.filter.bias] = self.constants.bias(node, rule.filter, choice.kind, scale, found)
        self._append(node, inputs, choice)

    def _input_scale(self, node: Node, inputs: list[int], weights: int) -> np.float32:
        positions = [p for p, _ in activation_inputs(self.prepared.graph, node) if p != weights]
        scale: np.float32 = self.graph.tensors[inputs[positions[0]]].affine.scale.astype(np.float32)[0]
        return scale

    def _activation(self, t: int, kind: str, like: int | None) -> int:
        """Return a tensor that holds activation t in this kind; with the quantization of tensor `like`, if given."""
        constant = self.prepared.graph.tensors[t].data is not None
        if like is not None:
            affine = self.scales.of(like, kind)
        else:
            affine = self.scales.of_constant(t, kind) if constant else self.scales.of(t, kind)
        return self.constants.activation(t, affine) if constant else self._as(t, affine)

    def _float(self, node: Node, choice: Choice) -> None:
        inputs = [self._as(t, None) if t in self._homes else t for t in node.inputs]
        for t in node.outputs:
            self._settle(t, None)
        if choice.kind == "float16":
            halves = {t: self._halved(t) for t in float_constants(self.prepared.graph, node)}
            inputs = [halves.get(t, t) for t in inputs]
        if choice.kind in ("weights", "hybrid"):
            rule = rule_of(node)
            assert rule is not None
            assert rule.filter is not None
            weights = self.constants.weights(node, rule.filter, "int8", self.options.layers[node.name], 0.0)
            inputs[rule.filter.weights] = self._dequantized(weights) if choice.kind == "weights" else weights
        self._append(node, inputs, choice)

    def _halved(self, t: int) -> int:
        return self._dequantized(self.constants.half(t))

    def _dequantized(self, weights: int) -> int:
        return self._convert(weights, self.graph.tensors[weights], None)

    def _as(self, t: int, affine: Affine | None) -> int:
        """Return tensor t in a quantization, or as float32 (None), converted once where it has another."""
        home = self._homes[t]
        if home == affine:
            return t
        if home is not None and affine is not None and home.bits < affine.bits:
            # TFLite's QUANTIZE from int8 to int16 exists in LiteRT only: by way of float32.
            return self._convert(self._as(t, None), self.graph.tensors[t], affine)
        return self._convert(t, self.graph.tensors[t], affine)

    def _convert(self, t: int, like: Tensor, affine: Affine | None) -> int:
        dtype = DType.FLOAT32 if affine is None else type_of(affine)
        same = sum(1 for tensor in self.graph.tensors if tensor.name.startswith(f"{like.name};{dtype.value}"))
        name = f"{like.name};{dtype.value}" + (f";{same}" if same else "")
        wanted = replace(like, name=name, dtype=dtype, quantization=affine, data=None, extra=None)
        operator = "dequantize" if affine is None else "quantize"
        widest = max(8 if a is None else a.bits for a in (affine, self._affine(t)))
        is_short = widest == 16 or like.dtype is DType.FLOAT16
        version = VERSIONS[operator]["int16x8" if is_short else "int8"]
        node = Node(operator, (), (), name=f"{operator.upper()}_{name}", version=version)
        return self._conversions.convert(t, wanted, node)

    def _affine(self, t: int) -> Affine | None:
        found = self.graph.tensors[t].quantization
        return found if isinstance(found, Affine) else None

    def _append(self, node: Node, inputs: list[int], choice: Choice) -> None:
        changes: dict[str, str | bool] = {"engine": choice.kind, "engine_reason": choice.reason}
        if choice.kind == PLAIN:
            changes = {}
        if choice.kind == "hybrid" and node.operator == "fully_connected":
            changes["asymmetric_quantize_inputs"] = self.options.layers[node.name].asymmetric_inputs
        if choice.kind == "int16x8" and node.operator in ("add", "sub"):
            changes["pot_scale_int16"] = False
        version = max(node.version, VERSIONS.get(node.operator, {}).get(choice.kind, 1))
        self.graph.nodes.append(
            replace(node, inputs=tuple(inputs), attributes=node.attributes.updated(**changes), version=version)
        )
        assert ABSENT not in node.outputs
