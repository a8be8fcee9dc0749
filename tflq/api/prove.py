"""`tflq.prove`: two runtimes of one model, layer by layer, over every input of a layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.result import Result
from tflq.diagnosis.proof import LayerProof, prove_layers
from tflq.graph import Graph
from tflq.interpreter.runtimes import REFERENCE, RuntimeName, find_runtime, rule_of
from tflq.quoting import Json
from tflq.report import Column, Table, Verdict, identifier, number
from tflq.units import number as number_text


@dataclass(frozen=True)
class ProveResult(Result):
    """Layers of a model in two runtimes.

    Attributes:
        model: Name of the model.
        first: Runtime.
        second: Runtime.
        graph: Lowered graph of the first runtime.
        layers: Result for each layer.
    """

    FACTS = (
        Column("model", "model"),
        Column("first", "runtime"),
        Column("second", "reference"),
        Column("equal", get="is_equal"),
    )
    MAIN = "layers"

    model: str
    first: RuntimeName
    second: RuntimeName
    graph: Graph
    layers: tuple[LayerProof, ...]

    @property
    def is_equal(self) -> bool:
        """Whether every layer is proven equal."""
        return all(layer.is_equal for layer in self.layers)

    @property
    def differing(self) -> tuple[LayerProof, ...]:
        """Layers that differ for some input."""
        return tuple(layer for layer in self.layers if layer.status == "differs")

    @property
    def verdict(self) -> Verdict:
        """Number of layers that are equal for all inputs."""
        equal = sum(layer.is_equal for layer in self.layers)
        open_ = sum(layer.difference is None for layer in self.layers)
        advice = "" if self.is_equal else f"different for some input: {len(self.differing)}; not decided: {open_}"
        return Verdict("", equal, f"of {len(self.layers)} layers are equal for all inputs", advice=advice)

    @property
    def title(self) -> str:
        """Model and runtimes."""
        return f"{self.model}: {self.first} and {self.second}, all inputs of each layer"

    def tables(self) -> Sequence[Table]:
        """Return the layers, and the two rules of each operator that differs."""
        operators = dict.fromkeys(layer.node.operator for layer in self.differing)
        rules = [(name, rule_of(self.first, name), rule_of(self.second, name)) for name in operators]
        columns = (
            identifier("operator", "operator", lambda row: row[0]),
            Column("first", self.first, get=lambda row: row[1]),
            Column("second", self.second, get=lambda row: row[2]),
        )
        return [Table("layers", _LAYERS, self.layers, "Layers"), Table("rules", columns, rules, "Rules")]


def _example(layer: LayerProof) -> Json:
    example = None if layer.difference is None else layer.difference.example
    if example is None:
        return None
    return {
        "channel": example.channel,
        "sum": example.total,
        "first": example.first,
        "second": example.second,
        "taps": example.taps.tolist(),
        "place": list(layer.place),
    }


def _example_text(layer: LayerProof) -> str:
    example = None if layer.difference is None else layer.difference.example
    if example is None:
        return layer.reason
    taps = np.array2string(example.taps, threshold=6, edgeitems=3, separator=" ").replace("\n", "")
    return f"channel {example.channel}, x = {taps}: {example.first} and {example.second}"


_LAYERS = (
    number("index", "#"),
    Column("operator", "operator", get="node.operator", rank=1),
    identifier("name", "layer", "node.name"),
    Column("status", "results"),
    number(
        "reachable", "reachable", lambda r: r.difference and r.difference.reachable, lambda r: _count(r, "reachable")
    ),
    number(
        "differing", "differing", lambda r: r.difference and r.difference.differing, lambda r: _count(r, "differing")
    ),
    number(
        "largest", "largest", lambda r: r.difference and r.difference.largest, lambda r: _count(r, "largest"), "LSB"
    ),
    Column("reason", get=lambda r: r.reason or None),
    Column("example", get=lambda r: _example(r)),
    Column("", "example", get=lambda r: _example_text(r), rank=2),
)


def _count(layer: LayerProof, name: str) -> str:
    return (
        ""
        if layer.difference is None or not layer.difference.reachable
        else number_text(getattr(layer.difference, name))
    )


def prove(model: ModelSource, first: RuntimeName, second: RuntimeName = REFERENCE) -> ProveResult:
    """Return for each layer whether two runtimes return equal results for all its inputs.

    Layers are compared in isolation; differences propagate in the whole network. Convolutions and fully connected
    layers are decided by all sums that their filters reach, functions of 8 bits by all values.

    Args:
        model: Model in its own encoding.
        first: Runtime.
        second: Runtime (default: TFLite's reference kernels).

    Raises:
        OptionError: An unknown runtime.
        UnsupportedError: Operators that tflq does not run.
    """
    for name in (first, second):
        find_runtime(name)
    graph, layers = prove_layers(read_model(model), first, second)
    return ProveResult(name_of(model), first, second, graph, layers)
